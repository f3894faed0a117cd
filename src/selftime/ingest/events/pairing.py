"""Build slices from pairs of events: begin and end events, asynchronous spans.

Begin and end events of one thread (phases B and E) nest. Those of an asynchronous span (b, n and e)
share an id, across threads. Spans overlap freely, so each process gets lanes for each category of
them, as many as there are spans at the same time.
"""

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from selftime import names
from selftime.ingest.events.arguments import Columns
from selftime.ingest.events.event import NO_INT

HalfEvent: TypeAlias = tuple[str, int, int, int, int]
"""A begin or end event: phase, time, name, category, thread."""
SliceRow: TypeAlias = tuple[int, int, int, int, int]
"""A slice: name, category, thread, start, duration."""

_NEVER: Final = 2**63 - 1


class FileCodes(NamedTuple):
    """The file's codes of strings and threads; lanes add new ones."""

    strings: dict[str, int]
    threads: dict[tuple[str, str], int]

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def thread(self, pid: str, tid: str) -> int:
        return self.threads.setdefault((pid, tid), len(self.threads))


def pair_halves(halves: list[HalfEvent], nameless: int, faults: Counter[str]) -> Columns:
    """Returns slices from begin and end events: an end closes its thread's last open begin.

    An end with another name than the last open begin closes the last open begin of its own name.
    """
    open_of: dict[int, _OpenBegins] = {}
    rows: list[SliceRow] = []
    for phase, time, name, category, thread in sorted(halves, key=lambda half: half[1]):
        open_begins = open_of.setdefault(thread, _OpenBegins())
        if phase == "B":
            open_begins.add(_Begin(time, name, category))
            continue
        last = open_begins.last()
        ended = open_begins.last(name) or (last if name == nameless else None)
        if ended is None:
            faults["an end without a begin: left out"] += 1
            continue
        if ended is not last:
            faults["an end that crosses another event: joined by name"] += 1
        ended.open = False
        known = NO_INT not in (ended.time, time)
        duration = time - ended.time if known else NO_INT
        rows.append((ended.name, ended.category, thread, ended.time, duration))
    for thread, open_begins in open_of.items():
        for begin in open_begins.all:
            if begin.open:
                faults["a begin without an end: left out of totals"] += 1
                rows.append((begin.name, begin.category, thread, begin.time, NO_INT))
    return _slices(rows)


@dataclass(slots=True)
class _Begin:
    time: int
    name: int
    category: int
    open: bool = True


class _OpenBegins:
    """The begins of one thread, in order and by name; closed ones are removed from the top."""

    def __init__(self) -> None:
        self.all: list[_Begin] = []
        self.named: dict[int, list[_Begin]] = {}

    def add(self, begin: _Begin) -> None:
        self.all.append(begin)
        self.named.setdefault(begin.name, []).append(begin)

    def last(self, name: int | None = None) -> _Begin | None:
        """Returns the last open begin, of all or of the given name."""
        begins = self.all if name is None else self.named.get(name, [])
        while begins and not begins[-1].open:
            begins.pop()
        return begins[-1] if begins else None


def _slices(rows: list[SliceRow]) -> Columns:
    table = np.array(rows, np.int64).reshape(-1, 5)
    columns: Columns = {
        column: table[:, at].astype(np.uint32)
        for at, column in enumerate(("name", "category", "thread"))
    }
    columns["start"], columns["duration"] = table[:, 3], table[:, 4]
    return columns


def span_rows(
    spans: list[tuple[HalfEvent, str]], numbers: FileCodes, faults: Counter[str]
) -> tuple[Columns, Columns]:
    """Returns the slices of asynchronous spans, on lanes, and their instants."""
    pids, texts = [pid for pid, _ in numbers.threads], list(numbers.strings)
    of_span: dict[tuple[str, int, str], list[HalfEvent]] = {}
    for half, span in spans:
        _, _, _, category, thread = half
        of_span.setdefault((pids[thread], category, span), []).append(half)
    rows: list[SliceRow] = []
    marks: list[tuple[int, int, int, int]] = []
    free: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for (pid, category, _), halves in sorted(of_span.items(), key=lambda item: _begin(item[1])):
        lanes = free.setdefault((pid, category), [])
        lane = heappop(lanes)[1] if lanes and lanes[0][0] <= _begin(halves) else len(lanes)
        label = (names.ASYNCHRONOUS + texts[category]).strip()
        thread = numbers.thread(pid, f"{label} {lane + 1}")
        where = (numbers.string(label), thread)
        rows_of_span, marks_of_span = _rows_of_span(halves, where, faults)
        rows += rows_of_span
        marks += marks_of_span
        heappush(lanes, (_end(rows_of_span, halves), lane))
    table = np.array(marks, np.int64).reshape(-1, 4)
    columns: Columns = {
        column: table[:, at].astype(np.uint32)
        for at, column in enumerate(("name", "category", "thread"))
    }
    columns["time"] = table[:, 3]
    return _slices(rows), columns


def _begin(halves: list[HalfEvent]) -> int:
    return min(time for _, time, *_ in halves)


def _end(rows: list[SliceRow], halves: list[HalfEvent]) -> int:
    """Returns when a lane is free again: never, if a span on it has no end."""
    if any(duration == NO_INT for *_, duration in rows):
        return _NEVER
    return max(time for _, time, *_ in halves)


def _rows_of_span(
    halves: list[HalfEvent], where: tuple[int, int], faults: Counter[str]
) -> tuple[list[SliceRow], list[tuple[int, int, int, int]]]:
    """Returns the slices and instants of one span id; an end closes the last of its name."""
    rows: list[SliceRow] = []
    marks: list[tuple[int, int, int, int]] = []
    open_begins: list[tuple[int, int]] = []
    for phase, time, name, *_ in sorted(halves, key=lambda half: half[1]):
        if phase == "n":
            marks.append((name, *where, time))
        elif phase == "b":
            open_begins.append((name, time))
        else:
            same = [at for at, (of, _) in enumerate(open_begins) if of == name]
            if not same:
                faults["an end without a begin: left out"] += 1
                continue
            _, begin = open_begins.pop(same[-1])
            known = NO_INT not in (begin, time)
            rows.append((name, *where, begin, time - begin if known else NO_INT))
    for name, begin in open_begins:
        faults["a begin without an end: left out of totals"] += 1
        rows.append((name, *where, begin, NO_INT))
    return rows, marks
