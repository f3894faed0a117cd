"""Says of a job which difference between its ranks came first, and who waits because of it.

Ranks that wait in one collective may wait for a rank that itself waits in another. What nobody else
has to end is the cause; where ranks wait for each other in a circle, the circle is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from types import MappingProxyType

from selftime.analysis.hang.collective_differences import collective_differences, older_dumps
from selftime.analysis.hang.differences import Difference, DifferenceKind
from selftime.analysis.hang.job_groups import (
    GroupCalls,
    JobGroup,
    calls_by_group,
    with_overtaken_calls_ended,
)
from selftime.analysis.hang.point_to_point import point_to_point_differences
from selftime.flight_recorder import Call, CallState, HangEvidence, LastSighting
from selftime.ingest.flight_recorder.evidence_files import read_hang_evidence

_MISTAKES = frozenset(
    {
        *(DifferenceKind.operation, DifferenceKind.order, DifferenceKind.skipped),
        *(DifferenceKind.extra, DifferenceKind.sizes, DifferenceKind.impossible_sizes),
        DifferenceKind.dtypes,
    }
)
"""Differences that are wrong even where the ranks went on after them."""
_REMARKS = frozenset({DifferenceKind.shapes, DifferenceKind.lines})
"""Differences that stop nobody."""
_FIRST_VERSION_WITH_UNEVEN_SIZES = (2, 4)


class Verdict(str, Enum):
    """What is known of a job."""

    hang = "hang"
    """Ranks wait, and why is known."""
    circle = "circle"
    """Ranks wait for each other in a circle."""
    mistake = "mistake"
    """No rank waits, but ranks called collectives that do not go together."""
    none = "none"
    """No rank waits, and every rank left a dump."""
    unknown = "unknown"
    """No rank that left a dump waits, and not all did; or how far one is behind is not known."""


@dataclass(frozen=True, slots=True)
class RankState:
    """One rank of the job, as its dump and its ledger show it."""

    rank: int
    has_dump: bool
    last_ended: Call | None
    """The last collective, send or receive that it ended."""
    open_call: Call | None
    """The first one that it has not ended: it waits there."""
    last_call: Call | None
    """The last one that it entered."""
    seen: LastSighting | None

    @property
    def is_seen_last(self) -> bool:
        """Returns whether its ledger saw it after its last call, and tells where it is since."""
        if self.seen is None:
            return False
        entered = None if self.last_call is None else self.last_call.created_ns
        return entered is None or self.seen.seen_ns >= entered


@dataclass(frozen=True, slots=True)
class Hang:
    """The judgement on a job: the verdict, what it rests on, and all that differs."""

    verdict: Verdict
    causes: tuple[Difference, ...]
    """The difference that came first, before the circle's others; empty if nothing differs."""
    consequences: tuple[Difference, ...]
    """Where other ranks wait because of it, or at the same time."""
    remarks: tuple[Difference, ...]
    """Differences that stop nobody."""
    ranks: tuple[RankState, ...]
    groups: tuple[JobGroup, ...]
    older: tuple[int, ...]
    """Ranks whose dump was made before those of others, so that they may have gone on."""
    evidence: HangEvidence
    """What the files told, and which of them could not be read."""

    @property
    def until_ns(self) -> int:
        """Returns the latest instant that a file tells, in ns since the Unix epoch."""
        return self.evidence.latest_ns


def hang(*paths: str) -> Hang:
    """Judges the job whose dumps and ledgers are at these paths: files, or folders of them.

    Raises:
        UnreadableTrace: There is no dump and no ledger.
    """
    return judge(read_hang_evidence(paths))


