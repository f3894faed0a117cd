"""Arrows between slices: from a launch to the work on the device, from forward to backward."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.arrays import Ints
from selftime.nesting import NONE
from selftime.trace import Trace

LAUNCH: Final = "ac2g"
PASSES: Final = "fwdbwd"
"""What Kineto calls the two kinds of arrows."""


class Arrows:
    """The arrows of a trace: one for each slice that one ends at, so that each has two ends.

    A launch of a graph begins as many as it launched work: viewers drop a second end.
    """

    def __init__(self, trace: Trace) -> None:
        launched = _pairs(trace.slices.select("id", other="launch"))
        self._ends: dict[str, tuple[Ints, Ints]] = {LAUNCH: launched, PASSES: _passes(trace)}
        self._first = {LAUNCH: 1, PASSES: 1 + trace.slices.height}
        """Arrows are numbered by the slice that they end at; no two kinds share a number."""
        self.count = sum(end.size for _, end in self._ends.values())

    def points(self, low: int, high: int) -> Iterator[pl.DataFrame]:
        """Begins and ends at slices from one to another. Columns: slice, arrow, kind, is_end."""
        for kind, ends in self._ends.items():
            number = ends[1] + self._first[kind]
            for is_end, at in enumerate(ends):
                here = (at >= low) & (at < high)
                told = {"slice": at[here], "arrow": number[here]}
                table = pl.DataFrame(told, schema={"slice": pl.Int64, "arrow": pl.Int64})
                yield table.with_columns(kind=pl.lit(kind), is_end=pl.lit(bool(is_end)))


def _pairs(links: pl.DataFrame) -> tuple[Ints, Ints]:
    known = links.drop_nulls().cast(pl.Int64)
    return known["other"].to_numpy(), known["id"].to_numpy()


def _passes(trace: Trace) -> tuple[Ints, Ints]:
    """From forward operators to the outermost of the backward ones that belong to them."""
    begin, end = _pairs(trace.op_args.select("id", other="forward"))
    forward = np.full(trace.slices.height, NONE, np.int64)
    forward[end] = begin
    parent = trace.slices["parent"].cast(pl.Int64).fill_null(NONE).to_numpy()[end]
    outer = (parent == NONE) | (forward[np.maximum(parent, 0)] != begin)
    return begin[outer], end[outer]
