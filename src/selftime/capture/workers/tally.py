"""What one worker process counts: its batches, their parts, and the lines that ran, bounded."""

import time
from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NamedTuple

RECENT: Final = 128
"""Batches that are told one by one, the latest; of all others the sums are known."""

MOST_LINES: Final = 1000
"""Lines that are told apart; a program runs through some dozens in its worker."""


class Phase(IntEnum):
    """What a worker's main thread does."""

    WAITING = 0
    SAMPLES = 1
    COLLATE = 2
    PUT = 3


class Batch(NamedTuple):
    """One batch in a worker; instants in ns of the counter that all processes share."""

    epoch: int
    """How often the worker was told to begin anew."""
    number: int
    """The batch's number in its epoch."""
    asked: int
    """When the worker began to wait for it."""
    begun: int
    """When it was told to make it."""
    collating: int | None
    """When it had its samples."""
    made: int
    put: int
    """When it had put it into the queue, whose thread sends it."""
    samples: int | None
    longest: int | None
    """The sample that took longest, in ns."""
    cpu: int
    """CPU time of the worker's main thread while it made it, in ns."""


class Line(NamedTuple):
    """A line in a phase."""

    phase: int
    file: str
    line: int
    function: str
    own: bool
    """Whether it is the user's and not a library's."""


@dataclass(slots=True)
class Lines:
    """The time in which each line was seen running, in ns."""

    innermost: dict[Line, int] = field(default_factory=dict)
    """Of the user's lines on the stack the innermost."""
    around: dict[Line, int] = field(default_factory=dict)
    """Any of them."""
    seen: dict[Line, int] = field(default_factory=dict)
    """How often it was the innermost."""

    def add(self, stack: list[Line], time: int) -> None:
        """A stack that was seen, innermost first."""
        if stack and (stack[0] in self.innermost or len(self.innermost) < MOST_LINES):
            self.innermost[stack[0]] = self.innermost.get(stack[0], 0) + time
            self.seen[stack[0]] = self.seen.get(stack[0], 0) + 1
        for line in set(stack):
            if line in self.around or len(self.around) < MOST_LINES:
                self.around[line] = self.around.get(line, 0) + time

    def rows(self) -> list[list[Any]]:
        return [
            [*line, self.innermost.get(line, 0), time, self.seen.get(line, 0)]
            for line, time in self.around.items()
        ]


@dataclass(slots=True)
class Times:
    """Sums over batches, in ns."""

    batches: int = 0
    samples: int = 0
    waiting: int = 0
    making: int = 0
    """Samples; the rest of a batch where it is not known when these were there."""
    collating: int = 0
    putting: int = 0
    cpu: int = 0
    longest: int = 0
    """The longest sample; 0 where samples were not told apart."""
    serialising: int = 0
    """The queue's own thread, by samples: making bytes of batches, copying tensors."""
    sending: int = 0
    lines: Lines = field(default_factory=Lines)

    def add(self, batch: Batch) -> None:
        joined = batch.made if batch.collating is None else batch.collating
        self.batches += 1
        self.samples += batch.samples or 0
        self.waiting += batch.begun - batch.asked
        self.making += joined - batch.begun
        self.collating += batch.made - joined
        self.putting += batch.put - batch.made
        self.cpu += batch.cpu
        self.longest = max(self.longest, batch.longest or 0)

    def told(self) -> dict[str, Any]:
        names = [name for name in self.__slots__ if name != "lines"]
        return {**{name: getattr(self, name) for name in names}, "lines": self.lines.rows()}


@dataclass(slots=True)
class Tally:
    """Everything that a worker has to tell."""

    first: Times = field(default_factory=Times)
    """Of the first batch, in which files are opened and caches filled."""
    rest: Times = field(default_factory=Times)
    recent: deque[Batch] = field(default_factory=lambda: deque(maxlen=RECENT))
    failed: int = 0
    """Batches that ended with an exception."""
    began: int = field(default_factory=time.perf_counter_ns)

    @property
    def times(self) -> Times:
        """Where what happens now belongs."""
        return self.rest if self.first.batches else self.first

    def add(self, batch: Batch) -> None:
        self.times.add(batch)
        self.recent.append(batch)

    def told(self) -> dict[str, Any]:
        return {
            "began": self.began,
            "told": time.perf_counter_ns(),
            "failed": self.failed,
            "first": self.first.told(),
            "rest": self.rest.told(),
            "recent": [list(batch) for batch in tuple(self.recent)],
        }
