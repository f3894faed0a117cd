"""Finds the same events in two recordings of a loop's steps, by the order of their names.

A process group runs its collectives on the host in several threads, each in the thread that is free
(Gloo's do so). Which of them ran one is another in each recording: these threads count as one, and
their collectives are in order of start.
"""

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Final, NamedTuple

import numpy as np

from selftime import names
from selftime.array_types import Flags, Ints
from selftime.capture.trace_file.event_columns import HOST, EventColumns

MAX_COMPARED_PAIRS: Final = 4_000_000
"""Largest product of the numbers of events between an equal begin and an equal end of two steps
that are compared one by one; above it, these events are not matched."""
_CALL_PREFIX: Final = "c10d::"
"""Prefix of the operators with which a program calls for collectives, in a thread of its own."""
_PROCESS_GROUPS: Final = -1
"""Stands for all threads in which process groups run collectives."""


class MatchedEvents(NamedTuple):
    """Row numbers of the same events in two recordings, in the same order."""

    first: Ints
    second: Ints


def match_steps(
    first: EventColumns, second: EventColumns, steps: list[tuple[int, int]]
) -> MatchedEvents:
    """Returns the same events of two recordings.

    On the host, an event's name, thread and place in the order of a step's names identify it, where
    the threads of process groups are one; on a device, the launch that it comes from, its name and
    its place among the launch's events do.

    Args:
        first: The events of one recording.
        second: The events of the other.
        steps: Pairs of the numbers of the same step in the first and in the second recording.
    """
    found = [_match_step(first, second, *numbers) for numbers in steps]
    on_host = MatchedEvents(
        np.concatenate([pair.first for pair in found] or [np.empty(0, np.int64)]),
        np.concatenate([pair.second for pair in found] or [np.empty(0, np.int64)]),
    )
    on_device = _match_device_work(first, second, on_host)
    return MatchedEvents(
        np.concatenate([on_host.first, on_device.first]),
        np.concatenate([on_host.second, on_device.second]),
    )


def _match_step(
    first: EventColumns, second: EventColumns, first_step: int, second_step: int
) -> MatchedEvents:
    """Returns the same events on the host in one step of each recording."""
    mine, theirs = _rows_by_thread(first, first_step), _rows_by_thread(second, second_step)
    pairs = [
        _match_rows(first, second, mine[thread], theirs[thread])
        for thread in mine.keys() & theirs.keys()
    ]
    return MatchedEvents(
        np.concatenate([pair.first for pair in pairs] or [np.empty(0, np.int64)]),
        np.concatenate([pair.second for pair in pairs] or [np.empty(0, np.int64)]),
    )


def _rows_by_thread(events: EventColumns, step: int) -> dict[int, Ints]:
    """Returns the rows of a step's events on each host thread."""
    start, end = events.step_spans_ns[step]
    at, after = np.searchsorted(events.start_ns, [start, end])
    rows = np.arange(at, after)[events.is_on_host[at:after]]
    threads = events.thread[rows]
    # `np.unique` would import a module here, in the writer's thread: a process that is forked
    # meanwhile waits for the lock of that import for ever.
    by_thread = {thread: rows[threads == thread] for thread in set(threads.tolist())}
    run = []
    for thread, own in list(by_thread.items()):
        told = [events.name[row] for row in own.tolist()]
        is_one = np.array([names.is_host_collective(name) for name in told])
        if is_one.any() and not any(name.startswith(_CALL_PREFIX) for name in told):
            run.append((by_thread.pop(thread), is_one))
    if run:
        by_thread[_PROCESS_GROUPS] = _rows_by_collective(events, run)
    return by_thread


def _rows_by_collective(events: EventColumns, threads: list[tuple[Ints, Flags]]) -> Ints:
    """Returns the rows of several threads, each behind the collective that it comes after."""
    rows = np.concatenate([own for own, _ in threads])
    begins = [events.start_ns[own[np.maximum(_last_place(is_one), 0)]] for own, is_one in threads]
    return np.asarray(rows[np.argsort(np.concatenate(begins), kind="stable")], np.int64)


def _last_place(is_one: Flags) -> Ints:
    """Returns for each place the last one, up to it, that a flag marks; -1 without one."""
    return np.asarray(np.maximum.accumulate(np.where(is_one, np.arange(is_one.size), -1)), np.int64)


def _match_rows(
    first: EventColumns, second: EventColumns, first_rows: Ints, second_rows: Ints
) -> MatchedEvents:
    """Returns the rows that have the same names in the same order."""
    mine = [first.name[row] for row in first_rows.tolist()]
    theirs = [second.name[row] for row in second_rows.tolist()]
    if mine == theirs:
        return MatchedEvents(first_rows, second_rows)
    places = list(_equal_places(mine, theirs))
    one, other = np.array(places, np.int64).reshape(-1, 2).T
    return MatchedEvents(first_rows[one], second_rows[other])


def _equal_places(mine: list[str], theirs: list[str]) -> Iterator[tuple[int, int]]:
    """Yields the places of the same names in two lists: equal begins and ends, blocks between."""
    shorter = min(len(mine), len(theirs))
    begin = next((at for at in range(shorter) if mine[at] != theirs[at]), shorter)
    rest = shorter - begin
    end = next((at for at in range(rest) if mine[-1 - at] != theirs[-1 - at]), rest)
    yield from ((at, at) for at in range(begin))
    my_rest, their_rest = mine[begin : len(mine) - end], theirs[begin : len(theirs) - end]
    if len(my_rest) * len(their_rest) <= MAX_COMPARED_PAIRS:
        matcher = SequenceMatcher(None, my_rest, their_rest, autojunk=False)
        for block in matcher.get_matching_blocks():
            yield from ((begin + block.a + at, begin + block.b + at) for at in range(block.size))
    yield from ((len(mine) - at, len(theirs) - at) for at in range(end, 0, -1))


def _match_device_work(
    first: EventColumns, second: EventColumns, calls: MatchedEvents
) -> MatchedEvents:
    """Returns the same events on devices, given the same events on the host."""
    mine, theirs = _rows_by_correlation(first), _rows_by_correlation(second)
    pairs = [
        (one, other)
        for call, other_call in zip(
            first.correlation[calls.first].tolist(),
            second.correlation[calls.second].tolist(),
            strict=True,
        )
        if call in mine and other_call in theirs
        for one, other in _same_work(first, second, mine.pop(call), theirs[other_call])
    ]
    one, other = np.array(pairs, np.int64).reshape(-1, 2).T
    return MatchedEvents(one, other)


def _rows_by_correlation(events: EventColumns) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    of_device = np.flatnonzero((events.device != HOST) & (events.correlation != 0))
    for row, correlation in zip(
        of_device.tolist(), events.correlation[of_device].tolist(), strict=True
    ):
        rows.setdefault(correlation, []).append(row)
    return rows


def _same_work(
    first: EventColumns, second: EventColumns, mine: list[int], theirs: list[int]
) -> Iterator[tuple[int, int]]:
    """Yields the rows of one launch's work in both recordings, if it has the same names."""
    if [first.name[row] for row in mine] == [second.name[row] for row in theirs]:
        yield from zip(mine, theirs, strict=True)
