"""The tracks of a trace as Perfetto shows them: processes, threads and streams, counters.

What crosses others of its thread lies on a further track beside it, so that nothing is dropped;
slices whose end is not known lie on one of their own, for nothing could end before them.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.arrays import Ints
from selftime.reports.exports import wire as schema
from selftime.reports.exports.base import ends_of
from selftime.reports.exports.wire import field
from selftime.rewrite.threads import AddedThreads
from selftime.trace import Trace

_MOST: Final = 1 << 31
"""Numbers of processes and threads from here on are no numbers to Perfetto."""
_UNITS: Final = {"bytes": schema.SIZE_BYTES}
_ON_DEVICE: Final = ("device", "device sync", "device annotation")
_NO_END: Final = "no end"


class Tracks:
    """Numbers the tracks of a trace, from `first` on, and describes them.

    `prefix` stands before the names of its processes, as where a file holds several ranks; numbers
    of processes mean nothing then.
    """

    def __init__(self, trace: Trace, *, first: int = 1, prefix: str = "") -> None:
        self._next = first
        self._prefix = prefix
        self.descriptors: list[bytes] = []
        self._processes: dict[str, int] = {}
        self._threads: dict[int, int] = {}
        self._names: dict[int, str] = {}
        """Of threads: their tracks, and what they are called."""
        self._of_track: list[int] = []
        self._describe_threads(trace)
        self.of_slice = self._of_slices(trace)
        """The track of each slice."""
        self.of_track = np.array(self._of_track, np.int64)
        """The track of marks on each track of the trace."""

    @property
    def next(self) -> int:
        """The first number that is not used."""
        return self._next

    def counter(self, process: str | None, name: str, unit: str = "") -> int:
        """A new track for the samples of a counter."""
        told = field(schema.COUNTER_UNIT, _UNITS[unit]) if unit in _UNITS else b""
        parent = None if process is None else self._processes.get(process)
        return self._add(name, parent, field(schema.COUNTERS, told))

    def _add(self, name: str, parent: int | None, more: bytes = b"") -> int:
        number = self._next
        self._next += 1
        above = b"" if parent is None else field(schema.PARENT, parent)
        named = field(schema.NAME, name) if name else b""
        apart = field(schema.MERGING, schema.APART)
        self.descriptors.append(field(schema.UUID, number) + named + above + apart + more)
        return number

    def _describe_threads(self, trace: Trace) -> None:
        device = trace.tracks.filter(pl.col("kind").cast(pl.String).is_in(_ON_DEVICE))
        streams, devices = {*device["thread"]}, {*device["process"]}
        for row in trace.tracks.iter_rows(named=True):
            thread, of_device = row["thread"], row["thread"] in streams
            process = self._process(row, of_device=row["process"] in devices)
            if thread not in self._threads:
                name = row["name"] or (f"stream {row['tid']}" if of_device else row["tid"])
                self._names[thread] = name
                pair = self._pair(row["process"], row["tid"])
                more = b"" if of_device or pair is None else _thread(*pair, name)
                self._threads[thread] = self._add(name, process, more)
            self._of_track.append(self._threads[thread])

    def _process(self, row: dict[str, object], *, of_device: bool) -> int:
        key = str(row["process"])
        if key not in self._processes:
            pid = _number(key)
            called = f"GPU {key}" if of_device else key if pid is None else f"process {key}"
            name, more = str(row["process_name"] or called), b""
            if not of_device and not self._prefix and pid is not None:
                told = field(schema.PROCESS_ID, pid) + field(schema.PROCESS_NAME, name)
                more = field(schema.PROCESS, told)
            self._processes[key] = self._add(self._prefix + name, None, more)
        return self._processes[key]

    def _pair(self, process: str, tid: str) -> tuple[int, int] | None:
        """Process and thread as numbers, if both are some and mean one thread."""
        pid, number = _number(process), _number(tid)
        return None if self._prefix or pid is None or number is None else (pid, number)

    def _of_slices(self, trace: Trace) -> Ints:
        slices = trace.slices
        thread = trace.tracks["thread"].gather(slices["track"]).to_numpy().astype(np.int64)
        ended = slices["duration"].is_not_null().to_numpy()
        start, end = slices["start"].to_numpy(), ends_of(slices)
        lane = AddedThreads(trace, ended, start, end).lane
        lane[~ended] = -1
        found = np.zeros(slices.height, np.int64)
        for number, track in self._threads.items():
            found[(thread == number) & (lane == 0)] = track
        further = np.unique(np.stack([thread, lane], 1)[lane != 0], axis=0)
        for number, at in further.tolist():
            name = f"{self._names[number]} ({_NO_END if at < 0 else at + 1})"
            found[(thread == number) & (lane == at)] = self._add(name, self._threads[number])
        return found

    def packets(self) -> Iterator[bytes]:
        """Each description as a field of a packet."""
        for told in self.descriptors:
            yield field(schema.TRACK, told)


def _number(text: str) -> int | None:
    """A process or thread that Perfetto can take for one; 0 is the idle one to it."""
    is_one = text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST))
    return int(text) if is_one and 0 < int(text) < _MOST else None


def _thread(pid: int, tid: int, name: str) -> bytes:
    told = (
        field(schema.THREAD_PROCESS, pid)
        + field(schema.THREAD_ID, tid)
        + field(schema.THREAD_NAME, name)
    )
    return field(schema.THREAD, told)
