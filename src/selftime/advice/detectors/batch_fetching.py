"""Finds the time that the main thread spends in DataLoaders and in user functions they call."""

from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.detectors.batch_delivery import USUAL_READY_BATCH_FETCH_NS
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import begins_during_intervals, slices_in_counted_steps
from selftime.advice.detectors.recorded_facts import WorkerCoreUse
from selftime.advice.rule_definition import Checked, Unknown, Where, where_from_row
from selftime.analysis.frame_origins import parse_frame_of_trace
from selftime.analysis.main_thread import slices_on_main_thread
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.analysis.slice_arguments import parent_of_every_slice
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.source_sites import EVIDENCE_OF_EXECUTING_LINE, source_sites_of_slices
from selftime.analysis.steps.steady_steps import counted_step_windows, is_instant_in_windows
from selftime.array_types import Ints
from selftime.intervals import Intervals, intersect, length, subtract, union
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

PREFETCHED_BATCHES_PER_WORKER: Final = 2
"""Number of batches that a DataLoader requests from each worker at once when an epoch begins."""

ASSUMED_LOADER_WORKERS: Final = 4
"""Assumed number of DataLoader workers if the recording does not contain the number."""

MIN_COMPUTING_OPERATOR_NS: Final = 100_000
"""Shortest operator that counts as computation, in ns; shorter operators are largely dispatch."""

MIN_TIME_SHARE_TO_NAME_LINE: Final = 0.5
"""Smallest share of a function's time in one line for a finding to name the line; else it names the
function's first line."""


@dataclass(frozen=True, slots=True)
class LoadingFunction:
    """A function that loads data on the main thread, and its intervals in the measured steps."""

    where: Where
    function: str
    is_own: bool
    """Whether the function is in the user's code, not in a library."""
    all_times: Intervals
    """Intervals in the function; for a transform, without other user functions that it calls."""
    python_times: Intervals
    """Intervals in which the function runs Python code, or operators so short that they are mostly
    dispatch."""
    computing_times: Intervals
    """Intervals of the function in which it does not wait, for example for storage."""
    event: int
    """Slice id of the function's longest call."""


@cached_per_trace
def next_batch_calls(trace: Trace) -> pl.DataFrame:
    """Returns the main thread's calls that fetch the next batch, in order of time.

    Columns: id, name, start, end (ns); fresh: the first call of its iterator; filling: one of the
    first calls, while the queue fills, where the trace shows the creation of the iterator;
    restarted: the first call of an iterator that started worker processes; last: the call that
    ended them.
    """
    loading = _main_thread_loading_annotations(trace)
    start = loading["start"].to_numpy()
    end = start + loading["duration"].to_numpy()
    made = loader_iterator_frames(trace)
    number = np.searchsorted(made["start"].to_numpy(), start)
    fresh = np.diff(number, prepend=0) > 0
    place = np.arange(number.size) - np.maximum.accumulate(
        np.where(fresh, np.arange(number.size), 0)
    )
    starts = np.append(made["restarts"].to_numpy(), False)
    workers = WorkerCoreUse.from_facts(trace.facts)
    ahead = PREFETCHED_BATCHES_PER_WORKER * (
        workers.worker_count if workers else ASSUMED_LOADER_WORKERS
    )
    return loading.select("id", "name", "start").with_columns(
        end=pl.Series(end, dtype=pl.Int64),
        fresh=pl.Series(fresh, dtype=pl.Boolean),
        filling=pl.Series((number > 0) & (place < ahead), dtype=pl.Boolean),
        restarted=pl.Series(fresh & starts[number - 1], dtype=pl.Boolean),
        last=pl.Series(
            _does_any_slice_begin_within(
                start, end, _frames_of_data_loader_part(trace, "shutdown")
            ),
            dtype=pl.Boolean,
        ),
    )


