"""How batches come to the loop: the calls for them, new iterators, and what fetching does."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.base import Checked, Unknown, Where, where
from selftime.advice.detectors.counted_steps import counted, is_during
from selftime.advice.detectors.operators import outermost_operators
from selftime.advice.detectors.recorded_facts import Workers
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.main_thread import on_main_thread
from selftime.analysis.parents import parents
from selftime.analysis.requirements import missing
from selftime.analysis.sites import EXECUTING, sites
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_windows, is_within
from selftime.arrays import Ints
from selftime.intervals import Intervals, intersect, length, subtract, union
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

HAND_OVER_NS: Final = 1_000_000
"""What `next` takes when a worker has the batch ready: 0.1 to 1.9 ms on recorded loops."""

BATCHES_AHEAD: Final = 2
"""A loader asks each worker for so many batches at once, as an epoch begins."""

USUAL_WORKERS: Final = 4
"""Workers to assume where the recording does not tell."""

LONG_NS: Final = 100_000
"""An operator that takes so long does work; of shorter ones the dispatch, some us, is a part."""

MOST_OF_IT: Final = 0.5
"""A line that holds so much of a function's time is named in its stead."""


@dataclass(frozen=True, slots=True)
class Part:
    """A function that fetching calls in the steps that count, on the main thread."""

    where: Where
    function: str
    is_own: bool
    """Whether it is the user's and not a library's."""
    whole: Intervals
    """The time in it; in a sample's function, without the user's other functions that it calls."""
    python: Intervals
    """Of that, in Python and in operators so short that their dispatch is what costs."""
    computing: Intervals
    """The time in it without that of waiting."""
    event: int
    """The slice in which it took longest."""


@cached_per_trace
def calls(trace: Trace) -> pl.DataFrame:
    """Calls for the next batch on the main thread, in order of time.

    Columns: id, name, start, end; fresh, whether it is the first of its iterator; filling, whether
    it is one of the first, if the trace shows where the iterator began; restarted, if it is the
    first and its iterator started worker processes; last, if it ended them.
    """
    loading = _loading(trace)
    start = loading["start"].to_numpy()
    end = start + loading["duration"].to_numpy()
    made = iterators(trace)
    number = np.searchsorted(made["start"].to_numpy(), start)
    fresh = np.diff(number, prepend=0) > 0
    place = np.arange(number.size) - np.maximum.accumulate(
        np.where(fresh, np.arange(number.size), 0)
    )
    starts = np.append(made["restarts"].to_numpy(), False)
    workers = Workers.of(trace.facts)
    ahead = BATCHES_AHEAD * (workers.count if workers else USUAL_WORKERS)
    return loading.select("id", "name", "start").with_columns(
        end=pl.Series(end, dtype=pl.Int64),
        fresh=pl.Series(fresh, dtype=pl.Boolean),
        filling=pl.Series((number > 0) & (place < ahead), dtype=pl.Boolean),
        restarted=pl.Series(fresh & starts[number - 1], dtype=pl.Boolean),
        last=pl.Series(_holds(start, end, _of_part(trace, "shutdown")), dtype=pl.Boolean),
    )


@cached_per_trace
def iterators(trace: Trace) -> pl.DataFrame:
    """Frames that make an iterator of a loader, in order of time; none where no frames are.

    Columns: id, start, duration, end; started, how many worker processes it started; restarts,
    whether it did.
    """
    made = _of_part(trace, "iterator").sort("start", "id")
    start = made["start"].to_numpy()
    end = start + made["duration"].to_numpy()
    started = filter_by_name(_frames(trace), names.starts_process)
    return made.select("id", "start", "duration").with_columns(
        end=pl.Series(end, dtype=pl.Int64),
        started=pl.Series(_count(start, end, started), dtype=pl.Int64),
        restarts=pl.Series(_holds(start, end, started), dtype=pl.Boolean),
    )


def ending_workers(trace: Trace) -> Intervals:
    """The time in which a loader waited for the end of its worker processes."""
    return covered_time(_of_part(trace, "shutdown"))


def loading_times(trace: Trace) -> Intervals:
    """The time in calls for the next batch, in the steps that count."""
    found = calls(trace)
    start = found["start"].to_numpy()
    within = is_within(start, counted_windows(trace))
    return union(start[within], found["end"].to_numpy()[within])


