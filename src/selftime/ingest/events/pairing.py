"""Slices from events that hold one end of them each: begins and ends, asynchronous spans.

A begin and an end of one thread (phases B and E) nest. Those of an asynchronous span (b, n and e)
are joined by their id, whatever the thread; spans overlap freely, so each process has lanes of its
own for every category of them, as many as are needed for spans that last at the same time.
"""

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Final, NamedTuple, TypeAlias

import numpy as np

from selftime import names
from selftime.ingest.events.arguments import Columns
from selftime.ingest.events.event import NO_INT

Half: TypeAlias = tuple[str, int, int, int, int]
"""Phase, time, name, category, thread."""
Row: TypeAlias = tuple[int, int, int, int, int]
"""Name, category, thread, start, duration."""

_NEVER: Final = 2**63 - 1


class Numbers(NamedTuple):
    """The file's numbers of strings and threads, which lanes add to."""

    strings: dict[str, int]
    threads: dict[tuple[str, str], int]

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def thread(self, pid: str, tid: str) -> int:
        return self.threads.setdefault((pid, tid), len(self.threads))


def paired(halves: list[Half], nameless: int, faults: Counter[str]) -> Columns:
    """Complete events from begins and ends: an end closes the last open begin of its thread.

    An end that names another event than the last begun closes the last begun of that name.
    """
    open_of: dict[int, _Open] = {}
    rows: list[Row] = []
    for phase, time, name, category, thread in sorted(halves, key=lambda half: half[1]):
        begun = open_of.setdefault(thread, _Open())
        if phase == "B":
            begun.add(_Begin(time, name, category))
            continue
        last = begun.last()
        ended = begun.last(name) or (last if name == nameless else None)
        if ended is None:
            faults["an end without a begin: left out"] += 1
            continue
        if ended is not last:
            faults["an end that crosses another event: joined by name"] += 1
        ended.open = False
        known = NO_INT not in (ended.time, time)
        duration = time - ended.time if known else NO_INT
        rows.append((ended.name, ended.category, thread, ended.time, duration))
    for thread, begun in open_of.items():
        for begin in begun.all:
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


class _Open:
    """The begins of one thread, in order and by name; those ended are let go from the top."""

    def __init__(self) -> None:
        self.all: list[_Begin] = []
        self.named: dict[int, list[_Begin]] = {}

    def add(self, begin: _Begin) -> None:
        self.all.append(begin)
        self.named.setdefault(begin.name, []).append(begin)

    def last(self, name: int | None = None) -> _Begin | None:
        """The last that is open, of all or of that name."""
        begins = self.all if name is None else self.named.get(name, [])
        while begins and not begins[-1].open:
            begins.pop()
        return begins[-1] if begins else None


def _slices(rows: list[Row]) -> Columns:
    table = np.array(rows, np.int64).reshape(-1, 5)
    columns: Columns = {
        column: table[:, at].astype(np.uint32)
        for at, column in enumerate(("name", "category", "thread"))
    }
    columns["start"], columns["duration"] = table[:, 3], table[:, 4]
    return columns


def span_rows(
    spans: list[tuple[Half, str]], numbers: Numbers, faults: Counter[str]
) -> tuple[Columns, Columns]:
    """The slices of asynchronous spans, on lanes, and the marks within them, as instants."""
    pids, texts = [pid for pid, _ in numbers.threads], list(numbers.strings)
    of_span: dict[tuple[str, int, str], list[Half]] = {}
    for half, span in spans:
        _, _, _, category, thread = half
        of_span.setdefault((pids[thread], category, span), []).append(half)
    rows: list[Row] = []
    marks: list[tuple[int, int, int, int]] = []
    free: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for (pid, category, _), halves in sorted(of_span.items(), key=lambda item: _begin(item[1])):
        lanes = free.setdefault((pid, category), [])
        lane = heappop(lanes)[1] if lanes and lanes[0][0] <= _begin(halves) else len(lanes)
        told = (names.ASYNCHRONOUS + texts[category]).strip()
        thread = numbers.thread(pid, f"{told} {lane + 1}")
        where = (numbers.string(told), thread)
        own, inner = _of_one_span(halves, where, faults)
        rows += own
        marks += inner
        heappush(lanes, (_end(own, halves), lane))
    table = np.array(marks, np.int64).reshape(-1, 4)
    columns: Columns = {
        column: table[:, at].astype(np.uint32)
        for at, column in enumerate(("name", "category", "thread"))
    }
    columns["time"] = table[:, 3]
    return _slices(rows), columns


def _begin(halves: list[Half]) -> int:
    return min(time for _, time, *_ in halves)


def _end(rows: list[Row], halves: list[Half]) -> int:
    """When a lane is free again: never, if a span on it has no end."""
    if any(duration == NO_INT for *_, duration in rows):
        return _NEVER
    return max(time for _, time, *_ in halves)


def _of_one_span(
    halves: list[Half], where: tuple[int, int], faults: Counter[str]
) -> tuple[list[Row], list[tuple[int, int, int, int]]]:
    """The slices and the marks of one id: ends close the last begun of their name."""
    rows: list[Row] = []
    marks: list[tuple[int, int, int, int]] = []
    begun: list[tuple[int, int]] = []
    for phase, time, name, *_ in sorted(halves, key=lambda half: half[1]):
        if phase == "n":
            marks.append((name, *where, time))
        elif phase == "b":
            begun.append((name, time))
        else:
            same = [at for at, (of, _) in enumerate(begun) if of == name]
            if not same:
                faults["an end without a begin: left out"] += 1
                continue
            _, begin = begun.pop(same[-1])
            known = NO_INT not in (begin, time)
            rows.append((name, *where, begin, time - begin if known else NO_INT))
    for name, begin in begun:
        faults["a begin without an end: left out of totals"] += 1
        rows.append((name, *where, begin, NO_INT))
    return rows, marks
