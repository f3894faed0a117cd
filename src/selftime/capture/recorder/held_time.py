"""For how long the ends of a run's recordings have held the program."""

import time
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


class HeldTime:
    """Sums the time of work that holds the program."""

    def __init__(self) -> None:
        self.ns = 0

    def measure(self, work: Callable[[], _Result]) -> _Result:
        """Returns the result of work that holds the program, and adds how long it took."""
        began = time.perf_counter_ns()
        try:
            return work()
        finally:
            self.ns += time.perf_counter_ns() - began
