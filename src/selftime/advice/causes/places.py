"""Where a program does something: slices of the steps that count, by source line."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Where
from selftime.advice.lines.source import where
from selftime.advice.replay import Change, Cut, Scale
from selftime.intervals import Intervals, union
from selftime.trace import Trace
from selftime.views.accounts.device.work import device_work
from selftime.views.accounts.kept import kept
from selftime.views.accounts.named import of_kind, whose_name
from selftime.views.accounts.sites import SITE, sites
from selftime.views.accounts.steps.judging import counted_windows, is_within
from selftime.views.accounts.times import times_of

__all__ = [
    "Place",
    "backward_of",
    "both",
    "counted",
    "inside",
    "launched_within",
    "logging_frames",
    "operators",
    "places",
    "regions_of",
    "rounds",
    "shortened",
    "span",
    "steps_counted",
]

PACE: Final = 10.0
"""Slices that follow after this many times the usual time are not of the same run of a loop."""


@dataclass(frozen=True, slots=True)
class Place:
    """The slices of one source line, in order of time."""

    where: Where
    slices: pl.DataFrame

    @classmethod
    def of(cls, slices: pl.DataFrame) -> "Place":
        """Slices wherever they are."""
        return cls(Where(), slices)

    @property
    def times(self) -> Intervals:
        return times_of(self.slices)

    def events(self, most: int = 3) -> tuple[int, ...]:
        """The longest slices, to show."""
        longest = self.slices.sort("duration", "id", descending=[True, False]).head(most)
        return tuple(longest["id"].to_list())


def steps_counted(trace: Trace) -> int:
    """How many steps count; at least 1, to divide by."""
    return max(counted_windows(trace).height, 1)


def counted(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """Those slices that began in a step that counts and whose end is known."""
    within = is_within(slices["start"].to_numpy(), counted_windows(trace))
    return slices.filter(pl.Series(within, dtype=pl.Boolean) & pl.col("duration").is_not_null())


@kept
def operators(trace: Trace) -> pl.DataFrame:
    """Operators of the steps that count that no other operator called, in order of time.

    Columns: those of `slices`. The rows of autograd around its nodes are no operators here.
    """
    host = of_kind(trace, "host")
    host = host.filter(host["category"].cast(pl.String).is_in(list(names.OPERATORS)))
    every = whose_name(host, names.is_dispatched)
    inner = np.zeros(trace.slices.height, bool)
    inner[every["id"].to_numpy()] = True
    parents = every["parent"].cast(pl.Int64).fill_null(-1).to_numpy()
    outermost = ~((parents >= 0) & inner[np.maximum(parents, 0)]) if parents.size else parents >= 0
    return counted(trace, every.filter(pl.Series(outermost, dtype=pl.Boolean)))


def regions_of(trace: Trace, *means: Callable[[str], bool]) -> Intervals:
    """When the host was in annotations, operators or frames of one of these meanings."""
    host = pl.concat([of_kind(trace, "host"), of_kind(trace, "python")])
    found = whose_name(host, lambda name: any(mean(name) for mean in means))
    return times_of(found)


def inside(slices: pl.DataFrame, times: Intervals) -> pl.Series:
    """Whether each slice began in these times."""
    begin = slices["start"].to_numpy()
    window = pl.DataFrame({"start": times.starts, "end": times.ends})
    return pl.Series(is_within(begin, window), dtype=pl.Boolean)


def places(trace: Trace, slices: pl.DataFrame) -> Iterator[Place]:
    """The slices by source line, those that last longest first; unknown lines are one place."""
    told = slices.with_columns(sites(trace, slices["id"]))
    if not told.height:
        return
    groups = [
        (int(group["duration"].sum()), group)
        for _, group in told.group_by(SITE, maintain_order=True)
    ]
    for _, group in sorted(groups, key=lambda pair: -pair[0]):
        row: dict[str, Any] = group.row(0, named=True)
        yield Place(where(row), group.drop(SITE).sort("start", "id"))


def backward_of(trace: Trace, slices: pl.DataFrame) -> pl.DataFrame:
    """The slices of the backward pass that compute the gradients of these, where that is told."""
    ids = slices["id"].implode()
    told = trace.op_args.filter(pl.col("forward").is_in(ids))["id"]
    return counted(trace, trace.slices.filter(pl.col("id").is_in(told.implode())))


def both(these: Intervals, those: Intervals) -> Intervals:
    """The time in either set."""
    starts = np.concatenate([these.starts, those.starts])
    return union(starts, np.concatenate([these.ends, those.ends]))


def launched_within(trace: Trace, times: Intervals) -> pl.DataFrame:
    """Device work that was launched in these times; the rows of `device_work`."""
    work = device_work(trace).filter(pl.col("launched").is_not_null())
    window = pl.DataFrame({"start": times.starts, "end": times.ends})
    begun = is_within(work["launched"].to_numpy(), window)
    return work.filter(pl.Series(begun, dtype=pl.Boolean))


def shortened(trace: Trace, times: Intervals, keep: float) -> tuple[Change, ...]:
    """The changes of a program that does in `keep` of the time what it does in these times."""
    work = launched_within(trace, times)["id"].cast(pl.Int64).to_numpy()
    return (Cut(times, keep), *([Scale(work, keep)] if work.size else []))


@kept
def logging_frames(trace: Trace) -> pl.DataFrame:
    """Python frames that log; those around a product are the program's, called by a library's."""
    frames = whose_name(of_kind(trace, "python"), names.is_logging)
    frames = frames.filter(pl.col("duration").is_not_null())
    products = whose_name(of_kind(trace, "host"), names.is_matrix_operator)
    work = np.sort(products["start"].to_numpy())
    begin = frames["start"].to_numpy()
    end = begin + frames["duration"].to_numpy()
    around = np.searchsorted(work, begin) != np.searchsorted(work, end)
    return frames.filter(~pl.Series(around, dtype=pl.Boolean))


def rounds(slices: pl.DataFrame, least: int) -> Iterator[pl.DataFrame]:
    """Runs of a loop: at least so many slices that follow each other at the pace of a loop."""
    begin = slices["start"].to_numpy()
    between = np.diff(begin)
    if between.size + 1 < least:
        return
    breaks = np.flatnonzero(between > PACE * np.median(between)) + 1
    edges = [0, *breaks.tolist(), begin.size]
    for first, last in pairwise(edges):
        if last - first >= least:
            yield slices.slice(first, last - first)


def span(run: pl.DataFrame) -> tuple[int, int]:
    """From the begin of a run's first slice until the end of its last."""
    begin = run["start"].to_numpy()
    return int(begin[0]), int((begin + run["duration"].to_numpy()).max())
