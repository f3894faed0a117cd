"""Tells how much memory a recording takes at most, apart from what the program takes by itself.

Both are in one process, and nothing says which of them a byte belongs to. So there are two bounds
from above, and the smaller one holds:

- the resident memory beyond the most that the program has used before;
- the growth of small blocks: the profiler stores events in those, and large tensors do not lie in
  them.

Each is less what the program takes by itself: as much for its time as it took between the first
recording and this one, for up to ten times as long as that was. A few steps of a millisecond, in
which a megabyte was taken once, do not show that a second takes a gigabyte.
"""

from dataclasses import dataclass
from time import perf_counter_ns, process_time_ns
from typing import Final

from selftime.capture.facts.free_memory import peak_resident_bytes, resident_bytes
from selftime.capture.facts.malloc import bytes_in_arenas

MAX_GROWTH_EXTRAPOLATION: Final = 10
"""For how many times the time in which it was seen the program's growth is taken to go on."""


@dataclass(frozen=True, slots=True)
class UsedMemory:
    """Memory of this process in bytes; None of what is unknown."""

    resident: int | None
    in_arenas: int | None = None
    """That of small blocks."""


def used_memory() -> UsedMemory:
    return UsedMemory(resident_bytes(), bytes_in_arenas())


@dataclass(frozen=True, slots=True)
class Growth:
    """By how many bytes the program's memory grew in a time without a recording."""

    ns: int = 0
    resident: int = 0
    in_arenas: int = 0

    def resident_in(self, ns: int) -> int:
        """Returns by how many bytes the resident memory grows in a time in ns."""
        return self._in(self.resident, ns)

    def in_arenas_in(self, ns: int) -> int:
        """Returns by how many bytes the small blocks grow in a time in ns."""
        return self._in(self.in_arenas, ns)

    def _in(self, grown: int, ns: int) -> int:
        return grown * min(ns, MAX_GROWTH_EXTRAPOLATION * self.ns) // self.ns if self.ns else 0


@dataclass(frozen=True, slots=True)
class MemoryBefore:
    """What is known of the program's memory when a recording begins."""

    start: UsedMemory
    peak: int
    """The most resident memory that the program has used so far without a recording, in bytes."""
    growth: Growth = Growth()

    def beyond_program(self, now: UsedMemory, ran_ns: int) -> int:
        """Returns how many bytes the recording takes at most beyond what the program takes.

        Args:
            now: The memory of the process. Its resident memory must be known.
            ran_ns: How long the process has run since the recording began, in ns.
        """
        assert now.resident is not None  # noqa: S101 - as the docstring demands
        beyond = now.resident - self.peak - self.growth.resident_in(ran_ns)
        in_arenas = self._growth_in_arenas(now)
        if in_arenas is None:
            return beyond
        return min(beyond, in_arenas - self.growth.in_arenas_in(ran_ns))

    def since_start(self, now: UsedMemory) -> int:
        """Returns how many bytes the recording and the program have taken together, at most."""
        assert now.resident is not None  # noqa: S101 - as above
        taken = now.resident - (self.start.resident or 0)
        in_arenas = self._growth_in_arenas(now)
        return taken if in_arenas is None else min(taken, in_arenas)

    def _growth_in_arenas(self, now: UsedMemory) -> int | None:
        if now.in_arenas is None or self.start.in_arenas is None:
            return None
        return now.in_arenas - self.start.in_arenas


@dataclass(frozen=True, slots=True)
class RunTime:
    """An instant, on the clock and in the processor time of this process, in ns."""

    clock: int
    processor: int

    @classmethod
    def now(cls) -> "RunTime":
        return cls(perf_counter_ns(), process_time_ns())

    def elapsed_ns(self) -> int:
        """Returns how much time has passed since, in ns."""
        return perf_counter_ns() - self.clock

    def ran_ns(self) -> int:
        """Returns for how much of the time since then this process has run, in ns.

        On a machine where other programs take the cores, that is less than has passed.
        """
        return min(self.elapsed_ns(), process_time_ns() - self.processor)


class ProgramMemory:
    """Follows the program's memory between its recordings."""

    def __init__(self) -> None:
        self._peak: int | None = None
        self._growth = Growth()
        self._before_growth: tuple[RunTime, UsedMemory] | None = None
        """When the program began to run without a recording, and its memory then."""

    def begin_growth(self) -> None:
        """Takes note of the memory after a recording; the program goes on without one."""
        self._before_growth = RunTime.now(), used_memory()

    def end_growth(self) -> None:
        """Takes note of how the memory has grown since `begin_growth`, if that was called."""
        if self._before_growth is None:
            return
        (began, before), self._before_growth = self._before_growth, None
        ns, now = began.ran_ns(), used_memory()
        resident = _increase(before.resident, now.resident)
        self._growth = Growth(ns, resident, _increase(before.in_arenas, now.in_arenas))

    def before_recording(self) -> MemoryBefore:
        """Returns what is known right before a recording begins."""
        start = used_memory()
        if self._peak is None:
            self._peak = peak_resident_bytes() or start.resident or 0
        return MemoryBefore(start, max(start.resident or 0, self._peak), self._growth)


def _increase(before: int | None, now: int | None) -> int:
    return 0 if before is None or now is None else max(0, now - before)
