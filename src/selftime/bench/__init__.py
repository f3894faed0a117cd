"""Times two programs in turn, without a profiler, until the speed-up is known precisely."""

from selftime.bench.alternating_rounds import Limits, bench
from selftime.bench.program_runs import BenchedProgram
from selftime.bench.result import Bench

__all__ = ["Bench", "BenchedProgram", "Limits", "bench"]
