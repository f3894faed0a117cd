"""Builds slices from begin and end events of threads, and from events of asynchronous spans.

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
from selftime.ingest.events.event_types import NO_INT

BeginOrEndEvent: TypeAlias = tuple[str, int, int, int, int]
"""A begin or end event: phase, time in ns, and the codes of name, category and thread."""
SliceRow: TypeAlias = tuple[int, int, int, int, int]
"""A slice: the codes of name, category and thread, start in ns, duration in ns."""

_TIME_OF_LANE_NEVER_FREE_NS: Final = 2**63 - 1


class StringAndThreadCodes(NamedTuple):
    """The codes of a file's strings and threads; new strings and threads get the next code."""

    strings: dict[str, int]
    threads: dict[tuple[str, str], int]

    def string_code(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def thread_code(self, pid: str, tid: str) -> int:
        return self.threads.setdefault((pid, tid), len(self.threads))


def slices_of_begins_and_ends(
    begin_or_end_events: list[BeginOrEndEvent], code_of_no_name: int, faults: Counter[str]
) -> Columns:
    """Returns slices from begin and end events; an end matches its thread's last open begin.

    An end with another name than the last open begin closes the last open begin of its own name.
    """
    open_of: dict[int, _OpenBeginsOfThread] = {}
    rows: list[SliceRow] = []
    for phase, time, name, category, thread in sorted(
        begin_or_end_events, key=lambda event: event[1]
    ):
        open_begins = open_of.setdefault(thread, _OpenBeginsOfThread())
        if phase == "B":
            open_begins.add(_BeginEvent(time, name, category))
            continue
        last = open_begins.last_open_begin()
        ended = open_begins.last_open_begin(name) or (last if name == code_of_no_name else None)
        if ended is None:
            faults["an end without a begin: left out"] += 1
            continue
        if ended is not last:
            faults["an end event that crosses another event: matched by name"] += 1
        ended.is_open = False
        known = NO_INT not in (ended.time_ns, time)
        duration = time - ended.time_ns if known else NO_INT
        rows.append((ended.name_code, ended.category_code, thread, ended.time_ns, duration))
    for thread, open_begins in open_of.items():
        for begin in open_begins.in_order:
            if begin.is_open:
                faults["a begin without an end: left out of totals"] += 1
                rows.append((begin.name_code, begin.category_code, thread, begin.time_ns, NO_INT))
    return _columns_of_slice_rows(rows)


@dataclass(slots=True)
class _BeginEvent:
    time_ns: int
    name_code: int
    category_code: int
    is_open: bool = True


class _OpenBeginsOfThread:
    """The begin events of one thread that have no end yet, in order and by name."""

    def __init__(self) -> None:
        self.in_order: list[_BeginEvent] = []
        self.by_name_code: dict[int, list[_BeginEvent]] = {}

    def add(self, begin: _BeginEvent) -> None:
        self.in_order.append(begin)
        self.by_name_code.setdefault(begin.name_code, []).append(begin)

    def last_open_begin(self, name: int | None = None) -> _BeginEvent | None:
        """Returns the last begin event that has no end yet; if `name` is given, of that name."""
        begins = self.in_order if name is None else self.by_name_code.get(name, [])
        while begins and not begins[-1].is_open:
            begins.pop()
        return begins[-1] if begins else None


def _columns_of_slice_rows(rows: list[SliceRow]) -> Columns:
    table = np.array(rows, np.int64).reshape(-1, 5)
    columns: Columns = {
        column: table[:, at].astype(np.uint32)
        for at, column in enumerate(("name", "category", "thread"))
    }
    columns["start"], columns["duration"] = table[:, 3], table[:, 4]
    return columns


def slices_and_instants_of_spans(
    async_span_events: list[tuple[BeginOrEndEvent, str]],
    file_codes: StringAndThreadCodes,
    faults: Counter[str],
) -> tuple[Columns, Columns]:
    """Returns the slices of asynchronous spans, without overlap on a lane, and their instants."""
    pids, texts = [pid for pid, _ in file_codes.threads], list(file_codes.strings)
    of_span: dict[tuple[str, int, str], list[BeginOrEndEvent]] = {}
    for event, span in async_span_events:
        _, _, _, category, thread = event
        of_span.setdefault((pids[thread], category, span), []).append(event)
    rows: list[SliceRow] = []
    instants: list[tuple[int, int, int, int]] = []
    free: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for (pid, category, _), begin_or_end_events in sorted(
        of_span.items(), key=lambda item: _first_event_time(item[1])
    ):
        lanes = free.setdefault((pid, category), [])
        lane = (
            heappop(lanes)[1]
            if lanes and lanes[0][0] <= _first_event_time(begin_or_end_events)
            else len(lanes)
        )
        label = (names.ASYNCHRONOUS_CATEGORY_PREFIX + texts[category]).strip()
        thread = file_codes.thread_code(pid, f"{label} {lane + 1}")
        where = (file_codes.string_code(label), thread)
        rows_of_span, marks_of_span = _slices_and_instants_of_span(
            begin_or_end_events, where, faults
        )
        rows += rows_of_span
        instants += marks_of_span
        heappush(lanes, (_lane_free_from_ns(rows_of_span, begin_or_end_events), lane))
    table = np.array(instants, np.int64).reshape(-1, 4)
    columns: Columns = {
        column: table[:, at].astype(np.uint32)
        for at, column in enumerate(("name", "category", "thread"))
    }
    columns["time"] = table[:, 3]
    return _columns_of_slice_rows(rows), columns


def _first_event_time(begin_or_end_events: list[BeginOrEndEvent]) -> int:
    return min(time for _, time, *_ in begin_or_end_events)


def _lane_free_from_ns(rows: list[SliceRow], begin_or_end_events: list[BeginOrEndEvent]) -> int:
    """Returns the time (ns) at which a lane's last span ends; the maximum time if it never ends."""
    if any(duration == NO_INT for *_, duration in rows):
        return _TIME_OF_LANE_NEVER_FREE_NS
    return max(time for _, time, *_ in begin_or_end_events)


def _slices_and_instants_of_span(
    begin_or_end_events: list[BeginOrEndEvent],
    category_and_thread: tuple[int, int],
    faults: Counter[str],
) -> tuple[list[SliceRow], list[tuple[int, int, int, int]]]:
    """Returns slices and instants of one span id; an end matches the last begin of its name."""
    rows: list[SliceRow] = []
    instants: list[tuple[int, int, int, int]] = []
    open_begins: list[tuple[int, int]] = []
    for phase, time, name, *_ in sorted(begin_or_end_events, key=lambda event: event[1]):
        if phase == "n":
            instants.append((name, *category_and_thread, time))
        elif phase == "b":
            open_begins.append((name, time))
        else:
            same = [at for at, (of, _) in enumerate(open_begins) if of == name]
            if not same:
                faults["an end without a begin: left out"] += 1
                continue
            _, begin = open_begins.pop(same[-1])
            known = NO_INT not in (begin, time)
            rows.append((name, *category_and_thread, begin, time - begin if known else NO_INT))
    for name, begin in open_begins:
        faults["a begin without an end: left out of totals"] += 1
        rows.append((name, *category_and_thread, begin, NO_INT))
    return rows, instants
