"""Runs a function on each trace of a job, in parallel processes, and merges the results.

The result of a rank is small and does not depend on where it was read. Results are merged in the
order of the files, so that every engine gives the same bytes.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import polars as pl

from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.ranks.rank_summary import RankSummary, rank_summary
from selftime.errors import UnreadableTrace, UsageError
from selftime.ingest.job_grouping import refuse_unrelated_traces
from selftime.ingest.job_ranks import TraceIdentity, identity_of_trace, job_members
from selftime.ingest.load import read_file_or_reason
from selftime.ingest.trace_paths import TraceFiles, skip_reasons_of_duplicates, trace_files
from selftime.progress import ProgressCallback
from selftime.scale.engine import Engine, FileLostByReader
from selftime.scale.local import LocalProcessEngine
from selftime.trace import Trace, TraceInJob
from selftime.views import View, find_view, stack_tables

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RankTaskResult(Generic[T]):
    """A task's result for one trace, with the trace's rank, tracks and list of repairs."""

    identity: TraceIdentity
    answer: T
    tracks: pl.DataFrame
    repairs: pl.DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class JobTaskResults(Generic[T]):
    """Results of a task for all traces of a job, by path; duplicate traces are left out."""

    results: Mapping[str, RankTaskResult[T]]
    members: Mapping[str, TraceInJob]
    refused: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def answers(self) -> dict[str, T]:
        """Returns {path: the task's result} for all traces."""
        return {path: result.answer for path, result in self.results.items()}

    @property
    def outlines(self) -> dict[str, Trace]:
        """Returns {path: trace} with only the tables of tracks and repairs; others are empty."""
        return {
            path: Trace(tracks=result.tracks, repairs=result.repairs, source=path)
            for path, result in self.results.items()
        }


@dataclass(frozen=True, slots=True, eq=False)
class JobViewTable:
    """A view's table for a job, and which data that the view needs each trace lacks."""

    table: pl.DataFrame
    missing_data: Mapping[str, list[str]]
    """Maps the path of each trace to sentences about data that it lacks for the view."""
    outlines: Mapping[str, Trace]
    """Maps the path of each trace to a `Trace` with only the tables of tracks and repairs."""
    refused: Mapping[str, str]
    notes: tuple[str, ...]


def collect_results(
    path: str | os.PathLike[str],
    task: Callable[[Trace], T],
    *,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    cache: bool = True,
    path_part: str | None = None,
) -> JobTaskResults[T]:
    """Runs a task on each trace at a path; each process reads one trace at a time.

    Args:
        path: A path or address, as for `selftime.load`.
        task: The task: a function that a fresh interpreter can import, or a `partial` of one.
        engine: Maps the task over the files; by default processes of this machine.
        progress: Called with the files done and the total number of files.
        cache: Whether to use the disk cache where a file is read.
        path_part: Only read files with this text in their path.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
        UsageError: No file has `path_part` in its path.
        UnrelatedTraces: A folder holds traces of several jobs, and there is no `path_part`.
    """
    found_files = trace_files(path)
    if path_part is None:
        refuse_unrelated_traces(found_files)
    files = [file for file in found_files.files if path_part is None or path_part in file]
    if path_part is not None and not files:
        raise UsageError(f"no trace of {found_files.description} has `{path_part}` in its name")
    outcomes: dict[str, dict[str, RankTaskResult[T]] | str | FileLostByReader] = {}
    results = (engine or LocalProcessEngine()).map(
        partial(_task_results_of_file, task=task, cache=cache), files
    )
    for finished_count, (file, outcome) in enumerate(results, 1):
        outcomes[file] = outcome
        if progress is not None:
            progress(finished_count, len(files))
    return _merge_results_of_files(found_files, {file: outcomes[file] for file in files})


def _task_results_of_file(
    file_path: str, *, task: Callable[[Trace], T], cache: bool
) -> dict[str, RankTaskResult[T]] | str:
    """Returns the task's result for each trace in a file, or as text why there is none."""
    loaded = read_file_or_reason(file_path, cache=cache)
    if isinstance(loaded, str):
        return loaded
    return {
        path: RankTaskResult(identity_of_trace(trace), task(trace), trace.tracks, trace.repairs)
        for path, trace in loaded.items()
    }


def _merge_results_of_files(
    found_files: TraceFiles,
    outcomes: dict[str, dict[str, RankTaskResult[T]] | str | FileLostByReader],
) -> JobTaskResults[T]:
    """Merges the results of all files into those of one job, in the order of the files."""
    results: dict[str, RankTaskResult[T]] = {}
    reasons = dict(found_files.refused)
    for file, outcome in outcomes.items():
        if isinstance(outcome, FileLostByReader):
            reasons[file] = outcome.why
        elif isinstance(outcome, str):
            reasons[file] = outcome
        else:
            results |= outcome
    if not results and not found_files.is_collection:
        raise UnreadableTrace(next(iter(reasons.values())))
    if not results:
        raise found_files.no_trace_error(reasons)
    duplicate_reasons = skip_reasons_of_duplicates(
        {path: result.identity.content_digest for path, result in results.items()}
    )
    distinct = {path: result for path, result in results.items() if path not in duplicate_reasons}
    identities = {path: result.identity for path, result in distinct.items()}
    members, notes = job_members(identities, found_files.root)
    if not found_files.is_collection and len(identities) == 1:  # labelled like a trace in memory
        members = {
            path: _place_in_job_of_single_trace(identity) for path, identity in identities.items()
        }
    return JobTaskResults(
        MappingProxyType(distinct),
        MappingProxyType(members),
        MappingProxyType(reasons | duplicate_reasons),
        notes,
    )


def survey(
    path_or_url: str | os.PathLike[str],
    *,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    cache: bool = True,
) -> Ranks:
    """Returns summaries of the traces of all ranks of a job, used by views that compare ranks."""
    return _ranks_from_summaries(
        collect_results(path_or_url, rank_summary, engine=engine, progress=progress, cache=cache)
    )


def _ranks_from_summaries(summaries: JobTaskResults[RankSummary]) -> Ranks:
    """Returns the `Ranks` of a job, made of the summaries of its traces."""
    return Ranks(summaries.answers, summaries.members, summaries.refused, summaries.notes)


def _place_in_job_of_single_trace(identity: TraceIdentity) -> TraceInJob:
    """Returns the rank and label of the only trace of a job."""
    label = "this rank" if identity.rank is None else f"rank {identity.rank}"
    size = identity.size if identity.size and identity.size > (identity.rank or 0) else None
    return TraceInJob(label, identity.rank, size, "" if identity.rank is None else "header")


def view(
    path_or_url: str | os.PathLike[str],
    name: str,
    /,
    *,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    **options: Any,
) -> pl.DataFrame:
    """Returns a view's table for a job: a comparison of ranks, or the tables of all ranks stacked.

    Args:
        path_or_url: A path or address, as for `selftime.load`.
        name: The view's name.
        engine: Maps over the files; by default processes of this machine.
        progress: Called with the files done and the total number of files.
        options: The view's own options.

    Raises:
        UnreadableTrace: Nothing there can be read as a trace.
        UsageError: There is no such view, or it has no such option.
    """
    return view_of_job(
        path_or_url, find_view(name), options, engine=engine, progress=progress
    ).table


def view_of_job(
    path_or_url: str | os.PathLike[str],
    job_view: View[Any],
    options: Mapping[str, Any],
    *,
    engine: Engine | None = None,
    progress: ProgressCallback | None = None,
    path_part: str | None = None,
) -> JobViewTable:
    """Returns a view's table for a job, and which data each trace lacks for the view."""
    if job_view.compares_ranks:
        summaries = collect_results(
            path_or_url, rank_summary, engine=engine, progress=progress, path_part=path_part
        )
        table = job_view(_ranks_from_summaries(summaries), **options)
        return JobViewTable(table, {}, summaries.outlines, summaries.refused, summaries.notes)
    task = partial(view_table_and_missing_data, view_name=job_view.name, options=options)
    results = collect_results(
        path_or_url, task, engine=engine, progress=progress, path_part=path_part
    )
    tables = ((results.members[path], table) for path, (table, _) in results.answers.items())
    missing_data = {path: missing for path, (_, missing) in results.answers.items()}
    return JobViewTable(
        stack_tables(job_view, tables),
        missing_data,
        results.outlines,
        results.refused,
        results.notes,
    )


def view_table_and_missing_data(
    trace: Trace, *, view_name: str, options: Mapping[str, Any]
) -> tuple[pl.DataFrame, list[str]]:
    """Returns a view's table for a trace, and sentences about data that the trace lacks for it."""
    view = find_view(view_name)
    table = view(trace, **options)
    is_foreign = {"host", "device"}.isdisjoint(
        trace.tracks["kind"]
    )  # not a trace of PyTorch: reported elsewhere
    return table, [] if is_foreign else view.missing_data(trace)
