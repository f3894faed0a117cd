"""Groups slices and operators by the source line that ran them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import operator_intervals
from selftime.advice.rule_definition import Where, where_from_row
from selftime.analysis.main_thread import slices_on_main_thread
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.array_types import Ints
from selftime.intervals import Intervals
from selftime.trace import Trace


@cached_per_trace
def logging_frames(trace: Trace) -> pl.DataFrame:
    """Returns the main thread's frames of logging calls, without those that contain a product.

    Such frames run the program. Other threads, such as those of libraries that log, mostly sleep.
    """
    frames = filter_by_name(slices_on(trace, "python"), names.is_logging_frame)
    frames = slices_on_main_thread(trace, frames)
    frames = frames.filter(pl.col("duration").is_not_null())
    products = filter_by_name(slices_on(trace, "host"), names.is_matrix_operator)
    work = np.sort(products["start"].to_numpy())
    begin = frames["start"].to_numpy()
    end = begin + frames["duration"].to_numpy()
    around = np.searchsorted(work, begin) != np.searchsorted(work, end)
    return frames.filter(~pl.Series(around, dtype=pl.Boolean))


@dataclass(frozen=True, slots=True)
class LineSlices:
    """A source line, and the slices that it ran in order of time."""

    where: Where
    slices: pl.DataFrame

    @classmethod
    def as_one_group(cls, slices: pl.DataFrame) -> "LineSlices":
        """Returns all the slices as one group whose source line is unknown."""
        return cls(Where(), slices)

    @property
    def times(self) -> Intervals:
        """The intervals that the slices cover, merged."""
        return covered_time(self.slices)

    @property
    def ids(self) -> Ints:
        """The ids of all slices, as evidence for a finding."""
        return self.slices["id"].cast(pl.Int64).to_numpy()

    def events(self, max_count: int = 3) -> tuple[int, ...]:
        """Returns the ids of the `max_count` longest slices, as evidence for a finding."""
        longest = self.slices.sort("duration", "id", descending=[True, False]).head(max_count)
        return tuple(longest["id"].to_list())


def slices_by_line(trace: Trace, slices: pl.DataFrame) -> Iterator[LineSlices]:
    """Yields each source line's slices, the line with the largest total duration first.

    Slices without a known line are one group.
    """
    told = slices.with_columns(source_sites_of_slices(trace, slices["id"]))
    if not told.height:
        return
    groups = [
        (int(group["duration"].sum()), group)
        for _, group in told.group_by(SOURCE_SITE_COLUMNS, maintain_order=True)
    ]
    for _, group in sorted(groups, key=lambda pair: -pair[0]):
        row: dict[str, Any] = group.row(0, named=True)
        yield LineSlices(where_from_row(row), group.drop(SOURCE_SITE_COLUMNS).sort("start", "id"))


def operators_by_line(
    trace: Trace, operators: pl.DataFrame
) -> Iterator[tuple[Where, pl.DataFrame]]:
    """Yields each source line and its operators, the line with most operator time first.

    Operators without a known line are one group.
    """
    if not operators.height:
        return
    placed = operators.with_columns(source_sites_of_slices(trace, operators["id"]))
    parts = placed.partition_by(*SOURCE_SITE_COLUMNS, maintain_order=True)
    for part in sorted(parts, key=_covered_ns, reverse=True):
        yield where_from_row(part.row(0, named=True)), part.drop(*SOURCE_SITE_COLUMNS)


def _covered_ns(operators: pl.DataFrame) -> int:
    """Returns the time in which any of the operators ran, in ns."""
    begin, end = operator_intervals(operators)
    return int((end - begin).sum())
