"""Which slices belong to a part of a trace: some steps, or a stretch of the host's time.

A slice belongs to the part in which it begins; device work to that of the call that launched it,
whenever it ran. Python frames and annotations that are open when the part begins, or when its last
operator ends, belong to it with what lies between: they are clipped. So is the recorder's own span,
at the end of the part's device work: what lies outside of that span was not recorded. The mark of a
step that is not whole is left out, or the rest of it would look like a step.
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

_WHOLE: Final = (*names.OPERATORS, *names.CALLS)
"""Host work that is never clipped: its times are what a part is asked for."""
_ON_DEVICE: Final = ("device", "device sync", "device annotation")
_NONE: Final = -1


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the host's time, in ns from the trace's origin, and the steps that it holds."""

    begin: int
    end: int
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """What is left of a trace; arrays have an entry for each slice."""

    kept: Flags
    start: Ints
    """As written, clipped to the part; in ns from the trace's origin."""
    end: Ints
    clipped: Flags
    """Whether a slice's times are other than written."""
    written: Ints
    """When each began, as written."""
    is_timed: Flags
    """Whether its times are known."""
    begin: int
    done: int
    """Between these instants lies what is no slice: samples, marks, allocations."""


def span_of_steps(trace: Trace, first: int | None, last: int | None) -> Span:
    """From the begin of one step to the end of another, by the numbers of the view `steps`.

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
    """A stretch of time, in ns from the trace's origin, open where nothing is given.

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
    """The slices of a span.

    Args:
        trace: The whole trace.
        span: When it begins and ends on the host.
        only: Categories to keep, all if empty; today's lower-case names.
        without: Categories to leave out.
    """
    slices = _Slices(trace)
    host = ~slices.is_on(_ON_DEVICE)
    begins = (slices.start >= span.begin) & (slices.start < span.end)
    whole = slices.is_in(_WHOLE)
    kept = host & begins
    done = max(span.end, int(slices.end[kept & whole].max(initial=span.end)))
    kept |= host & ~whole & (slices.start < span.begin) & (slices.end > span.begin)
    kept &= ~_marks_of_others(trace, slices, span)
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
    """The slices as arrays, with their times as written."""

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


def _marks_of_others(trace: Trace, slices: _Slices, span: Span) -> Flags:
    """The marks of steps that the span does not hold whole."""
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
    """Annotations on a device within which most of the device work that begins is kept."""
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
        if _today(name) not in categories:
            known = ", ".join(sorted(categories))
            raise UsageError(f"the trace has no category `{name}`; it has {known}")
    found = np.ones(slices.start.size, bool)
    if only:
        found &= slices.is_in([_today(name) for name in only])
    if without:
        found &= ~slices.is_in([_today(name) for name in without])
    return found


def _today(category: str) -> str:
    lower = category.strip().lower()
    return names.TODAY.get(lower, lower)