def share_of_loading(trace: Trace, times: Intervals) -> float:
    """How much of the loading of the steps that count lies in these times."""
    whole = loading_times(trace)
    return length(intersect(whole, times)) / length(whole) if length(whole) else 0.0


@cached_per_trace
def waits_for_workers(trace: Trace) -> Intervals:
    """The time in which the loop waited for a worker's batch, in the middle of an epoch.

    How long it waits while the queue of a new iterator fills, and for workers to end, is no sign of
    slow workers.
    """
    return _waits(trace, calls(trace).filter(~pl.col("filling") & ~pl.col("last")))


@cached_per_trace
def waits_around_epochs(trace: Trace) -> Intervals:
    """The time in which it waited while the queue of a new iterator filled, or workers ended."""
    return _waits(trace, calls(trace).filter(pl.col("filling") | pl.col("last")))


def _waits(trace: Trace, asked: pl.DataFrame) -> Intervals:
    """Where frames were recorded, those that wait tell, but for those that take a batch over.

    Else all of a call but the usual hand-over is a wait.
    """
    start, end = asked["start"].to_numpy(), asked["end"].to_numpy()
    if _holds(start, end, _frames(trace)).any():
        waiting = covered_time(filter_by_name(_frames(trace), names.is_waiting_frame))
        handed_over = covered_time(filter_by_name(_frames(trace), names.receives_tensor))
        return intersect(union(start, end), subtract(waiting, handed_over))
    long = end - start > HAND_OVER_NS
    return union(start[long] + HAND_OVER_NS, end[long])


def untold(trace: Trace) -> Checked | Unknown:
    """What to say where no function of the user's is seen to load."""
    lacks = missing(trace, ("stacks",))
    return (
        Unknown("; ".join(lacks))
        if lacks
        else Checked("no function of the program loads data", is_absent=True)
    )


@cached_per_trace
def collating(trace: Trace) -> Part | None:
    """What joins samples to a batch: the last function that fetching calls, in the main process."""
    frames = _collate_frames(trace)
    frames = counted(trace, frames)
    if not frames.height:
        return None
    longest = _longest(frames)
    same = frames.filter(pl.col("name") == longest["name"][0])
    name = str(longest["name"].cast(pl.String)[0])
    told = names.frame(name)
    is_own = told is not None and told.origin == "user"
    function = "collate_fn" if told is None else told.function
    return _part(trace, same, covered_time(same), function, is_own=is_own)


@cached_per_trace
def transforming(trace: Trace) -> Part | None:
    """The user's function that takes most of making samples, in the main process."""
    frames = _frames(trace)
    fetch = _of_part(trace, "fetch")
    if not fetch.height:
        return None
    samples = subtract(covered_time(fetch), covered_time(_collate_frames(trace)))
    own = filter_by_name(frames, _is_own)
    own = counted(trace, own.filter(is_during(own, samples)))
    if not own.height:
        return None
    own = own.with_columns(own_time=_without_inner(trace, own))
    totals = own.group_by("name").agg(pl.col("own_time").sum()).sort("own_time", "name")
    name = totals["name"][-1]
    same, others = own.filter(pl.col("name") == name), own.filter(pl.col("name") != name)
    within = others.filter(is_during(others, covered_time(same)))
    around = within.filter(pl.col("depth") > same["depth"].min())
    told = names.frame(str(name))
    function = str(name) if told is None else told.function
    times = subtract(covered_time(same), covered_time(around))
    return _part(trace, same, times, function, is_own=True)


def _part(
    trace: Trace, frames: pl.DataFrame, times: Intervals, function: str, *, is_own: bool
) -> Part:
    waiting = covered_time(filter_by_name(_frames(trace), names.is_waiting_frame))
    computing = subtract(times, waiting)
    work = outermost_operators(trace)
    working = filter_by_name(work, lambda name: not names.unpacks_elements(name))
    long = covered_time(working.filter(pl.col("duration") >= LONG_NS))
    longest = _longest(frames)
    return Part(
        where=_line(trace, longest, times, work),
        function=function,
        is_own=is_own,
        whole=times,
        python=subtract(computing, long),
        computing=computing,
        event=int(longest["id"][0]),
    )


