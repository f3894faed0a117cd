"""What a check says: what was seen, whether it stands in the way, and what cures it."""

from dataclasses import dataclass
from enum import Enum


class State(str, Enum):
    """Whether something stands in the way of a recording."""

    ok = "ok"
    warning = "warning"
    """Recordings work, and are slower, poorer or in danger."""
    problem = "problem"
    """Nothing can be recorded, or a device is there and cannot be."""
    unknown = "unknown"
    """It could not be found out."""


class Subject(str, Enum):
    """What a check looks at; text is grouped by it."""

    pytorch = "PyTorch"
    recording = "Recording"
    device = "Device"
    machine = "Machine"


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check."""

    check: str
    subject: Subject
    state: State
    seen: str
    cure: str | None = None
    """What to do; None where there is nothing to."""
