"""Finds sends without a receive, receives without a send, and pairs that do not fit."""

from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest

from selftime.analysis.hang.call_comparison import elements
from selftime.analysis.hang.differences import (
    Difference,
    DifferenceKind,
    Variant,
    reached_timeout_ns,
)
from selftime.analysis.hang.job_groups import GroupCalls
from selftime.flight_recorder import Call
from selftime.names.recorded_collectives import SEND

_Calls = list[Call]


def point_to_point_differences(calls: GroupCalls) -> list[Difference]:
    """Returns open sends and receives of a group that have no fitting other end.

    The sends from one rank to another and the receives there go together in their order. If a dump
    lost calls, those that are open go together.
    """
    by_pair: dict[tuple[int, int], dict[bool, _Calls]] = defaultdict(lambda: {True: [], False: []})
    for made in calls.point_to_point.values():
        for call in made:
            ends = (calls.group.global_rank(call.source), calls.group.global_rank(call.destination))
            if ends[0] is not None and ends[1] is not None:
                by_pair[ends[0], ends[1]][call.operation == SEND].append(call)
    found = [
        difference
        for (source, destination), told in sorted(by_pair.items())
        for difference in _of_pair(source, destination, told[True], told[False], calls)
    ]
    return sorted(found, key=lambda one: (one.since_ns or 0, one.sequence, one.waiting))


def _of_pair(
    source: int, destination: int, sends: _Calls, receives: _Calls, calls: GroupCalls
) -> Iterator[Difference]:
    lost = any(calls.first_known.get(rank) != 0 for rank in (source, destination))
    if lost:
        sends = [call for call in sends if call.state.is_open]
        receives = [call for call in receives if call.state.is_open]
    for send, receive in zip_longest(sends, receives):
        opened = [call for call in (send, receive) if call is not None and call.state.is_open]
        if not opened:
            continue
        ends = {source: send, destination: receive}
        there = {rank: call for rank, call in ends.items() if call is not None}
        absent = tuple(rank for rank, call in ends.items() if call is None)
        kind = DifferenceKind.unfinished
        if absent:
            has_dump = absent[0] in calls.point_to_point
            kind = DifferenceKind.unmatched if has_dump else DifferenceKind.no_dump
        elif elements(send.input_sizes) != elements(receive.output_sizes):
            kind = DifferenceKind.sizes
        elif send.input_dtypes != receive.output_dtypes:
            kind = DifferenceKind.dtypes
        yield _difference(kind, there, absent, opened[0], calls)
        return  # what comes later between the two waits for this


def _difference(
    kind: DifferenceKind,
    there: dict[int, Call],
    absent: tuple[int, ...],
    first: Call,
    calls: GroupCalls,
) -> Difference:
    waiting = tuple(sorted(rank for rank, call in there.items() if call.state.is_open))
    created = [there[rank].created_ns for rank in waiting]
    return Difference(
        kind=kind,
        group=calls.group,
        operation=first.operation,
        sequence=first.sequence,
        ranks=absent,
        waiting=waiting,
        entered=tuple(sorted(there)),
        variants=tuple(Variant((rank,), call) for rank, call in sorted(there.items())),
        since_ns=min((instant for instant in created if instant is not None), default=None),
        timeout_ns=reached_timeout_ns(there.values()),
    )
