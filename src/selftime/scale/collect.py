"""Run a task on each rank of a job where its trace is read, and merge the results in one order.

The result of a rank is small and does not depend on where it was read. Results are merged in the
order of the files, so that every engine gives the same bytes.
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
from selftime.ingest.load import read_file_or_reason
from selftime.ingest.paths import TraceFiles, duplicates, trace_files
from selftime.ingest.ranks import Identity, identity_of, members_of
from selftime.scale.engine import Engine, LostFile
from selftime.scale.local import Local
from selftime.trace import Member, Trace
from selftime.views import View, below, find

T = TypeVar("T")

Progress: TypeAlias = Callable[[int, int | None], None]


@dataclass(frozen=True, slots=True)
class RankResult(Generic[T]):
    """The result of a task for one trace, with the trace's identity, tracks and repairs."""

    identity: Identity
    answer: T
    tracks: pl.DataFrame
    repairs: pl.DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class JobResults(Generic[T]):
    """The results for the traces of a job, without duplicates, sorted by path."""

    results: Mapping[str, RankResult[T]]
    members: Mapping[str, Member]
    refused: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def answers(self) -> dict[str, T]:
        return {path: result.answer for path, result in self.results.items()}

    @property
    def outlines(self) -> dict[str, Trace]:
        """The traces reduced to tracks and repairs, by path."""
        return {
            path: Trace(tracks=result.tracks, repairs=result.repairs, source=path)
            for path, result in self.results.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class JobView:
    """The table of a job's view, with what its traces lack."""

    table: pl.DataFrame
    lacks: Mapping[str, list[str]]
    """What each recording lacks for this view, by path."""
    outlines: Mapping[str, Trace]
    """The traces reduced to tracks and repairs, by path."""
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
) -> JobResults[T]:
    """Run a task on each trace of a place, one trace at a time in each process.

    Args:
        place: A path or address, as for `selftime.load`.
        take: The task: a function that a fresh interpreter can import, or a `partial` of one.
        engine: Maps the task over the files; by default processes of this machine.
        progress: Called with the files done and the total number of files.
        cache: Whether to use the disk cache where a file is read.
        choice: Only read files with this text in their path.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
        UsageError: No file has `choice` in its path.
    """
    found = trace_files(place)
    files = [file for file in found.files if choice is None or choice in file]
    if choice is not None and not files:
        raise UsageError(f"no trace of {found.description} has `{choice}` in its name")
    outcomes: dict[str, dict[str, RankResult[T]] | str | LostFile] = {}
    asked = (engine or Local()).map(partial(_results_of_file, take=take, cache=cache), files)
    for done, (file, outcome) in enumerate(asked, 1):
        outcomes[file] = outcome
        if progress is not None:
            progress(done, len(files))
    return _merge(found, {file: outcomes[file] for file in files})


def _results_of_file(
    place: str, *, take: Callable[[Trace], T], cache: bool
) -> dict[str, RankResult[T]] | str:
    """Returns the results of one file's traces; or the reason why it has none."""
    read = read_file_or_reason(place, cache=cache)
    if isinstance(read, str):
        return read
    return {
        path: RankResult(identity_of(trace), take(trace), trace.tracks, trace.repairs)
        for path, trace in read.items()
    }


def _merge(
    found: TraceFiles, outcomes: dict[str, dict[str, RankResult[T]] | str | LostFile]
) -> JobResults[T]:
    results: dict[str, RankResult[T]] = {}
    refused = dict(found.refused)
    for file, outcome in outcomes.items():
        if isinstance(outcome, LostFile):
            refused[file] = outcome.why
        elif isinstance(outcome, str):
            refused[file] = outcome
        else:
            results |= outcome
    if not results and not found.is_collection:
        raise UnreadableTrace(next(iter(refused.values())))
    if not results:
        raise found.no_trace_error(refused)
    twice = duplicates({path: result.identity.content for path, result in results.items()})
    once = {path: result for path, result in results.items() if path not in twice}
    identities = {path: result.identity for path, result in once.items()}
    members, notes = members_of(identities, found.root)
    if not found.is_collection and len(identities) == 1:  # labelled like a trace in memory
        members = {path: _single_member(identity) for path, identity in identities.items()}
    return JobResults(
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
    """Returns the summaries that views across ranks need; arguments and errors as in `collect`."""
    return _ranks(collect(place, rank_summary, engine=engine, progress=progress, cache=cache))


def _ranks(found: JobResults[RankSummary]) -> Ranks:
    return Ranks(found.answers, found.members, found.refused, found.notes)


def _single_member(identity: Identity) -> Member:
    label = "this rank" if identity.rank is None else f"rank {identity.rank}"
    size = identity.size if identity.size and identity.size > (identity.rank or 0) else None
    return Member(label, identity.rank, size, "" if identity.rank is None else "header")


def view(
    place: str | os.PathLike[str],
    name: str,
    /,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> pl.DataFrame:
    """Returns a view of a job: of all ranks together, or of each with columns `rank` and `label`.

    Args:
        place: A path or address, as for `selftime.load`.
        name: The view's name.
        engine: Maps over the files; by default processes of this machine.
        progress: Called with the files done and the total number of files.
        options: The view's own options.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
        UsageError: There is no such view, or it has no such option.
    """
    return view_of_job(place, find(name), options, engine=engine, progress=progress).table


def view_of_job(
    place: str | os.PathLike[str],
    asked: View[Any],
    options: Mapping[str, Any],
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    choice: str | None = None,
) -> JobView:
    """Returns a view of a job with what its traces lack; arguments and errors as in `view`."""
    if asked.across:
        parts = collect(place, rank_summary, engine=engine, progress=progress, choice=choice)
        table = asked(_ranks(parts), **options)
        return JobView(table, {}, parts.outlines, parts.refused, parts.notes)
    take = partial(table_of, name=asked.name, options=options)
    found = collect(place, take, engine=engine, progress=progress, choice=choice)
    tables = ((found.members[path], table) for path, (table, _) in found.answers.items())
    lacks = {path: lacks for path, (_, lacks) in found.answers.items()}
    return JobView(below(asked, tables), lacks, found.outlines, found.refused, found.notes)


def table_of(
    trace: Trace, *, name: str, options: Mapping[str, Any]
) -> tuple[pl.DataFrame, list[str]]:
    """Returns a view's table of one trace, and what the recording lacks for it."""
    asked = find(name)
    table = asked(trace, **options)
    is_foreign = {"host", "device"}.isdisjoint(
        trace.tracks["kind"]
    )  # not a trace of PyTorch: reported elsewhere
    return table, [] if is_foreign else asked.lacks(trace)
