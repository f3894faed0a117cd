"""Which traces belong to one job, and what the page needs to know of it besides its views."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from selftime import names
from selftime.analysis.ranks.clocks import Clock
from selftime.analysis.ranks.rank_summary import RankSummary, rank_summary
from selftime.analysis.ranks.ranks import Rank, Ranks, joined_ranks
from selftime.ingest.paths import duplicates
from selftime.ingest.ranks import Identity, identity_of, members_of
from selftime.names.collectives import axes_of_group
from selftime.reports.page_data.listing import Listed
from selftime.trace import Member, Trace

_EXACT: Final = 1 << 53
"""Beyond this JavaScript's numbers skip integers."""


@dataclass(frozen=True, slots=True)
class Told:
    """What one trace tells of its job: small, and all that is needed once it is read."""

    identity: Identity
    part: RankSummary


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """The ranks of a job, and which trace of the page each is."""

    ranks: Ranks
    ids: Mapping[str, str]
    """The id of each trace, by its path in `ranks`."""

    def of_key(self) -> dict[int, list[str]]:
        """The paths of each rank that counts, by its key in `Ranks.by_key`, in order of time."""
        found = {key: list(self._paths(rank)) for key, rank in self.ranks.by_key().items()}
        parts = self.ranks.parts
        return {key: sorted(paths, key=lambda p: parts[p].origin) for key, paths in found.items()}

    def _paths(self, rank: Rank) -> Iterator[str]:
        for path, part in self.ranks.parts.items():
            member = self.ranks.members[path]
            is_window = rank.rank is not None and member.window is not None
            if part is rank.part or (is_window and member.rank == rank.rank):
                yield path


def told_by(trace: Trace) -> Told:
    return Told(identity_of(trace), rank_summary(trace))


def is_of_several(listed: Listed, identity: Identity) -> bool:
    """Whether a trace is of one of several processes, as it tells itself or its name does."""
    if identity.size is not None:
        return identity.size > 1
    parts = (listed.name, *listed.run.split("/"))
    named = any(names.rank_in_path(part) is not None for part in parts)
    return identity.rank is not None or identity.exchanges or named


def related(found: Mapping[str, tuple[Listed, Told]], refused: Mapping[str, str]) -> Job:
    """The traces of one job, each once.

    Args:
        found: What each tells, by path: its file below the folder of its run.
        refused: Files that could not be read, and why.
    """
    twice = duplicates({path: one.identity.content for path, (_, one) in found.items()})
    once = {path: one for path, one in found.items() if path not in twice}
    members, notes = members_of({path: one.identity for path, (_, one) in once.items()}, "")
    parts = {path: one.part for path, (_, one) in once.items()}
    ids = {path: listed.id for path, (listed, _) in once.items()}
    return Job(Ranks(parts, members, {**refused, **twice}, notes), ids)


def alone(listed: Listed, told: Told) -> Job:
    """A job of which there is one trace."""
    rank, size = told.identity.rank, told.identity.size
    label = "this rank" if rank is None else f"rank {rank}"
    member = Member(label, rank, size if size is not None and size > (rank or 0) else None)
    return Job(Ranks({listed.name: told.part}, {listed.name: member}), {listed.name: listed.id})


def jobs_of(traces: Mapping[str, tuple[Listed, Trace]]) -> list[Job]:
    """The jobs of some traces, by path: those of one folder that are of ranks, the others alone."""
    folders: defaultdict[str, list[str]] = defaultdict(list)
    for path, (listed, _) in traces.items():
        folders[listed.job].append(path)
    found: list[Job] = []
    for paths in folders.values():
        read = {path: (traces[path][0], told_by(traces[path][1])) for path in paths}
        several = {
            path: one for path, one in read.items() if is_of_several(one[0], one[1].identity)
        }
        job = related(several if len(paths) > 1 else {}, {})
        counting = {path for those in job.of_key().values() for path in those}
        found += [job] if counting else []
        found += [alone(*one) for path, one in read.items() if path not in counting]
    return found


def _named(one: tuple[Listed, Told]) -> tuple[Listed, Identity]:
    return one[0], one[1].identity


def told(job: Job) -> dict[str, Any]:
    """`Job` of the page's contract."""
    ranks = job.ranks
    clocks = joined_ranks(ranks).clocks
    every, paths = ranks.by_key(), job.of_key()
    first = clocks.reference if clocks.reference is not None else min(every, default=0)
    base = every[first].part.origin if every else 0
    return {
        "size": ranks.size,
        "ranks": [
            {
                "key": key,
                "label": rank.label,
                "rank": rank.rank,
                "device": rank.part.device,
                "residual": clocks.of[key].residual if key in clocks.of else None,
                "traces": [
                    _trace(job.ids[path], ranks.parts[path], clocks.of.get(key, Clock()), base)
                    for path in paths[key]
                ],
            }
            for key, rank in every.items()
        ],
        "missing": ranks.missing,
        "refused": [{"name": name, "why": why} for name, why in sorted(ranks.refused.items())],
        "notes": list(ranks.notes),
        "residual": clocks.residual,
        "groups": list(_groups(every)),
    }


def _trace(trace: str, part: RankSummary, clock: Clock, base: int) -> dict[str, Any]:
    """How to read a trace's instants by the common clock: `shift` ns are added, and the drift."""
    whole = part.origin - base + clock.offset
    shift = whole + round(clock.drift * (part.origin - clock.middle))
    known = part.origin != 0 and abs(shift) < _EXACT
    return {"trace": trace, "shift": shift if known else None, "drift": clock.drift}


def _groups(every: Mapping[int, Rank]) -> Iterator[dict[str, Any]]:
    """The process groups of all ranks, each once: as headers list them, else as collectives do."""
    found: dict[tuple[str | None, str | None], dict[str, Any]] = {}
    columns = ("group", "group_description", "group_size", "group_ranks")
    for rank in every.values():
        listed = rank.part.groups.select("group", "description", "size", "ranks", "backend").rows()
        used = rank.part.rows.select(columns).unique(maintain_order=True).rows()
        for group, description, size, text, *backend in [*listed, *used]:
            if group is None and text is None:
                continue
            known = found.setdefault((group, text), _group(group, text))
            known["description"] = known["description"] or description
            known["size"] = size if known["size"] is None else known["size"]
            known["backend"] = known["backend"] or next(iter(backend), None)
    for known in found.values():
        axis = axes_of_group(known["description"] or "")
        yield {**known, "axis": axis}


def _group(group: str | None, text: str | None) -> dict[str, Any]:
    members = _numbers(text)
    size = None if members is None else len(members)
    return {
        "group": group,
        "description": None,
        "backend": None,
        "size": size,
        "ranks": members,
    }


def _numbers(text: str | None) -> list[int] | None:
    """The ranks of a group; None where the trace does not write all of them."""
    try:
        found = json.loads(text or "")
    except ValueError:
        return None
    if not isinstance(found, list) or not all(isinstance(one, int) for one in found):
        return None
    return found
