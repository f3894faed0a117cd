"""Selects the slices of a trace that belong to a range of steps or of the host's time.

A slice belongs to the part in which it begins; device work to the part of the call that launched
it, whenever it ran. Python frames and annotations that are open when the part begins, or when its
last operator ends, are clipped to the part. So is the recorder's own slice, at the end of the
part's device work: nothing outside that slice was recorded. Annotations of incomplete steps are
left out, or their rest would look like a step.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Flags, Ints
from selftime.errors import UsageError
from selftime.trace import Trace
from selftime.units import instant_text

_CATEGORIES_NEVER_CLIPPED: Final = (*names.OPERATOR_CATEGORIES, *names.RUNTIME_CALL_CATEGORIES)
"""Event categories whose slices keep their full duration in a cut trace: operators, runtime
calls."""
_DEVICE_TRACK_KINDS: Final = ("device", "device sync", "device annotation")
_NO_SLICE_INDEX: Final = -1


@dataclass(frozen=True, slots=True)
class HostTimeSpan:
    """A range of host time to cut out, in ns since the trace's origin, and its steps' numbers."""

    begin: int
    end: int
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TracePart:
    """What to keep of a trace: for each slice, whether it is kept, and its clipped times in ns."""

    kept: Flags
    start: Ints
    """Start of each slice in ns since the trace's origin, after clipping to the kept time range."""
    end: Ints
    clipped: Flags
    """Whether clipping changed the start or end, one value per slice."""
    written: Ints
    """Start of each slice before clipping, in ns since the trace's origin."""
    is_timed: Flags
    """Whether the duration is known, one value per slice."""
    begin: int
    done: int
    """Kept range (`begin` to `done`, in ns) for events without duration: samples, instants,
    memory."""


def span_of_steps(trace: Trace, first_step: int | None, last_step: int | None) -> HostTimeSpan:
    """Returns the time from the begin of `first_step` to the end of `last_step`.

    Raises:
        UsageError: There are no such steps.
    """
    steps = steps_with_counted_flags(trace)
    if not steps.height or steps["source"][0] == "window":
        raise UsageError("the trace has no steps; choose a part of it with `--time`")
    low, high = int(steps["number"].min()), int(steps["number"].max())  # type: ignore[arg-type]  # integers
    chosen = steps.filter(
        pl.col("number").is_between(
            low if first_step is None else first_step, high if last_step is None else last_step
        )
    )
    if not chosen.height:
        raise UsageError(f"the trace has no such step; its steps are {low} to {high}")
    begin, end = chosen["start"].min(), chosen["end"].max()
    return HostTimeSpan(int(begin), int(end), tuple(chosen["number"].to_list()))  # type: ignore[arg-type]  # integers


def span_of_time(trace: Trace, begin: int | None, end: int | None) -> HostTimeSpan:
    """Returns the time from `begin` to `end` (ns); None stands for the trace's begin or end.

    Raises:
        UsageError: It is empty, or beyond the trace.
    """
    ends = trace.slices["start"] + trace.slices["duration"].fill_null(0)
    moments = [table["time"].max() for table in (trace.instants, trace.memory, trace.counters)]
    last = max(int(time or 0) for time in (ends.max(), *moments)) + 1  # type: ignore[arg-type]  # integers
    low, high = begin or 0, last if end is None else end
    if low >= last:
        raise UsageError(
            f"the trace ends {instant_text(last)} after its begin; choose an earlier time"
        )
    if low >= high:
        raise UsageError("the time range ends before it begins; write `--time 1.2s:1.9s`")
    return HostTimeSpan(low, min(high, last))


def select_trace_part(
    trace: Trace,
    span: HostTimeSpan,
    *,
    only_categories: Sequence[str] = (),
    without_categories: Sequence[str] = (),
) -> TracePart:
    """Selects the slices of a trace that belong to a range of the host's time.

    Args:
        trace: The whole trace.
        span: Begin and end on the host.
        only_categories: Categories to keep, all if empty; current lower-case names.
        without_categories: Categories to leave out.
    """
    slices = _UnclippedSliceArrays(trace)
    host = ~slices.is_on_track_kinds(_DEVICE_TRACK_KINDS)
    begins = (slices.start >= span.begin) & (slices.start < span.end)
    whole = slices.has_category(_CATEGORIES_NEVER_CLIPPED)
    kept = host & begins
    done = max(span.end, int(slices.end[kept & whole].max(initial=span.end)))
    kept |= host & ~whole & (slices.start < span.begin) & (slices.end > span.begin)
    kept &= ~_is_annotation_of_incomplete_step(trace, slices, span)
    device = slices.is_on_track_kinds(("device",))
    launched = slices.launch != _NO_SLICE_INDEX
    kept |= device & launched & kept[np.where(launched, slices.launch, 0)]
    kept |= ~host & ~launched & begins & ~slices.is_on_track_kinds(("device annotation",))
    kept |= _is_device_annotation_of_kept_work(slices, kept & device)
    categories = {*trace.slices["category"].cast(pl.String)}
    kept &= _has_chosen_category(slices, categories, only_categories, without_categories)
    bounded = kept & host & ~whole
    start = np.where(bounded, np.maximum(slices.start, span.begin), slices.start)
    end = np.where(bounded, np.minimum(slices.end, done), slices.end)
    recorder = bounded & slices.has_category((names.RECORDER_SPAN_CATEGORY,))
    last = max(done, int(slices.end[kept & device].max(initial=done)))
    end[recorder] = np.minimum(slices.end[recorder], last)
    clipped = (start != slices.start) | (end != slices.end)
    timed = trace.slices["duration"].is_not_null().to_numpy()
    return TracePart(kept, start, end, clipped, slices.start, timed, span.begin, done)


