"""Reads the traces at a path for commands, shows progress, and chooses one of several traces."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from selftime.cli.answering_process import answering_recording
from selftime.cli.error_reporting import print_notice
from selftime.errors import UnreadableTrace, UsageError
from selftime.ledger_format import LEDGER_SUFFIX
from selftime.progress import ProgressCallback

if TYPE_CHECKING:  # polars stays out until a command runs
    import polars as pl

    from selftime.ingest.trace_paths import TraceFiles
    from selftime.scale.collect import JobViewTable
    from selftime.trace import Trace
    from selftime.views import View


_DELAY_BEFORE_PROGRESS_BAR_S: Final = 1.0
"""Seconds that reading must take before a progress bar appears."""
_MAX_LISTED_UNREADABLE_FILES: Final = 5
"""Largest number of unreadable files in a folder that are named; further files are only counted."""
_MAX_LISTED_FAULT_KINDS: Final = 3
"""Largest number of kinds of fault that the message about a damaged trace names."""


def read_traces(
    path: str,
    *,
    name_part: str | None = None,
    reads_all: bool = False,
    accepts_ledgers: bool = True,
) -> "dict[str, Trace]":
    """Returns {name: trace} for a path; in a folder with several recordings, only the newest.

    In a folder with several recordings, reads the newest, or the newest of each rank of a job, and
    says so on stderr.

    Args:
        path: A trace, a folder of them, a glob pattern or a URL.
        name_part: Reads all traces with this text in their name instead.
        reads_all: Reads all traces, for commands that show several side by side.
        accepts_ledgers: Whether the ledger of a run without a trace counts as a recording beside
            traces; False for commands that write a trace file.

    Raises:
        UsageError: No name contains `name_part`.
        UnreadableTrace: There is no trace at `path`, or none can be read.
    """
    from selftime.ingest.job_grouping import jobs_of_unrelated_traces
    from selftime.ingest.load import load_files
    from selftime.ingest.trace_paths import trace_files
    from selftime.trace import Trace

    files = trace_files(path)
    if name_part is not None:
        files = _files_with_name_part(files, name_part, path)
    with progress_bar("Reading") as progress:
        found = load_files(files, progress=progress)
    if isinstance(found, Trace):
        return {path: found}
    jobs = jobs_of_unrelated_traces(found.traces)
    report_job_problems(found.refused, () if name_part or jobs else found.notes)
    every = dict(found.traces)
    if accepts_ledgers:
        every |= _ledgers_of_later_runs(path, found.traces)
    named = {relative_trace_name(key, path): trace for key, trace in every.items()}
    if name_part is not None:
        named = {name: trace for name, trace in named.items() if name_part in name}
        if not named:
            raise UsageError(f"no trace in `{path}` has `{name_part}` in its name; see `ls {path}`")
    if not named:
        raise UnreadableTrace(f"`{path}` holds no trace that can be read; record one first")
    if name_part is None and not reads_all and len(named) > 1:
        return _newest_traces(named, path)
    return named


def _files_with_name_part(files: "TraceFiles", name_part: str, path: str) -> "TraceFiles":
    """Returns the files with a text in their name; all files if none has it.

    The text may be of a trace within a file, or of a ledger, which are not among the files.
    """
    named = tuple(file for file in files.files if name_part in relative_trace_name(file, path))
    return replace(files, files=named) if named else files


def _newest_traces(traces: "dict[str, Trace]", path: str) -> "dict[str, Trace]":
    """Returns {name: newest trace}; for a multi-rank job, the newest trace of each rank."""
    ordered = names_from_oldest_to_newest(traces)
    taken, said = _newest_of_job(traces, ordered)
    if len(taken) < len(traces):
        print_notice(
            f"selftime: `{path}` holds {len(traces)} recordings; {said} is read. Name a file to "
            "read another."
        )
    return {name: traces[name] for name in taken}


def names_from_oldest_to_newest(traces: "Mapping[str, Trace]") -> list[str]:
    """Returns the names of traces in the order in which they, or their files, were begun."""
    begins = {name: _begin_time_ns(one) for name, one in traces.items()}
    if None in begins.values():  # a trace has no date: order all by the files' times
        begins = {name: _modification_time_ns(one.source) for name, one in traces.items()}
    return sorted(traces, key=lambda name: (begins[name] or 0, name))


def _newest_of_job(traces: "dict[str, Trace]", ordered: list[str]) -> tuple[list[str], str]:
    """Returns the names of the newest trace, or of that of each rank, and says which they are."""
    from selftime.ingest.job_grouping import jobs_of_unrelated_traces
    from selftime.ingest.job_ranks import identity_of_trace, job_members

    members, _ = job_members({name: identity_of_trace(one) for name, one in traces.items()}, "")
    newest = ordered[-1]
    last = members[newest]
    if last.rank is None:
        without_rank = {name: one for name, one in traces.items() if members[name].rank is None}
        taken = [answering_recording(without_rank, newest)]
        is_ledger = traces[taken[0]].source.endswith(LEDGER_SUFFIX)
        what = ", the ledger of a run without a trace," if is_ledger else ","
        kind = (
            "the newest"
            if taken[0] == newest
            else "of the newest run the process with most time in steps"
        )
        return taken, f"{kind}, `{taken[0]}`{what}"
    jobs = jobs_of_unrelated_traces(traces)
    of_job = [
        name
        for name in ordered
        if members[name].run == last.run and (jobs is None or jobs[name] == jobs[newest])
    ]
    by_rank = {members[name].rank: name for name in of_job if members[name].rank is not None}
    taken = sorted(by_rank.values(), key=list(traces).index)
    if jobs is not None and len(taken) == 1:
        return taken, f"the newest, `{newest}`,"
    return taken, f"the newest of each {'rank' if len(taken) == 1 else f'of {len(taken)} ranks'}"


def _begin_time_ns(trace: "Trace") -> int | None:
    """Returns when a recording, or the run of a ledger without one, began, in ns since 1970."""
    return trace.run.began_at if trace.source.endswith(LEDGER_SUFFIX) else trace.origin


def _ledgers_of_later_runs(path: str, traces: "Mapping[str, Trace]") -> "dict[str, Trace]":
    """Returns the ledgers below a folder of runs that began after those of all traces ended.

    Other processes of a run that a trace is of may leave ledgers, too: these are left out.
    """
    from selftime.ingest.load import read_file_or_reason

    if not Path(path).is_dir():
        return {}
    own = {Path(one.run.source).resolve() for one in traces.values() if one.run.source}
    last_end = max(map(_end_time_ns, traces.values()), default=0)
    files = sorted(Path(path).rglob(f"*{LEDGER_SUFFIX}"))
    read = [read_file_or_reason(str(one)) for one in files if one.resolve() not in own]
    return {
        key: one
        for ledgers in read
        if not isinstance(ledgers, str)
        for key, one in ledgers.items()
        if (one.run.began_at or 0) > last_end
    }


def _end_time_ns(trace: "Trace") -> int:
    """Returns when a trace or the run that it is of ended, in ns since 1970."""
    ends = [] if trace.run.began_at is None else [trace.run.began_at + trace.run.wall_ns]
    if trace.origin is not None:
        last = (trace.slices["start"] + trace.slices["duration"].fill_null(0)).max()
        ends.append(trace.origin + (last if isinstance(last, int) else 0))
    return max(ends, default=_modification_time_ns(trace.source))


def slow_step_differences(trace: "Trace") -> "dict[int, pl.DataFrame]":
    """Returns what the recorded slow steps of a trace's run take beyond its usual recorded steps.

    It maps the segment of each to a table of `slow_step_difference`; a step whose trace is not
    beside the ledger any more, or cannot be read, is left out.
    """
    from selftime.analysis.run.slow_step_difference import slow_step_difference
    from selftime.ingest.load import read_file_or_reason

    run, found = trace.run, {}
    if not trace.slices.height:
        return {}
    for segment, name in run.recorded_slow_steps.items():
        read = read_file_or_reason(str(Path(run.source).with_name(name)))
        if isinstance(read, str):
            continue
        for slow in read.values():
            difference = slow_step_difference(slow, trace)
            if difference is not None:
                found[segment] = difference
    return found


def _modification_time_ns(path: str) -> int:
    """Returns a file's modification time in ns since 1970; 0 if unknown."""
    try:
        return Path(path).stat().st_mtime_ns
    except OSError:  # a URL, or a file within an archive
        return 0


