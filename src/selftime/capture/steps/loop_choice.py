"""Chooses which of a program's nested loops makes the steps, by how often each loop repeats."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from selftime.capture.code_loops import CodeLoop

LONG_ITERATION_NS: Final = 250_000_000
"""Mean duration in ns above which an iteration counts as an epoch rather than a step, if a
nested loop repeats more often."""

MIN_ITERATIONS: Final = 10
"""Number of iterations after which a loop with short iterations is chosen."""

MIN_LONG_ITERATIONS: Final = 3
"""Number of iterations after which a loop with long iterations may be chosen."""

MAX_CHOICE_NS: Final = 3_000_000_000
"""Time in ns after which a loop is chosen even if it has repeated fewer than `MIN_ITERATIONS`
times."""


@dataclass(slots=True)
class IteratedLoop:
    """A running loop: its number of iterations, and when the first and the last one began."""

    loop: CodeLoop
    iterations: int = 0
    first_ns: int = 0
    """Start of the first counted iteration, in ns."""
    last_ns: int = 0
    """Start of the last counted iteration, in ns."""

    def count_iteration(self, now_ns: int) -> None:
        if not self.iterations:
            self.first_ns = now_ns
        self.iterations += 1
        self.last_ns = now_ns

    @property
    def mean_ns(self) -> float | None:
        """Returns the mean duration of an iteration in ns; None before the second one begins."""
        if self.iterations < 2:
            return None
        return (self.last_ns - self.first_ns) / (self.iterations - 1)


def choose_step_loop(
    loops: Sequence[IteratedLoop], start_ns: int, now_ns: int
) -> IteratedLoop | None:
    """Returns the loop whose iterations are the steps; None while more iterations are needed.

    It is the outermost loop that repeats within `LONG_ITERATION_NS`: in a training loop within a
    loop of epochs the inner one, in a simulation whose time step loops over three axes the outer
    one. Without any such loop it is the outermost one that repeats at all.

    Args:
        loops: The loops that the program is in, the outermost first.
        start_ns: When their iterations began to be counted.
        now_ns: The present time.
    """
    elapsed = now_ns - start_ns
    for counted in loops:
        mean = counted.mean_ns
        if mean is None:
            if elapsed < LONG_ITERATION_NS:
                return None  # it may still repeat in time
        elif mean <= LONG_ITERATION_NS:
            if counted.iterations >= MIN_ITERATIONS or elapsed > MAX_CHOICE_NS:
                return counted
            return None
    if elapsed <= MAX_CHOICE_NS:
        return None
    return next((one for one in loops if one.iterations >= MIN_LONG_ITERATIONS), None)
