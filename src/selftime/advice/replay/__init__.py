"""The what-if replay: how long the steps of a recorded program would take after a change."""

from selftime.advice.replay.changes import Change, Cut, Scale, Unwait
from selftime.advice.replay.replay import Replay, replay_of

__all__ = ["Change", "Cut", "Replay", "Scale", "Unwait", "replay_of"]
