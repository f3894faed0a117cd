"""Puts together the process groups of a job from what the dumps of its ranks tell of them.

A group is known by its name and its ranks: ranks that are split into several groups at once give
all of them one name. Where no dump lists the ranks of a group, as with Gloo, those of the default
group are all that are known, and those of another the ones that used it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from selftime.flight_recorder import Call, CallState, Dump, HangEvidence

_DEFAULT_DESCRIPTION: Final = "default_pg"


@dataclass(frozen=True, slots=True, order=True)
class JobGroup:
    """A process group of a job."""

    name: str
    ranks: tuple[int, ...]
    description: str = ""
    are_ranks_stated: bool = True
    """Whether a dump lists the ranks; else there may be more."""

    @property
    def label(self) -> str:
        """Returns what the program calls the group; its name where that is not known."""
        return self.description or self.name

    def global_rank(self, rank: int | None) -> int | None:
        """Returns the rank in the job of a rank within the group; None if it has none such."""
        if rank is None or rank >= len(self.ranks):
            return None
        return self.ranks[rank]


@dataclass(frozen=True, slots=True)
class GroupCalls:
    """The calls of one group by rank, for the ranks that left a dump."""

    group: JobGroup
    collectives: Mapping[int, Mapping[int, tuple[Call, ...]]]
    """By rank and number: several calls have one number if they were made together."""
    point_to_point: Mapping[int, tuple[Call, ...]]
    """Sends and receives by rank, in their order."""
    first_known: Mapping[int, int]
    """By rank the least number from which on the dump holds all calls; 0 if it holds all.

    A rank is not in it if its dump lost calls and has none of this group: it may have made any.
    """

    last_number: Mapping[int, int]
    """By rank the number of its last collective; -1 if it made none."""


def with_overtaken_calls_ended(calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """Returns a rank's calls, of which a collective ended if a later one of its group has.

    A group works in order; what tells that a call ended comes later, and in any order.
    """
    last_ended: dict[str, int] = {}
    for call in calls:
        if not call.is_point_to_point and not call.state.is_open:
            last_ended[call.group] = max(call.sequence, last_ended.get(call.group, -1))
    return tuple(
        call._replace(state=CallState.ended)
        if call.state in {CallState.started, CallState.scheduled}
        and not call.is_point_to_point
        and call.sequence < last_ended.get(call.group, -1)
        else call
        for call in calls
    )


def calls_by_group(evidence: HangEvidence) -> list[GroupCalls]:
    """Returns the calls of all groups of a job, in the order of their names and ranks."""
    stated = _stated_groups(evidence.dumps.values())
    inferred = _inferred_groups(evidence, stated)
    groups = sorted({*(group for found in stated.values() for group in found), *inferred.values()})
    made: dict[JobGroup, dict[int, list[Call]]] = {
        group: {rank: [] for rank in group.ranks if rank in evidence.dumps} for group in groups
    }
    for rank, dump in evidence.dumps.items():
        names = {call.group for call in dump.calls}
        own = {name: _group_of(rank, name, stated, inferred) for name in names}
        for call in dump.calls:
            if (group := own[call.group]) is not None:
                made[group][rank].append(call)
    return [_group_calls(group, calls, evidence.dumps) for group, calls in made.items()]


def _group_calls(
    group: JobGroup, calls: Mapping[int, list[Call]], dumps: Mapping[int, Dump]
) -> GroupCalls:
    collectives: dict[int, dict[int, tuple[Call, ...]]] = {}
    first_known = {}
    for rank, made in calls.items():
        by_number: dict[int, list[Call]] = {}
        for call in made:
            if not call.is_point_to_point:
                by_number.setdefault(call.sequence, []).append(call)
        collectives[rank] = {number: tuple(told) for number, told in by_number.items()}
        if not dumps[rank].lost_calls:
            first_known[rank] = 0
        elif by_number:
            first_known[rank] = min(by_number)
    sends = {rank: tuple(c for c in made if c.is_point_to_point) for rank, made in calls.items()}
    last = {rank: max(by_number, default=-1) for rank, by_number in collectives.items()}
    return GroupCalls(group, collectives, sends, first_known, last)


def _stated_groups(dumps: Iterable[Dump]) -> dict[str, set[JobGroup]]:
    """Returns the groups whose ranks a dump lists, by name; Gloo's without a name tells nothing."""
    found: dict[str, dict[tuple[int, ...], str]] = {}
    for dump in dumps:
        for name, group in dump.groups.items():
            if name and group.ranks:
                known = found.setdefault(name, {})
                known[group.ranks] = known.get(group.ranks) or group.description
    return {
        name: {JobGroup(name, ranks, description) for ranks, description in known.items()}
        for name, known in found.items()
    }


def _inferred_groups(
    evidence: HangEvidence, stated: Mapping[str, set[JobGroup]]
) -> dict[str, JobGroup]:
    """Returns by name the groups that dumps have calls of, and whose ranks none of them lists."""
    listed = {
        rank
        for dump in evidence.dumps.values()
        for group in dump.groups.values()
        for rank in group.ranks
    }
    users: dict[str, set[int]] = {}
    descriptions: dict[str, str] = {}
    for rank, dump in evidence.dumps.items():
        for name in {call.group for call in dump.calls}:
            if not any(rank in group.ranks for group in stated.get(name, ())):
                users.setdefault(name, set()).add(rank)
                told = dump.groups[name].description if name in dump.groups else ""
                descriptions[name] = descriptions.get(name) or told
    for name, ranks in users.items():
        if descriptions[name] == _DEFAULT_DESCRIPTION:
            ranks |= {*listed, *evidence.ranks}
    return {
        name: JobGroup(name, tuple(sorted(ranks)), descriptions[name], are_ranks_stated=False)
        for name, ranks in users.items()
    }


def _group_of(
    rank: int,
    name: str,
    stated: Mapping[str, set[JobGroup]],
    inferred: Mapping[str, JobGroup],
) -> JobGroup | None:
    own = sorted(group for group in stated.get(name, ()) if rank in group.ranks)
    return own[0] if own else inferred.get(name)
