"""Time two unprofiled programs against each other, in turn, until the interval is narrow."""

from selftime.bench.process import BenchedProgram
from selftime.bench.result import Bench
from selftime.bench.rounds import Limits, bench

__all__ = ["Bench", "BenchedProgram", "Limits", "bench"]