@cached_per_trace
def loader_iterator_frames(trace: Trace) -> pl.DataFrame:
    """Returns the Python frames that create a DataLoader's iterator, in order of time.

    Empty without recorded Python frames. Columns: id, start, duration, end (ns); started: the
    number of worker processes that it started; restarts: whether it started any.
    """
    made = _frames_of_data_loader_part(trace, "iterator").sort("start", "id")
    start = made["start"].to_numpy()
    end = start + made["duration"].to_numpy()
    started = filter_by_name(_loader_thread_frames(trace), names.starts_process)
    return made.select("id", "start", "duration").with_columns(
        end=pl.Series(end, dtype=pl.Int64),
        started=pl.Series(_slice_counts_beginning_within(start, end, started), dtype=pl.Int64),
        restarts=pl.Series(_does_any_slice_begin_within(start, end, started), dtype=pl.Boolean),
    )


def worker_shutdown_times(trace: Trace) -> Intervals:
    """Returns the intervals in which a DataLoader waited for its worker processes to exit."""
    return covered_time(_frames_of_data_loader_part(trace, "shutdown"))


def next_batch_times(trace: Trace) -> Intervals:
    """Returns the intervals in which the main thread fetched batches in the measured steps."""
    found = next_batch_calls(trace)
    start = found["start"].to_numpy()
    within = is_instant_in_windows(start, counted_step_windows(trace))
    return union(start[within], found["end"].to_numpy()[within])


def share_of_loading_time(trace: Trace, intervals: Intervals) -> float:
    """Returns the share of the time for fetching batches, in measured steps, within `intervals`."""
    whole = next_batch_times(trace)
    return length(intersect(whole, intervals)) / length(whole) if length(whole) else 0.0


@cached_per_trace
def mid_epoch_worker_wait_times(trace: Trace) -> Intervals:
    """Returns when the main thread waited for a DataLoader worker in the middle of an epoch.

    Waits while the queue of a new iterator fills, and waits for workers to exit, are left out: they
    are no sign of slow workers.
    """
    return _worker_wait_times(
        trace, next_batch_calls(trace).filter(~pl.col("filling") & ~pl.col("last"))
    )


@cached_per_trace
def epoch_boundary_worker_wait_times(trace: Trace) -> Intervals:
    """Returns when the main thread waited for DataLoader workers as an epoch began or ended.

    That is while the queue of a new iterator fills, and while workers exit.
    """
    return _worker_wait_times(
        trace, next_batch_calls(trace).filter(pl.col("filling") | pl.col("last"))
    )


def _worker_wait_times(trace: Trace, calls: pl.DataFrame) -> Intervals:
    """Returns the intervals in which calls for the next batch waited for a DataLoader worker.

    With Python frames: the frames that wait, without those that receive a batch. Without them: all
    of a call but the usual hand-over.
    """
    start, end = calls["start"].to_numpy(), calls["end"].to_numpy()
    if _does_any_slice_begin_within(start, end, _loader_thread_frames(trace)).any():
        waiting = covered_time(filter_by_name(_loader_thread_frames(trace), names.is_waiting_frame))
        handed_over = covered_time(
            filter_by_name(_loader_thread_frames(trace), names.receives_tensor)
        )
        return intersect(union(start, end), subtract(waiting, handed_over))
    long = end - start > USUAL_READY_BATCH_FETCH_NS
    return union(start[long] + USUAL_READY_BATCH_FETCH_NS, end[long])


def outcome_without_loading_function(trace: Trace) -> Checked | Unknown:
    """Returns a rule's outcome if the trace shows no user function that loads data."""
    lacks = missing_requirement_sentences(trace, ("stacks",))
    return (
        Unknown("; ".join(lacks))
        if lacks
        else Checked("no function of the program loads data", is_absent=True)
    )


@cached_per_trace
def collate_function(trace: Trace) -> LoadingFunction | None:
    """Returns the function that collates samples on the main thread; None if there is none."""
    frames = _collate_frames(trace)
    frames = slices_in_counted_steps(trace, frames)
    if not frames.height:
        return None
    longest = _longest_frame(frames)
    same = frames.filter(pl.col("name") == longest["name"][0])
    name = str(longest["name"].cast(pl.String)[0])
    told = parse_frame_of_trace(trace, name)
    is_own = told is not None and told.origin == "user"
    function = "collate_fn" if told is None else told.function
    return _loading_function(trace, same, covered_time(same), function, is_own=is_own)


