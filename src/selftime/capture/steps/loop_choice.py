"""Chooses which of a program's nested loops makes the steps, by how often each loop repeats."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from selftime.capture.code_loops import CodeLoop

LONG_ITERATION_NS: Final = 250_000_000
"""Mean duration in ns above which an iteration counts as an epoch rather than a step, if a
nested loop repeats more often."""

MIN_ITERATIONS: Final = 10
"""Number of iterations after which a loop with short iterations is chosen. A loop that ends before
it has made as many is no loop of steps, if another one around or within it makes more."""

MIN_LONG_ITERATIONS: Final = 3
"""Number of iterations after which a loop with long iterations may be chosen."""

MAX_CHOICE_NS: Final = 3_000_000_000
"""Time in ns after which a loop is chosen even if it has repeated fewer than `MIN_ITERATIONS`
times."""


@dataclass(slots=True)
class IteratedLoop:
    """A running loop: its number of iterations, and when the first and the last one began."""

    loop: CodeLoop
    known_iterations: int | None = None
    """Number of iterations from its start to its end, if its source code tells it."""
    began_ns: int = 0
    """When it began before its iterations were counted, in ns."""
    iterations: int = 0
    first_ns: int = 0
    """Start of the first counted iteration, in ns."""
    last_ns: int = 0
    """Start of the last counted iteration, in ns."""
    entries_left: int = 0
    """How often the loop has ended since its iterations are counted."""
    most_iterations: int = 0
    """Largest number of iterations between a start and an end of the loop."""
    iterations_before: int = 0
    """Number of iterations counted before its last start."""

    def count_iteration(self, now_ns: int) -> None:
        if not self.iterations:
            self.first_ns = now_ns
        self.iterations += 1
        self.last_ns = now_ns

    def end_entry(self) -> None:
        """Notes that the loop has ended; it may start again."""
        made = self.iterations - self.iterations_before
        if not self.entries_left and (mean := self.mean_ns):
            made += int((self.first_ns - self.began_ns) / mean)  # before they were counted
        self.iterations_before = self.iterations
        self.entries_left += 1
        self.most_iterations = max(self.most_iterations, made)

    @property
    def mean_ns(self) -> float | None:
        """Returns the mean duration of an iteration in ns; None before the second one begins."""
        if self.iterations < 2:
            return None
        return (self.last_ns - self.first_ns) / (self.iterations - 1)

    @property
    def ends_soon(self) -> bool:
        """Returns whether the loop is known to end before it has made `MIN_ITERATIONS`."""
        if self.known_iterations is not None:
            return self.known_iterations < MIN_ITERATIONS
        going_on = self.iterations - self.iterations_before
        return bool(self.entries_left) and max(self.most_iterations, going_on) < MIN_ITERATIONS


def choose_step_loop(
    loops: Sequence[IteratedLoop], start_ns: int, now_ns: int
) -> IteratedLoop | None:
    """Returns the loop whose iterations are the steps; None while more iterations are needed.

    It is the outermost loop that repeats within `LONG_ITERATION_NS`: in a training loop within a
    loop of epochs the inner one, in a simulation whose time step loops over three axes the outer
    one. Without any such loop it is the outermost one that repeats at all. Loops that end soon,
    such as that over the axes or one over five epochs, are left out if there is another one.

    Args:
        loops: The loops that the program is in, the outermost first.
        start_ns: When their iterations began to be counted.
        now_ns: The present time.
    """
    elapsed = now_ns - start_ns
    lasting = [counted for counted in loops if not counted.ends_soon]
    needed = MIN_ITERATIONS if lasting else MIN_LONG_ITERATIONS
    lasting = lasting or list(loops)
    for counted in lasting:
        mean = counted.mean_ns
        if mean is None:
            if elapsed < LONG_ITERATION_NS:
                return None  # it may still repeat in time
        elif mean <= LONG_ITERATION_NS:
            if counted.iterations >= needed or elapsed > MAX_CHOICE_NS:
                return counted
            return None
    if elapsed > MAX_CHOICE_NS or (lasting and lasting[-1].iterations >= MIN_LONG_ITERATIONS):
        return next((one for one in lasting if one.iterations >= MIN_LONG_ITERATIONS), None)
    return None