def read_only_trace(path: str, *, name_part: str | None = None) -> "Trace":
    """Returns the single trace, or ledger of a run without one, at `path`.

    Raises:
        UsageError: There are several.
    """
    traces = read_traces(path, name_part=name_part)
    if len(traces) > 1:
        raise UsageError(
            f"`{path}` holds {len(traces)} traces and one is needed; name its file, such as "
            f"`{next(iter(traces.values())).source}`"
        )
    return next(iter(traces.values()))


def only_trace_file(path: str, *, name_part: str | None = None, rank: int | None = None) -> str:
    """Returns the path of the single trace file that matches `name_part` and `rank`."""
    if not Path(path).is_dir():
        return path
    from selftime.ingest.job_ranks import identity_of_trace, job_members

    traces = read_traces(path, name_part=name_part, accepts_ledgers=False)
    if rank is not None:
        members, _ = job_members({name: identity_of_trace(one) for name, one in traces.items()}, "")
        traces = {name: one for name, one in traces.items() if members[name].rank == rank}
        if not traces:
            raise UsageError(f"no trace in `{path}` says that it is of rank {rank}")
    if len(traces) > 1:
        raise UsageError(
            f"`{path}` holds {len(traces)} such traces, and only one can be written; name its "
            f"file, such as `{next(iter(traces.values())).source}`"
        )
    return next(iter(traces.values())).source