@cached_per_trace
def transform_function(trace: Trace) -> LoadingFunction | None:
    """Returns the user function with most self time in loading samples; None if there is none."""
    frames = _loader_thread_frames(trace)
    fetch = _frames_of_data_loader_part(trace, "fetch")
    if not fetch.height:
        return None
    samples = subtract(covered_time(fetch), covered_time(_collate_frames(trace)))
    own = filter_by_name(frames, partial(_is_user_frame, trace))
    own = slices_in_counted_steps(trace, own.filter(begins_during_intervals(own, samples)))
    if not own.height:
        return None
    own = own.with_columns(own_time=_durations_without_nested_frames(trace, own))
    totals = own.group_by("name").agg(pl.col("own_time").sum()).sort("own_time", "name")
    name = totals["name"][-1]
    same, others = own.filter(pl.col("name") == name), own.filter(pl.col("name") != name)
    within = others.filter(begins_during_intervals(others, covered_time(same)))
    around = within.filter(pl.col("depth") > same["depth"].min())
    told = names.parse_frame(str(name))
    function = str(name) if told is None else told.function
    times = subtract(covered_time(same), covered_time(around))
    return _loading_function(trace, same, times, function, is_own=True)


def _loading_function(
    trace: Trace, frames: pl.DataFrame, intervals: Intervals, function: str, *, is_own: bool
) -> LoadingFunction:
    """Returns a function's source line, and its intervals: all, in Python, and without waits."""
    waiting = covered_time(filter_by_name(_loader_thread_frames(trace), names.is_waiting_frame))
    computing = subtract(intervals, waiting)
    work = outermost_operators(trace)
    working = filter_by_name(work, lambda name: not names.unpacks_elements(name))
    long = covered_time(working.filter(pl.col("duration") >= MIN_COMPUTING_OPERATOR_NS))
    longest = _longest_frame(frames)
    return LoadingFunction(
        where=_longest_line_of_function(trace, longest, intervals, work),
        function=function,
        is_own=is_own,
        all_times=intervals,
        python_times=subtract(computing, long),
        computing_times=computing,
        event=int(longest["id"][0]),
    )


def _longest_line_of_function(
    trace: Trace, frame: pl.DataFrame, intervals: Intervals, operators: pl.DataFrame
) -> Where:
    """Returns the line with at least half of a function's time; else the function's first line.

    Operators and comprehensions tell the lines.
    """
    own = where_from_row(source_sites_of_slices(trace, frame["id"]).row(0, named=True))
    loops = filter_by_name(
        _loader_thread_frames(trace),
        lambda name: names.is_comprehension(name) and _is_user_frame(trace, name),
    )
    loops = loops.filter(begins_during_intervals(loops, intervals))
    within = operators.filter(
        begins_during_intervals(operators, intervals)
        & ~begins_during_intervals(operators, covered_time(loops))
    )
    told = pl.concat([_lines_in_function(trace, part, own) for part in (within, loops)])
    lines = told.group_by("line").agg(pl.col("duration").sum()).sort("duration", "line").tail(1)
    if lines.height and lines["duration"][0] >= MIN_TIME_SHARE_TO_NAME_LINE * length(intervals):
        best = told.filter(pl.col("line") == lines["line"][0])
        longest = best.sort(pl.col("file").str.len_chars()).row(-1, named=True)
        return where_from_row({**longest, "function": own.function, "how": "stack"})
    return own