def _line(trace: Trace, frame: pl.DataFrame, times: Intervals, work: pl.DataFrame) -> Where:
    """The line of the function that most of its time is in, else where the function begins.

    Operators have a line, and so have comprehensions, whose frames begin there.
    """
    own = where(sites(trace, frame["id"]).row(0, named=True))
    loops = filter_by_name(
        _frames(trace), lambda name: names.is_comprehension(name) and _is_own(name)
    )
    loops = loops.filter(is_during(loops, times))
    within = work.filter(is_during(work, times) & ~is_during(work, covered_time(loops)))
    told = pl.concat([_of_function(trace, part, own) for part in (within, loops)])
    lines = told.group_by("line").agg(pl.col("duration").sum()).sort("duration", "line").tail(1)
    if lines.height and lines["duration"][0] >= MOST_OF_IT * length(times):
        best = told.filter(pl.col("line") == lines["line"][0])
        longest = best.sort(pl.col("file").str.len_chars()).row(-1, named=True)
        return where({**longest, "function": own.function, "how": "stack"})
    return own


def _of_function(trace: Trace, slices: pl.DataFrame, own: Where) -> pl.DataFrame:
    """File, line and duration of those slices whose line lies in the function."""
    told = slices.select("duration").hstack(sites(trace, slices["id"]))
    is_loop = pl.col("function").map_elements(names.is_comprehension, pl.Boolean)
    return told.filter(
        (pl.col("how").is_in(EXECUTING) & (pl.col("function") == (own.function or ""))) | is_loop,
        pl.col("line") >= (own.line or 0),
    ).select("file", "line", "duration")


def _collate_frames(trace: Trace) -> pl.DataFrame:
    """Of each batch that was fetched, the last frame that fetching called, if it joins samples."""
    fetch = _of_part(trace, "fetch")
    frames = _frames(trace)
    children = frames.filter(pl.col("parent").is_in(fetch["id"].implode())).sort("start", "id")
    last = children.group_by("parent", maintain_order=True).last().select(frames.columns)
    return filter_by_name(last, lambda name: not names.is_sampling(name))


def _without_inner(trace: Trace, own: pl.DataFrame) -> pl.Series:
    """The time of each of these frames without that of those of them within it."""
    size = trace.slices.height
    wanted = np.zeros(size, bool)
    ids = own["id"].to_numpy()
    wanted[ids] = True
    parent = parents(trace)
    outer = nearest(parent, wanted, parent[ids])
    inner = np.zeros(size, np.int64)
    duration = own["duration"].to_numpy()
    known = outer != NONE
    np.add.at(inner, outer[known], duration[known])
    return pl.Series(duration - inner[ids], dtype=pl.Int64)


def _is_own(name: str) -> bool:
    told = names.frame(name)
    return told is not None and told.origin == "user"


def _longest(frames: pl.DataFrame) -> pl.DataFrame:
    return frames.sort("duration", "id", descending=[True, False]).head(1)


def _loading(trace: Trace) -> pl.DataFrame:
    loading = filter_by_name(slices_on(trace, "host"), names.is_data_loading)
    loading = loading.filter(pl.col("duration").is_not_null())
    return on_main_thread(trace, loading).sort("start", "id")


@cached_per_trace
def _frames(trace: Trace) -> pl.DataFrame:
    """Python frames of the threads that load: others may wait all the time."""
    tracks = trace.tracks.with_columns(pl.col("process").cast(pl.String))
    loads = tracks.filter(pl.col("id").is_in(_loading(trace)["track"].unique().implode()))
    same = tracks.join(loads.select("process", "thread"), on=["process", "thread"], how="semi")
    frames = slices_on(trace, "python").filter(pl.col("duration").is_not_null())
    return frames.filter(pl.col("track").is_in(same["id"].implode()))


def _of_part(trace: Trace, part: str) -> pl.DataFrame:
    return filter_by_name(_frames(trace), lambda name: names.loading_part(name) == part)


def _holds(start: Ints, end: Ints, slices: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether one of the slices begins within each of these stretches of time."""
    return np.asarray(_count(start, end, slices) > 0)


def _count(start: Ints, end: Ints, slices: pl.DataFrame) -> Ints:
    """How many of the slices begin within each of these stretches of time."""
    begins = np.sort(slices["start"].to_numpy())
    return np.asarray(np.searchsorted(begins, end) - np.searchsorted(begins, start), np.int64)