def report_damaged_traces(traces: "dict[str, Trace]") -> None:
    """Prints a line to stderr for each trace that is damaged or contains no PyTorch events."""
    for name, trace in traces.items():
        if not trace.repairs["note"].all():
            print_notice(
                f"`{name}` is damaged: {_trace_faults_text(trace)}; see `selftime view health`"
            )
        if trace.source.endswith(LEDGER_SUFFIX):
            print_notice(f"`{name}` is the ledger of a run, in which no step was recorded")
        elif lacks_profiler_events(trace):
            print_notice(
                f"`{name}` is not a trace of PyTorch's profiler: it holds no operator, runtime "
                "call or kernel; record one with `selftime run`"
            )


def lacks_profiler_events(trace: "Trace") -> bool:
    """Returns whether a trace has no events of PyTorch's profiler: another program wrote it."""
    return {"host", "device"}.isdisjoint(trace.tracks["kind"])


def _trace_faults_text(trace: "Trace") -> str:
    """Returns the kinds of fault in a damaged trace, with counts, and the number of lost events."""
    from selftime.units import count_text

    counted = trace.repairs.filter(~trace.repairs["note"]).select("fault", "count").rows()
    named = [f"{fault} ({count_text(count)})" for fault, count in counted[:_MAX_LISTED_FAULT_KINDS]]
    if len(counted) > _MAX_LISTED_FAULT_KINDS:
        named.append(f"{len(counted) - _MAX_LISTED_FAULT_KINDS} more kinds of fault")
    lost = int(trace.repairs["events_lost"].sum())
    return "; ".join([*named, f"{count_text(lost)} event{'' if lost == 1 else 's'} lost"])


def relative_trace_name(trace_path: str, folder: str) -> str:
    """Returns a trace's path relative to a folder, used as the trace's name in output."""
    inside = trace_path.removeprefix(folder).lstrip("/" + os.sep)
    return inside or trace_path


def report_job_problems(unreadable_files: Mapping[str, str], notes: Iterable[str]) -> None:
    """Prints to stderr why files of a multi-rank job are unreadable, and notes on its ranks."""
    for reason in [unreadable_files[path] for path in sorted(unreadable_files)][
        :_MAX_LISTED_UNREADABLE_FILES
    ]:
        print_notice(f"Left out: {reason}")
    if len(unreadable_files) > _MAX_LISTED_UNREADABLE_FILES:
        print_notice(
            f"Left out {len(unreadable_files) - _MAX_LISTED_UNREADABLE_FILES} more files "
            "that cannot be read."
        )
    for note in notes:
        print_notice(f"Note: {note}.")


@contextmanager
def progress_bar(
    label: str, *, counts_bytes: bool = True, clock: Callable[[], float] = monotonic
) -> Iterator[ProgressCallback | None]:
    """Shows a progress bar; yields a function to call with (amount done, total).

    Yields None if stderr is not a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    shown = Progress(
        TextColumn(label),
        BarColumn(),
        DownloadColumn() if counts_bytes else MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = shown.add_task(label, total=None)
    begun = clock()

    def advance_progress_bar(done: int, total: int | None) -> None:
        shown.update(task, completed=done, total=total)
        if clock() - begun >= _DELAY_BEFORE_PROGRESS_BAR_S:
            shown.start()  # repeated calls have no effect

    try:
        yield advance_progress_bar
    finally:
        shown.stop()


class EngineName(str, Enum):
    """Names of the engines that can read the traces of a job in parallel: `local` or `ray`."""

    local = "local"
    ray = "ray"


def compute_view_of_ranks(
    view: "View[Any]", options: dict[str, Any], path: str, *, name_part: str | None, engine: Any
) -> "JobViewTable":
    """Returns a view's table for all ranks at `path`, read in parallel; prints notes to stderr."""
    from selftime.scale.collect import view_of_job

    with progress_bar("Reading ranks", counts_bytes=False) as progress:
        job_view = view_of_job(
            path, view, options, engine=engine, progress=progress, path_part=name_part
        )
    report_job_problems(job_view.refused, () if name_part else job_view.notes)
    return job_view


def report_problems_of_ranks(view: "View[Any]", job_view: "JobViewTable", path: str) -> None:
    """Prints a line to stderr for each trace that is damaged or lacks data for the view."""
    for key, missing_data in job_view.missing_data.items():
        for lack in missing_data:
            print_notice(f"`{view.name}` of `{relative_trace_name(key, path)}` lacks {lack}")
    report_damaged_traces(
        {relative_trace_name(key, path): one for key, one in job_view.outlines.items()}
    )


def make_rank_engine(name: EngineName | None, address: str | None, workers: int | None) -> Any:
    """Returns the engine that reads a job's traces in parallel: Ray, by default local processes."""
    from selftime.scale import Local, Ray

    if name is EngineName.ray:
        return Ray(address, workers)
    if address is not None:
        raise UsageError("`--address` is for Ray clusters: add `--engine ray`")
    return Local(workers)
