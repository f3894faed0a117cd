"""What is asked of each rank of a job where its trace is read, and put together in one order.

What comes back of a rank is small and does not depend on where it was read. It is put together in
the order of the files, so that every engine gives the same bytes.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, TypeAlias, TypeVar

import polars as pl

from selftime.analysis.ranks.rank_summary import RankSummary, rank_summary
from selftime.analysis.ranks.ranks import Ranks
from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.load import read_or_refuse
from selftime.ingest.paths import Places, doubles, places
from selftime.ingest.ranks import Identity, identity_of, members_of
from selftime.scale.engine import Engine, Lost
from selftime.scale.local import Local
from selftime.trace import Member, Trace
from selftime.views import View, below, find

T = TypeVar("T")

Progress: TypeAlias = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class Told(Generic[T]):
    """What one trace told."""

    identity: Identity
    answer: T
    tracks: pl.DataFrame
    repairs: pl.DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class Collected(Generic[T]):
    """What the traces of a job told, each once, by path, in order of the paths."""

    told: Mapping[str, Told[T]]
    members: Mapping[str, Member]
    refused: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def answers(self) -> dict[str, T]:
        return {path: told.answer for path, told in self.told.items()}

    @property
    def outlines(self) -> dict[str, Trace]:
        """Of each trace the tracks and the repairs alone."""
        return {
            path: Trace(tracks=told.tracks, repairs=told.repairs, source=path)
            for path, told in self.told.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class Viewed:
    """A view of a job."""

    table: pl.DataFrame
    lacks: Mapping[str, list[str]]
    """What the recording of each trace lacks for this view, by path."""
    outlines: Mapping[str, Trace]
    """Of each trace the tracks and the repairs alone."""
    refused: Mapping[str, str]
    notes: tuple[str, ...]


def collect(
    place: str | os.PathLike[str],
    take: Callable[[Trace], T],
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    cache: bool = True,
    choice: str | None = None,
) -> Collected[T]:
    """Ask something of each trace at a place, one trace at a time in each process.

    Args:
        place: As `selftime.load` takes it.
        take: What to ask: a function that a fresh interpreter can import, or a `partial` of one.
        engine: What maps it over the files; by default processes of this machine.
        progress: Called with the files done and the files in all.
        cache: Whether to keep tables where a file is read, and to use those kept.
        choice: Only files with this in their path.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
        UsageError: No file has `choice` in its path.
    """
    found = places(place)
    files = [file for file in found.files if choice is None or choice in file]
    if choice is not None and not files:
        raise UsageError(f"no trace of {found.called} has `{choice}` in its name")
    outcomes: dict[str, dict[str, Told[T]] | str | Lost] = {}
    asked = (engine or Local()).map(partial(_told, take=take, cache=cache), files)
    for done, (file, outcome) in enumerate(asked, 1):
        outcomes[file] = outcome
        if progress is not None:
            progress(done, len(files))
    return _related(found, {file: outcomes[file] for file in files})


def _told(place: str, *, take: Callable[[Trace], T], cache: bool) -> dict[str, Told[T]] | str:
    """What the traces of one file tell; or, of a file that holds none, why."""
    read = read_or_refuse(place, cache=cache)
    if isinstance(read, str):
        return read
    return {
        path: Told(identity_of(trace), take(trace), trace.tracks, trace.repairs)
        for path, trace in read.items()
    }


def _related(found: Places, outcomes: dict[str, dict[str, Told[T]] | str | Lost]) -> Collected[T]:
    told: dict[str, Told[T]] = {}
    refused = dict(found.refused)
    for file, outcome in outcomes.items():
        if isinstance(outcome, Lost):
            refused[file] = outcome.why
        elif isinstance(outcome, str):
            refused[file] = outcome
        else:
            told |= outcome
    if not told and not found.several:
        raise UnreadableTrace(next(iter(refused.values())))
    if not told:
        raise found.nothing(refused)
    twice = doubles({path: one.identity.content for path, one in told.items()})
    once = {path: one for path, one in told.items() if path not in twice}
    identities = {path: one.identity for path, one in once.items()}
    members, notes = members_of(identities, found.root)
    if not found.several and len(identities) == 1:  # as a trace in hand is called
        members = {path: _alone(identity) for path, identity in identities.items()}
    return Collected(
        MappingProxyType(once),
        MappingProxyType(members),
        MappingProxyType(refused | twice),
        notes,
    )


def survey(
    place: str | os.PathLike[str],
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    cache: bool = True,
) -> Ranks:
    """What views across ranks need of all traces at a place; arguments and errors of `collect`."""
    return _ranks(collect(place, rank_summary, engine=engine, progress=progress, cache=cache))


def _ranks(found: Collected[RankSummary]) -> Ranks:
    return Ranks(found.answers, found.members, found.refused, found.notes)


def _alone(told: Identity) -> Member:
    label = "this rank" if told.rank is None else f"rank {told.rank}"
    size = told.size if told.size and told.size > (told.rank or 0) else None
    return Member(label, told.rank, size, "" if told.rank is None else "header")


def view(
    place: str | os.PathLike[str],
    name: str,
    /,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> pl.DataFrame:
    """One view of a job: of all ranks together, or of each, with `rank` and `label` in front.

    Args:
        place: As `selftime.load` takes it.
        name: Of the view.
        engine: What maps over the files; by default processes of this machine.
        progress: Called with the files done and the files in all.
        options: The view's own.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
        UsageError: There is no such view, or it has no such option.
    """
    return viewed(place, find(name), options, engine=engine, progress=progress).table


def viewed(
    place: str | os.PathLike[str],
    asked: View[Any],
    options: Mapping[str, Any],
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    choice: str | None = None,
) -> Viewed:
    """A view of a job, with what is to be said of its traces; arguments and errors as of `view`."""
    if asked.across:
        parts = collect(place, rank_summary, engine=engine, progress=progress, choice=choice)
        table = asked(_ranks(parts), **options)
        return Viewed(table, {}, parts.outlines, parts.refused, parts.notes)
    take = partial(table_of, name=asked.name, options=options)
    found = collect(place, take, engine=engine, progress=progress, choice=choice)
    tables = ((found.members[path], table) for path, (table, _) in found.answers.items())
    lacks = {path: lacks for path, (_, lacks) in found.answers.items()}
    return Viewed(below(asked, tables), lacks, found.outlines, found.refused, found.notes)


def table_of(
    trace: Trace, *, name: str, options: Mapping[str, Any]
) -> tuple[pl.DataFrame, list[str]]:
    """A view's table of one trace, and what the recording lacks for it."""
    asked = find(name)
    table = asked(trace, **options)
    told = {"host", "device"}.isdisjoint(trace.tracks["kind"])  # no trace of PyTorch: said once
    return table, [] if told else asked.lacks(trace)
