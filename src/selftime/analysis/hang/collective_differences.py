"""Finds in a group the first collective that ranks called differently, or that not all entered."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from selftime.analysis.hang.call_comparison import Found, compare_calls, elements
from selftime.analysis.hang.differences import (
    Difference,
    DifferenceKind,
    Variant,
    first_entry_ns,
    reached_timeout_ns,
    waiting_ranks,
)
from selftime.analysis.hang.job_groups import GroupCalls, JobGroup
from selftime.flight_recorder import Call, CallState
from selftime.names.recorded_collectives import needs_every_rank

_MOST_SHIFTED: Final = 8
"""Largest number of collectives that a rank left out, or made more, that is recognised."""
_SHIFTABLE: Final = frozenset({DifferenceKind.operation, DifferenceKind.sizes})
_HARMLESS: Final = frozenset({DifferenceKind.shapes})


@dataclass(frozen=True, slots=True)
class _Numbered:
    """What the ranks of a group did under one number."""

    group: JobGroup
    number: int
    present: dict[int, tuple[Call, ...]]
    absent: tuple[int, ...]
    """Ranks whose dump shows that they have not entered it."""
    unknown: tuple[int, ...]
    """Ranks without a dump that tells."""

    @property
    def operation(self) -> str:
        """Returns the collective that most ranks called, the first of those made together."""
        names = [made[0].operation for _, made in sorted(self.present.items())]
        return max(names, key=names.count)

    @property
    def waiting(self) -> tuple[int, ...]:
        return waiting_ranks(self.present)


def collective_differences(
    calls: GroupCalls, *, knows_uneven_sizes: bool = True
) -> list[Difference]:
    """Returns how the ranks of a group differ in its collectives, in the order of their numbers."""
    numbered = list(_by_number(calls))
    differing = [
        (one, compared)
        for one in numbered
        if (compared := _compared(one, calls, knows_uneven_sizes=knows_uneven_sizes)) is not None
    ]
    real = [pair for pair in differing if pair[1][0] not in _HARMLESS]
    found = [_mismatch(*real[0], calls, later=len(real) - 1)] if real else []
    found += [_mismatch(*pair, calls) for pair in differing[:1] if pair not in real]
    stopped = _first_not_ended_by_all(numbered)
    if stopped is not None and not any(
        stopped.kind is DifferenceKind.unfinished and one.sequence == stopped.sequence
        for one in found
        if one.kind not in _HARMLESS
    ):
        found.append(stopped)
    lines = _first_on_different_lines(numbered)
    if lines is not None and stopped is not None and lines.sequence <= stopped.sequence:
        found.append(lines)
    return sorted(found, key=lambda one: (one.sequence, one.kind))


def older_dumps(calls: GroupCalls) -> tuple[int, ...]:
    """Returns ranks whose dump was made before those of others, which have seen them go on.

    A collective that needs every rank completed elsewhere, and they have not entered it.
    """
    return tuple(
        sorted({rank for one in _by_number(calls) if _is_proved(one) for rank in one.absent})
    )


def _by_number(calls: GroupCalls) -> Iterator[_Numbered]:
    numbers = sorted({number for made in calls.collectives.values() for number in made})
    for number in numbers:
        present = {rank: made[number] for rank, made in calls.collectives.items() if number in made}
        absent = tuple(
            rank
            for rank, first in sorted(calls.first_known.items())
            if first <= number and calls.last_number[rank] < number
        )
        others = set(calls.group.ranks) - present.keys() - set(absent)
        unknown = tuple(sorted(rank for rank in others if not _has_gone_on(rank, number, calls)))
        yield _Numbered(calls.group, number, present, absent, unknown)


def _has_gone_on(rank: int, number: int, calls: GroupCalls) -> bool:
    """Returns whether a rank has a later collective, so that this one was made and is lost."""
    return calls.last_number.get(rank, -1) > number


def _is_proved(one: _Numbered) -> bool:
    """Returns whether every rank has entered a collective, because it completed on one."""
    return any(
        call.state is CallState.completed and needs_every_rank(call.operation)
        for made in one.present.values()
        for call in made
    )


def _compared(one: _Numbered, calls: GroupCalls, *, knows_uneven_sizes: bool) -> Found | None:
    """Compares calls that were made together one by one, as far as all have one."""
    ranks = sorted(one.present)
    for made in zip_longest(*(one.present[rank] for rank in ranks)):
        by_rank = {rank: call for rank, call in zip(ranks, made, strict=True) if call is not None}
        if len(by_rank) > 1:
            found = compare_calls(by_rank, calls.group, knows_uneven_sizes=knows_uneven_sizes)
            if found is not None:
                return found
    return None


def _mismatch(one: _Numbered, found: Found, calls: GroupCalls, later: int = 0) -> Difference:
    kind, ranks, variants = found
    if kind in _SHIFTABLE:
        kind = _shift(one.number, variants, calls, has_majority=bool(ranks)) or kind
    return _difference(one, kind, ranks, variants, later)


def _difference(
    one: _Numbered,
    kind: DifferenceKind,
    ranks: tuple[int, ...],
    variants: tuple[Variant, ...] = (),
    later: int = 0,
) -> Difference:
    operation = variants[0].call.operation if variants else one.operation
    calls = [call for made in one.present.values() for call in made]
    return Difference(
        kind=kind,
        group=one.group,
        operation=operation,
        sequence=one.number,
        ranks=ranks,
        waiting=one.waiting,
        entered=tuple(sorted(one.present)),
        variants=variants,
        since_ns=first_entry_ns(one.present, one.waiting),
        timeout_ns=reached_timeout_ns(calls),
        later=later,
    )


def _first_not_ended_by_all(numbered: list[_Numbered]) -> Difference | None:
    """Returns the first collective that not every rank has entered, or in which ranks wait.

    One in which ranks wait goes before one that ended on those that entered it.
    """
    stopped = []
    proved = max((one.number for one in numbered if _is_proved(one)), default=-1)
    for one in numbered:
        unknown = () if one.number <= proved else one.unknown
        partly = _partly_entered(one)
        if one.absent and one.number > proved:
            stopped.append(_difference(one, DifferenceKind.missing, one.absent))
        elif partly is not None:
            stopped.append(partly)
        elif one.waiting and unknown:
            stopped.append(_difference(one, DifferenceKind.no_dump, unknown))
        elif one.waiting:
            stopped.append(_unfinished(one))
    return next((one for one in stopped if one.is_open), stopped[0] if stopped else None)


def _partly_entered(one: _Numbered) -> Difference | None:
    """Returns ranks that made fewer of the calls which others made together; None if none did."""
    counts = {rank: len(made) for rank, made in one.present.items()}
    least, most = min(counts.values()), max(counts.values())
    if least == most:
        return None
    fewer = tuple(sorted(rank for rank, count in counts.items() if count == least))
    more = {rank: made[least:] for rank, made in one.present.items() if rank not in fewer}
    waiting = waiting_ranks(more)
    return Difference(
        kind=DifferenceKind.missing,
        group=one.group,
        operation=next(iter(more.values()))[0].operation,
        sequence=one.number,
        ranks=fewer,
        waiting=waiting,
        entered=tuple(sorted(more)),
        since_ns=first_entry_ns(more, waiting),
        timeout_ns=reached_timeout_ns(call for made in more.values() for call in made),
    )


def _unfinished(one: _Numbered) -> Difference:
    """Returns a collective that all entered; odd are the ranks whose device has not started it."""
    states = {rank: {call.state for call in made} for rank, made in one.present.items()}
    started = {CallState.started, CallState.completed, CallState.ended}
    behind = tuple(sorted(rank for rank, told in states.items() if not told & started))
    variants = tuple(Variant((rank,), made[0]) for rank, made in sorted(one.present.items()))
    return _difference(
        one,
        DifferenceKind.unfinished,
        behind if len(behind) < len(states) else (),
        variants,
    )


def _shift(
    number: int, variants: tuple[Variant, ...], calls: GroupCalls, *, has_majority: bool
) -> DifferenceKind | None:
    """Returns whether ranks called in another order, left something out, or called more.

    What fits most of the following calls holds; None if one call that differs fits as many. Without
    a majority nobody left anything out.
    """
    usual = _following(number, variants[0].ranks[0], calls)
    other = _following(number, variants[1].ranks[0], calls)
    fits = {}
    if len(usual) > 1 and len(other) > 1 and usual[:2] == other[1::-1]:
        fits[DifferenceKind.order] = 2 + _agreeing(usual[2:], other[2:])
    for by in range(1, _MOST_SHIFTED + 1) if has_majority else ():
        for kind, first, second in (
            (DifferenceKind.skipped, usual[by:], other),
            (DifferenceKind.extra, usual, other[by:]),
        ):
            if (agreeing := _agreeing(first, second)) > max(1, fits.get(kind, 0)):
                fits[kind] = agreeing
    best = max(fits, key=lambda kind: fits[kind]) if fits else None
    is_better = best is not None and fits[best] > _agreeing(usual[1:], other[1:])
    return best if is_better else None


def _following(number: int, rank: int, calls: GroupCalls) -> list[tuple[str, tuple[int, ...]]]:
    """Returns what a rank called from a number on: the collective and its sizes."""
    made = calls.collectives[rank]
    return [
        (call.operation, elements(call.input_sizes))
        for later in sorted(later for later in made if later >= number)[: 4 * _MOST_SHIFTED]
        for call in made[later][:1]
    ]


def _agreeing(
    first: list[tuple[str, tuple[int, ...]]], second: list[tuple[str, tuple[int, ...]]]
) -> int:
    """Returns how many calls of two lists are alike from the start; 0 if one is not."""
    pairs = list(zip(first, second, strict=False))
    return len(pairs) if all(one == other for one, other in pairs) else 0


def _first_on_different_lines(numbered: list[_Numbered]) -> Difference | None:
    """Returns the first collective from which on ranks call from different lines.

    Before it all must have called from the same lines: else the program calls so on purpose.
    """
    first = None
    was_alike = False
    for one in numbered:
        places = {rank: made[0].place for rank, made in one.present.items()}
        if one.absent or len(places) < 2 or None in places.values():
            continue
        if len(set(places.values())) == 1:
            first, was_alike = None, True
        elif first is None and was_alike:
            first = one
    if first is None:
        return None
    by_place: dict[object, list[int]] = {}
    for rank, made in sorted(first.present.items()):
        by_place.setdefault(made[0].place, []).append(rank)
    ordered = sorted(by_place.values(), key=lambda ranks: (-len(ranks), ranks))
    variants = tuple(Variant(tuple(ranks), first.present[ranks[0]][0]) for ranks in ordered)
    return _difference(first, DifferenceKind.lines, (), variants)
