"""Where a program does something: what it did, by source line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Where, where
from selftime.advice.detectors.counted_steps import covered
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals
from selftime.trace import Trace


@cached_per_trace
def logging_frames(trace: Trace) -> pl.DataFrame:
    """Python frames that log; those around a product are the program's, called by a library's."""
    frames = filter_by_name(slices_on(trace, "python"), names.is_logging)
    frames = frames.filter(pl.col("duration").is_not_null())
    products = filter_by_name(slices_on(trace, "host"), names.is_matrix_operator)
    work = np.sort(products["start"].to_numpy())
    begin = frames["start"].to_numpy()
    end = begin + frames["duration"].to_numpy()
    around = np.searchsorted(work, begin) != np.searchsorted(work, end)
    return frames.filter(~pl.Series(around, dtype=pl.Boolean))


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
        return covered_time(self.slices)

    def events(self, most: int = 3) -> tuple[int, ...]:
        """The longest slices, to show."""
        longest = self.slices.sort("duration", "id", descending=[True, False]).head(most)
        return tuple(longest["id"].to_list())


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


def by_line(trace: Trace, operators: pl.DataFrame) -> Iterator[tuple[Where, pl.DataFrame]]:
    """The operators of each source line, those of most time first; of no line together."""
    if not operators.height:
        return
    placed = operators.with_columns(sites(trace, operators["id"]))
    parts = placed.partition_by(*SITE, maintain_order=True)
    for part in sorted(parts, key=_time, reverse=True):
        yield where(part.row(0, named=True)), part.drop(*SITE)


def _time(operators: pl.DataFrame) -> int:
    begin, end = covered(operators)
    return int((end - begin).sum())
