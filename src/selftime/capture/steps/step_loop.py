"""A loop whose iterations are steps: their number, their time, and the kinds they have."""

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from selftime.capture.code_loops import CodeLoop, code_loops
from selftime.ledger_format import LOOP_STEP_KIND, UNCOUNTED_STEPS_NAME, UNUSUAL_KIND_SUFFIX

RECENT_ITERATIONS: Final = 64
"""Number of iterations whose median is taken as the usual duration of an iteration."""

MIN_UNDISTURBED_ITERATIONS: Final = 8
"""Number of undisturbed iterations that tell how long the disturbed ones would have taken."""


@dataclass(slots=True, eq=False)
class StepLoop:
    """A loop whose iterations are steps, with the figures of all iterations so far."""

    loop: CodeLoop
    began_ns: int
    """When it began to run, as far as stack samples tell, in ns."""
    steps: int = 0
    unfollowed_ns: int = 0
    """Time in ns in which its iterations were not counted one by one."""
    undisturbed_steps: int = 0
    undisturbed_ns: int = 0
    """Time in ns of the iterations that no recording slowed down."""
    disturbed_steps: int = 0
    disturbed_ns: int = 0
    """Time in ns of the others: in a recording, or while one is written or may begin."""
    last_end_ns: int = 0
    """End of the last iteration in ns."""
    resumed_ns: int = 0
    """Begin of the next one in ns, after selftime's own work between the two."""
    was_main: bool = False
    """Whether its iterations are or were the program's steps, not only a kind of their own."""
    is_followed: bool = True
    """Whether its iterations are reported; they are not if that would cost too much."""
    is_cost_known: bool = False
    """Whether the cost of tracing one of its iterations has been measured, or is being."""
    start: int = field(init=False)
    end: int = field(init=False)
    is_for: bool = field(init=False)
    """Whether the loop takes its next item at its start."""
    inner_ranges: tuple[tuple[int, int], ...] = field(init=False)
    """First and last bytecode offset of each loop within it."""
    _durations_ns: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT_ITERATIONS))

    def __post_init__(self) -> None:
        loop = self.loop
        self.start, self.end, self.is_for = loop.start, loop.end, loop.takes_next_at_start
        self.inner_ranges = tuple(
            (inner.start, inner.end)
            for inner in code_loops(loop.code)
            if inner is not loop and loop.contains(inner.start) and loop.contains(inner.end)
        )

    @property
    def file_and_line(self) -> tuple[str, int]:
        return self.loop.code.co_filename, self.loop.line

    @property
    def kinds(self) -> tuple[Hashable, Hashable, Hashable]:
        """Returns the kinds of its steps while another loop is the main one.

        They are those of usual steps, of unusual ones, and of those before the loop was found.
        """
        file, line = self.file_and_line
        name = f"{LOOP_STEP_KIND} at {Path(file).name}:{line}"
        return name, name + UNUSUAL_KIND_SUFFIX, (UNCOUNTED_STEPS_NAME, file, self.start)

    @property
    def usual_ns(self) -> int:
        """Returns the median duration of the last of the first iterations in ns; 0 without any."""
        durations = sorted(self._durations_ns)
        return durations[len(durations) // 2] if durations else 0

    @property
    def time_ns(self) -> int:
        """Returns the time in ns that the program has spent in it, if nothing had been recorded.

        Gaps between an end and the next start of the loop are left out.
        """
        if self.undisturbed_steps >= MIN_UNDISTURBED_ITERATIONS:
            each = self.undisturbed_ns // self.undisturbed_steps
        else:  # the thread that writes a recording holds up only some of them
            each = self.usual_ns
        disturbed = min(self.disturbed_ns, self.disturbed_steps * each)
        return self.unfollowed_ns + self.undisturbed_ns + disturbed

    def end_iteration(self, now_ns: int, *, is_after_gap: bool, is_disturbed: bool) -> None:
        """Counts an iteration; after a gap the loop has been started anew."""
        took = now_ns - (self.resumed_ns if self.steps else self.began_ns)
        if not self.steps:
            self.unfollowed_ns += took  # several, before it was found
        elif is_disturbed and not is_after_gap:
            self.disturbed_steps += 1
            self.disturbed_ns += took
        elif not is_after_gap:
            self.undisturbed_steps += 1
            self.undisturbed_ns += took
        if not self.is_cost_known and self.steps and not is_after_gap:
            self._durations_ns.append(took)
        self.steps += 1
        self.last_end_ns = self.resumed_ns = now_ns

    def is_iteration(self, last: int, offset: int) -> bool:
        """Returns whether a jump back, from offset `last` to `offset`, belongs to this loop."""
        if last > self.end:
            return False
        return not any(start <= offset and last <= end for start, end in self.inner_ranges)
