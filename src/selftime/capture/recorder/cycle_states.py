"""The states of the machine that makes a recording, in the order in which they come."""

from enum import Enum, auto
from typing import Final


class CycleState(Enum):
    """What a recording cycle does in the present step."""

    WAITING = auto()
    FIRST_RECORDING = auto()
    TIMING_BEFORE = auto()
    WARMING_UP = auto()
    RECORDING = auto()
    FURTHER_RECORDING = auto()
    TIMING_AFTER = auto()
    DONE = auto()


RECORDING_STATES: Final = (
    CycleState.FIRST_RECORDING,
    CycleState.WARMING_UP,
    CycleState.RECORDING,
    CycleState.FURTHER_RECORDING,
)
"""The states in which a profiler runs."""

STATES_WITH_ALL_STEPS: Final = (CycleState.FURTHER_RECORDING, CycleState.TIMING_AFTER)
"""The states in which all requested steps are recorded, and more is measured."""