class _UnclippedSliceArrays:
    """A trace's slices as arrays, with the times that they had before any earlier clipping."""

    def __init__(self, trace: Trace) -> None:
        slices = trace.slices
        self.category = slices["category"]
        kinds = trace.tracks["kind"].cast(pl.String)
        self.kind = kinds.gather(slices["track"])
        self.thread = trace.tracks["thread"].gather(slices["track"]).to_numpy()
        self.name = slices["name"]
        self.start = slices["start"].to_numpy().copy()
        duration = slices["duration"].fill_null(0).to_numpy().copy()
        at = trace.clipped["id"].to_numpy()
        self.start[at] = trace.clipped["start"].to_numpy()
        duration[at] = trace.clipped["duration"].fill_null(0).to_numpy()
        self.end = self.start + duration
        self.launch = slices["launch"].cast(pl.Int64).fill_null(_NO_SLICE_INDEX).to_numpy()

    def has_category(self, categories: Sequence[str]) -> Flags:
        category_series = pl.Series(categories, dtype=self.category.dtype)
        return self.category.is_in(category_series.implode()).to_numpy()

    def is_on_track_kinds(self, kinds: Sequence[str]) -> Flags:
        return self.kind.is_in(list(kinds)).to_numpy()


def _is_annotation_of_incomplete_step(
    trace: Trace, slices: _UnclippedSliceArrays, span: HostTimeSpan
) -> Flags:
    """Returns whether each slice is the annotation of a step that is not completely in `span`."""
    found = np.zeros(slices.start.size, bool)
    steps = steps_with_counted_flags(trace)
    outside = steps.filter(
        pl.col("mark").is_not_null()
        & ((pl.col("start") < span.begin) | (pl.col("end") > span.end))
        & (pl.col("source").is_in(["profiler", "annotation"]))
    )
    if outside.height:
        marks = pl.Series(outside["mark"].unique(), dtype=trace.slices["name"].dtype)
        crossing = (slices.start < span.begin) | (slices.end > span.end)
        found = (
            slices.name.is_in(marks.implode()).to_numpy()
            & crossing
            & ~slices.is_on_track_kinds(("device",))
        )
    return found


def _is_device_annotation_of_kept_work(slices: _UnclippedSliceArrays, is_kept: Flags) -> Flags:
    """Returns whether each slice is a device annotation and most device work in it is kept."""
    found = np.zeros(is_kept.size, bool)
    marks = np.flatnonzero(slices.is_on_track_kinds(("device annotation",)))
    device = np.flatnonzero(slices.is_on_track_kinds(("device",)))
    for thread in np.unique(slices.thread[marks]).tolist():
        at = marks[slices.thread[marks] == thread]
        work = device[slices.thread[device] == thread]
        starts = slices.start[work]  # in order, as all slices are
        upto = np.append(0, np.cumsum(np.where(is_kept[work], 1, -1)))
        low = np.searchsorted(starts, slices.start[at], side="left")
        high = np.searchsorted(starts, slices.end[at], side="right")
        found[at] = upto[high] > upto[low]
    return found


def _has_chosen_category(
    slices: _UnclippedSliceArrays,
    known_categories: set[str],
    only_categories: Sequence[str],
    without_categories: Sequence[str],
) -> Flags:
    named = [*only_categories, *without_categories]
    for name in named:
        if _current_category(name) not in known_categories:
            known = ", ".join(sorted(known_categories))
            raise UsageError(f"the trace has no category `{name}`; it has {known}")
    found = np.ones(slices.start.size, bool)
    if only_categories:
        found &= slices.has_category([_current_category(name) for name in only_categories])
    if without_categories:
        found &= ~slices.has_category([_current_category(name) for name in without_categories])
    return found


def _current_category(category: str) -> str:
    lower = category.strip().lower()
    return names.CURRENT_CATEGORY_BY_OLD_NAME.get(lower, lower)