def judge(evidence: HangEvidence) -> Hang:
    """Judges a job by what its dumps and ledgers tell."""
    dumps = {
        rank: replace(dump, calls=with_overtaken_calls_ended(dump.calls))
        for rank, dump in evidence.dumps.items()
    }
    evidence = replace(evidence, dumps=MappingProxyType(dumps))
    groups = calls_by_group(evidence)
    trusts = _knows_uneven_sizes(evidence)
    found = [d for g in groups for d in collective_differences(g, knows_uneven_sizes=trusts)]
    found += [difference for group in groups for difference in point_to_point_differences(group)]
    ranks = _rank_states(evidence, groups)
    remarks = tuple(one for one in found if one.kind in _REMARKS)
    causes, is_circle = _causes([one for one in found if one.kind not in _REMARKS])
    rest = [one for one in found if one.kind not in _REMARKS and one not in causes]
    return Hang(
        verdict=_verdict(causes, ranks, is_circle=is_circle),
        causes=causes,
        consequences=tuple(sorted(rest, key=_order)),
        remarks=remarks,
        ranks=ranks,
        groups=tuple(group.group for group in groups),
        older=tuple(sorted({rank for group in groups for rank in older_dumps(group)})),
        evidence=evidence,
    )


def _verdict(
    causes: tuple[Difference, ...], ranks: tuple[RankState, ...], *, is_circle: bool
) -> Verdict:
    if is_circle:
        return Verdict.circle
    if not causes:
        return Verdict.none if all(rank.has_dump for rank in ranks) else Verdict.unknown
    if any(one.is_open for one in causes):
        return Verdict.hang
    return Verdict.mistake if causes[0].kind in _MISTAKES else Verdict.unknown


def _causes(found: list[Difference]) -> tuple[tuple[Difference, ...], bool]:
    """Returns the difference that others wait for, or a circle of them, and whether it is one."""
    opened = sorted((one for one in found if one.is_open), key=_order)
    if not opened:
        mistakes = [one for one in found if one.kind in _MISTAKES]
        return tuple(sorted(mistakes or found, key=_order)[:1]), False
    held_up = {one: _held_up_by(one, opened) for one in opened}
    free = [one for one in opened if not held_up[one]]
    if not free:
        return tuple(_circle(held_up, opened[0])), True
    cause = free[0]
    earlier = [
        one
        for one in found
        if one.kind in _MISTAKES and one.group == cause.group and one.sequence < cause.sequence
    ]
    return (*sorted(earlier, key=_order)[:1], cause), False


def _held_up_by(one: Difference, opened: list[Difference]) -> list[Difference]:
    """Returns where the ranks that a difference waits for wait themselves."""
    if one.kind in _MISTAKES:
        return []
    return [
        other
        for other in opened
        if other is not one and other.group != one.group and set(other.waiting) & set(one.ranks)
    ]


def _circle(held_up: Mapping[Difference, list[Difference]], start: Difference) -> list[Difference]:
    """Returns a circle of differences of which each is held up by the next."""
    path = [start]
    while (following := held_up[path[-1]][0]) not in path:
        path.append(following)
    return path[path.index(following) :]


def _order(one: Difference) -> tuple[bool, float, JobGroup, int, str]:
    since = float("inf") if one.since_ns is None else float(one.since_ns)
    return one.kind is DifferenceKind.no_dump, since, one.group, one.sequence, one.kind


def _knows_uneven_sizes(evidence: HangEvidence) -> bool:
    versions = [dump.version.partition(".") for dump in evidence.dumps.values()]
    numbers = [
        (int(major), int(minor))
        for major, _, minor in versions
        if major.isdigit() and minor.isdigit()
    ]
    return min(numbers, default=(0, 0)) >= _FIRST_VERSION_WITH_UNEVEN_SIZES


def _rank_states(evidence: HangEvidence, groups: list[GroupCalls]) -> tuple[RankState, ...]:
    ranks = {rank for group in groups for rank in group.group.ranks} | set(evidence.ranks)
    return tuple(_rank_state(rank, evidence) for rank in sorted(ranks))


def _rank_state(rank: int, evidence: HangEvidence) -> RankState:
    dump = evidence.dumps.get(rank)
    calls = () if dump is None else dump.calls
    ended = [call for call in calls if call.state in {CallState.completed, CallState.ended}]
    opened = [call for call in calls if call.state.is_open]
    return RankState(
        rank=rank,
        has_dump=dump is not None,
        last_ended=ended[-1] if ended else None,
        open_call=opened[0] if opened else None,
        last_call=calls[-1] if calls else None,
        seen=evidence.sightings.get(rank),
    )
