"""Simulates a recorded program after a change, to predict its step times."""

from selftime.advice.replay.simulated_changes import (
    Change,
    CutHostTime,
    RemoveWaits,
    ScaleDeviceWork,
)
from selftime.advice.replay.trace_replay import Replay, replay_of

__all__ = ["Change", "CutHostTime", "RemoveWaits", "Replay", "ScaleDeviceWork", "replay_of"]