def _lines_in_function(trace: Trace, slices: pl.DataFrame, function_start: Where) -> pl.DataFrame:
    """Returns file, line and duration (ns) of each slice that one of a function's lines ran."""
    told = slices.select("duration").hstack(source_sites_of_slices(trace, slices["id"]))
    is_loop = pl.col("function").map_elements(names.is_comprehension, pl.Boolean)
    return told.filter(
        (
            pl.col("how").is_in(EVIDENCE_OF_EXECUTING_LINE)
            & (pl.col("function") == (function_start.function or ""))
        )
        | is_loop,
        pl.col("line") >= (function_start.line or 0),
    ).select("file", "line", "duration")


def _collate_frames(trace: Trace) -> pl.DataFrame:
    """Returns the Python frames that collate samples: the last frame called in each batch fetch.

    A last frame that loads samples is left out.
    """
    fetch = _frames_of_data_loader_part(trace, "fetch")
    frames = _loader_thread_frames(trace)
    children = frames.filter(pl.col("parent").is_in(fetch["id"].implode())).sort("start", "id")
    last = children.group_by("parent", maintain_order=True).last().select(frames.columns)
    return filter_by_name(last, lambda name: not names.loads_samples(name))


def _durations_without_nested_frames(trace: Trace, frames: pl.DataFrame) -> pl.Series:
    """Returns each frame's duration in ns, without the time in other given frames inside it."""
    size = trace.slices.height
    wanted = np.zeros(size, bool)
    ids = frames["id"].to_numpy()
    wanted[ids] = True
    parent = parent_of_every_slice(trace)
    outer = nearest_ancestor(parent, wanted, parent[ids])
    inner = np.zeros(size, np.int64)
    duration = frames["duration"].to_numpy()
    known = outer != NO_SLICE
    np.add.at(inner, outer[known], duration[known])
    return pl.Series(duration - inner[ids], dtype=pl.Int64)


def _is_user_frame(trace: Trace, name: str) -> bool:
    """Returns whether a Python frame's name is of a function in the user's code, not a library."""
    told = parse_frame_of_trace(trace, name)
    return told is not None and told.origin == "user"


def _longest_frame(frames: pl.DataFrame) -> pl.DataFrame:
    """Returns a table of one row, the frame with the longest duration."""
    return frames.sort("duration", "id", descending=[True, False]).head(1)


def _main_thread_loading_annotations(trace: Trace) -> pl.DataFrame:
    """Returns the profiler's annotations of data loading on the main thread, in order of time."""
    loading = filter_by_name(slices_on(trace, "host"), names.is_data_loading)
    loading = loading.filter(pl.col("duration").is_not_null())
    return slices_on_main_thread(trace, loading).sort("start", "id")


@cached_per_trace
def _loader_thread_frames(trace: Trace) -> pl.DataFrame:
    """Returns all Python frames on threads that load data."""
    tracks = trace.tracks.with_columns(pl.col("process").cast(pl.String))
    loads = tracks.filter(
        pl.col("id").is_in(_main_thread_loading_annotations(trace)["track"].unique().implode())
    )
    same = tracks.join(loads.select("process", "thread"), on=["process", "thread"], how="semi")
    frames = slices_on(trace, "python").filter(pl.col("duration").is_not_null())
    return frames.filter(pl.col("track").is_in(same["id"].implode()))


def _frames_of_data_loader_part(trace: Trace, part: str) -> pl.DataFrame:
    """Returns a DataLoader's Python frames in `part`: `iterator`, `fetch` or `shutdown`."""
    return filter_by_name(
        _loader_thread_frames(trace), lambda name: names.data_loader_part(name) == part
    )


def _does_any_slice_begin_within(start: Ints, end: Ints, slices: pl.DataFrame) -> NDArray[np.bool_]:
    """Returns for each interval whether any of the slices begins within it."""
    return np.asarray(_slice_counts_beginning_within(start, end, slices) > 0)


def _slice_counts_beginning_within(start: Ints, end: Ints, slices: pl.DataFrame) -> Ints:
    """Returns for each interval how many of the slices begin within it."""
    begins = np.sort(slices["start"].to_numpy())
    return np.asarray(np.searchsorted(begins, end) - np.searchsorted(begins, start), np.int64)
