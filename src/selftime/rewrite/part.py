"""Select the slices that belong to a part of a trace: some steps, or a span of the host's time.

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
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.arrays import Flags, Ints
from selftime.errors import UsageError
from selftime.trace import Trace

_NEVER_CLIPPED: Final = (*names.OPERATORS, *names.CALLS)
"""Categories of host work that is never clipped: its times are the purpose of a part."""
_ON_DEVICE: Final = ("device", "device sync", "device annotation")
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Span:
    """A span of the host's time, in ns since the trace's origin, and the steps in it."""

    begin: int
    end: int
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """The selected part of a trace; arrays have one entry per slice."""

    kept: Flags
    start: Ints
    """Start in ns since the trace's origin, clipped to the part."""
    end: Ints
    clipped: Flags
    """Whether a slice's times were clipped."""
    written: Ints
    """The original start of each slice, in ns."""
    is_timed: Flags
    """Whether the times of a slice are known."""
    begin: int
    done: int
    """The part's bounds in ns for samples, instants and memory records."""


def span_of_steps(trace: Trace, first: int | None, last: int | None) -> Span:
    """Returns the span from one step's begin to another's end, by their numbers in `steps`.

    Raises:
        UsageError: There are no such steps.
    """
    steps = assessed_steps(trace)
    if not steps.height or steps["source"][0] == "window":
        raise UsageError("the trace has no steps; choose a part of it with `--time`")
    low, high = int(steps["number"].min()), int(steps["number"].max())  # type: ignore[arg-type]  # integers
    chosen = steps.filter(
        pl.col("number").is_between(low if first is None else first, high if last is None else last)
    )
    if not chosen.height:
        raise UsageError(f"the trace has no such step; its steps are {low} to {high}")
    begin, end = chosen["start"].min(), chosen["end"].max()
    return Span(int(begin), int(end), tuple(chosen["number"].to_list()))  # type: ignore[arg-type]  # integers


def span_of_time(trace: Trace, begin: int | None, end: int | None) -> Span:
    """Returns a span of time, in ns since the trace's origin; None leaves an end open.

    Raises:
        UsageError: It is empty, or beyond the trace.
    """
    ends = trace.slices["start"] + trace.slices["duration"].fill_null(0)
    last = int(ends.max() or 0) + 1  # type: ignore[arg-type]  # integers
    low, high = begin or 0, last if end is None else end
    if low >= last:
        raise UsageError(
            f"the trace ends {last / 1e9:.6g} s after its begin; choose an earlier time"
        )
    if low >= high:
        raise UsageError("the end of the time lies before its begin; write `--time 1.2s:1.9s`")
    return Span(low, min(high, last))


def part_of(
    trace: Trace, span: Span, *, only: Sequence[str] = (), without: Sequence[str] = ()
) -> Part:
    """Returns the part of a trace in a span.

    Args:
        trace: The whole trace.
        span: Begin and end on the host.
        only: Categories to keep, all if empty; current lower-case names.
        without: Categories to leave out.
    """
    slices = _Slices(trace)
    host = ~slices.is_on(_ON_DEVICE)
    begins = (slices.start >= span.begin) & (slices.start < span.end)
    whole = slices.is_in(_NEVER_CLIPPED)
    kept = host & begins
    done = max(span.end, int(slices.end[kept & whole].max(initial=span.end)))
    kept |= host & ~whole & (slices.start < span.begin) & (slices.end > span.begin)
    kept &= ~_annotations_of_incomplete_steps(trace, slices, span)
    device = slices.is_on(("device",))
    launched = slices.launch != _NONE
    kept |= device & launched & kept[np.where(launched, slices.launch, 0)]
    kept |= ~host & ~launched & begins & ~slices.is_on(("device annotation",))
    kept |= _annotations(slices, kept & device)
    categories = {*trace.slices["category"].cast(pl.String)}
    kept &= _chosen(slices, categories, only, without)
    bounded = kept & host & ~whole
    start = np.where(bounded, np.maximum(slices.start, span.begin), slices.start)
    end = np.where(bounded, np.minimum(slices.end, done), slices.end)
    recorder = bounded & slices.is_in((names.RECORDER_SPAN,))
    last = max(done, int(slices.end[kept & device].max(initial=done)))
    end[recorder] = np.minimum(slices.end[recorder], last)
    clipped = (start != slices.start) | (end != slices.end)
    timed = trace.slices["duration"].is_not_null().to_numpy()
    return Part(kept, start, end, clipped, slices.start, timed, span.begin, done)


class _Slices:
    """The slices as arrays, with their original times."""

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
        self.launch = slices["launch"].cast(pl.Int64).fill_null(_NONE).to_numpy()

    def is_in(self, categories: Sequence[str]) -> Flags:
        told = pl.Series(categories, dtype=self.category.dtype)
        return self.category.is_in(told.implode()).to_numpy()

    def is_on(self, kinds: Sequence[str]) -> Flags:
        return self.kind.is_in(list(kinds)).to_numpy()


def _annotations_of_incomplete_steps(trace: Trace, slices: _Slices, span: Span) -> Flags:
    """Returns the annotations of steps that are not completely within the span."""
    found = np.zeros(slices.start.size, bool)
    steps = assessed_steps(trace)
    outside = steps.filter(
        pl.col("mark").is_not_null()
        & ((pl.col("start") < span.begin) | (pl.col("end") > span.end))
        & (pl.col("source").is_in(["profiler", "annotation"]))
    )
    if outside.height:
        marks = pl.Series(outside["mark"].unique(), dtype=trace.slices["name"].dtype)
        crossing = (slices.start < span.begin) | (slices.end > span.end)
        found = (
            slices.name.is_in(marks.implode()).to_numpy() & crossing & ~slices.is_on(("device",))
        )
    return found


def _annotations(slices: _Slices, kept: Flags) -> Flags:
    """Returns device annotations around device work that is mostly kept."""
    found = np.zeros(kept.size, bool)
    marks = np.flatnonzero(slices.is_on(("device annotation",)))
    device = np.flatnonzero(slices.is_on(("device",)))
    for thread in np.unique(slices.thread[marks]).tolist():
        at = marks[slices.thread[marks] == thread]
        work = device[slices.thread[device] == thread]
        starts = slices.start[work]  # in order, as all slices are
        upto = np.append(0, np.cumsum(np.where(kept[work], 1, -1)))
        low = np.searchsorted(starts, slices.start[at], side="left")
        high = np.searchsorted(starts, slices.end[at], side="right")
        found[at] = upto[high] > upto[low]
    return found


def _chosen(
    slices: _Slices, categories: set[str], only: Sequence[str], without: Sequence[str]
) -> Flags:
    asked = [*only, *without]
    for name in asked:
        if _current_name(name) not in categories:
            known = ", ".join(sorted(categories))
            raise UsageError(f"the trace has no category `{name}`; it has {known}")
    found = np.ones(slices.start.size, bool)
    if only:
        found &= slices.is_in([_current_name(name) for name in only])
    if without:
        found &= ~slices.is_in([_current_name(name) for name in without])
    return found


def _current_name(category: str) -> str:
    lower = category.strip().lower()
    return names.CURRENT_CATEGORY.get(lower, lower)
