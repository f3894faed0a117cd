"""Stores the measurements of one DataLoader worker: times of its batches and source lines."""

import time
from collections import deque
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final, NamedTuple

MAX_KEPT_BATCHES: Final = 128
"""Number of latest batches of a worker that are kept singly; earlier ones are only summed."""

MAX_LINES_PER_WORKER: Final = 1000
"""Largest number of distinct source lines of a worker that are kept; most workers run some
dozens."""


class WorkerPhase(IntEnum):
    """A phase of a DataLoader worker's main thread, such as waiting or collation."""

    WAITING = 0
    SAMPLES = 1
    COLLATE = 2
    PUT = 3


class WorkerBatch(NamedTuple):
    """One batch of a DataLoader worker, with times in ns of `time.perf_counter_ns`."""

    epoch: int
    """Number of times that the worker was restarted for a new epoch."""
    number: int
    """Number of the batch within its epoch."""
    requested: int
    """Time in ns at which the worker began to wait for the batch's sample indices."""
    started: int
    """Time in ns at which the worker received the sample indices."""
    collating: int | None
    """Time in ns at which all samples were loaded and collation began; None if unknown."""
    made: int
    put: int
    """Time in ns at which the batch was put into the output queue, whose thread sends it."""
    samples: int | None
    longest: int | None
    """Longest time in ns that loading one sample took; None if samples were not timed."""
    cpu: int
    """CPU time in ns that the worker's main thread used for the batch."""


class WorkerLine(NamedTuple):
    """A source line that a worker ran, and the phase in which it ran."""

    phase: int
    file: str
    line: int
    function: str
    own: bool
    """Whether the line belongs to the user's code."""


@dataclass(slots=True)
class WorkerLineTimes:
    """Estimated time in ns of each source line of a worker, from stack samples."""

    innermost: dict[WorkerLine, int] = field(default_factory=dict)
    """Time in ns during which the line was the innermost line of user code on the stack."""
    on_stack: dict[WorkerLine, int] = field(default_factory=dict)
    """Time in ns during which the line was on the stack, at any depth."""
    sample_counts: dict[WorkerLine, int] = field(default_factory=dict)
    """Number of stack samples in which the line was the innermost line of user code."""

    def add_sample(self, stack: list[WorkerLine], time_ns: int) -> None:
        """Adds `time_ns` to the lines of a sampled stack, which begins with the innermost line."""
        if stack and (stack[0] in self.innermost or len(self.innermost) < MAX_LINES_PER_WORKER):
            self.innermost[stack[0]] = self.innermost.get(stack[0], 0) + time_ns
            self.sample_counts[stack[0]] = self.sample_counts.get(stack[0], 0) + 1
        for line in set(stack):
            if line in self.on_stack or len(self.on_stack) < MAX_LINES_PER_WORKER:
                self.on_stack[line] = self.on_stack.get(line, 0) + time_ns

    def as_json_rows(self) -> list[list[Any]]:
        return [
            [*line, self.innermost.get(line, 0), time, self.sample_counts.get(line, 0)]
            for line, time in self.on_stack.items()
        ]


@dataclass(slots=True)
class WorkerBatchSums:
    """Sums over a worker's batches: numbers of batches and samples, and times in ns."""

    batches: int = 0
    samples: int = 0
    waiting: int = 0
    making: int = 0
    """Time in ns to load samples; includes collation if the time of its start is unknown."""
    collating: int = 0
    putting: int = 0
    cpu: int = 0
    longest: int = 0
    """Longest time in ns to load one sample; 0 if samples were not timed singly."""
    serialising: int = 0
    """Estimated time in ns in which the queue's thread pickled batches, from stack samples."""
    sending: int = 0
    lines: WorkerLineTimes = field(default_factory=WorkerLineTimes)

    def add_batch(self, batch: WorkerBatch) -> None:
        collate_start = batch.made if batch.collating is None else batch.collating
        self.batches += 1
        self.samples += batch.samples or 0
        self.waiting += batch.started - batch.requested
        self.making += collate_start - batch.started
        self.collating += batch.made - collate_start
        self.putting += batch.put - batch.made
        self.cpu += batch.cpu
        self.longest = max(self.longest, batch.longest or 0)

    def as_json(self) -> dict[str, Any]:
        names = [name for name in self.__slots__ if name != "lines"]
        return {**{name: getattr(self, name) for name in names}, "lines": self.lines.as_json_rows()}


@dataclass(slots=True)
class WorkerTimes:
    """All measurements of a DataLoader worker process: its latest batches, and sums over all."""

    first: WorkerBatchSums = field(default_factory=WorkerBatchSums)
    """Sums over only the worker's first batch, which includes opening files and filling caches."""
    rest: WorkerBatchSums = field(default_factory=WorkerBatchSums)
    recent: deque[WorkerBatch] = field(default_factory=lambda: deque(maxlen=MAX_KEPT_BATCHES))
    failed: int = 0
    """Number of batches that raised an exception."""
    start_ns: int = field(default_factory=time.perf_counter_ns)

    @property
    def current_sums(self) -> WorkerBatchSums:
        """Returns the sums for the next batch: `first` for the first batch, then `rest`."""
        return self.rest if self.first.batches else self.first

    def add_batch(self, batch: WorkerBatch) -> None:
        self.current_sums.add_batch(batch)
        self.recent.append(batch)

    def as_json(self) -> dict[str, Any]:
        return {
            "began": self.start_ns,
            "written": time.perf_counter_ns(),
            "failed": self.failed,
            "first": self.first.as_json(),
            "rest": self.rest.as_json(),
            "recent": [list(batch) for batch in tuple(self.recent)],
        }
