"""Finds Python loops: source lines that run many times in a row, as over a tensor's elements."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import begins_during_intervals, times_of_slices_named
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

MIN_LOOP_ITERATIONS: Final = 50
"""Smallest number of iterations of a loop over data; loops over layers or heads have fewer."""

MIN_LOOP_END_TO_USUAL_GAP_RATIO: Final = 10.0
"""Smallest ratio to the usual gap between successive slices at which a gap ends a loop."""


@cached_per_trace
def tensor_element_loops(trace: Trace) -> tuple[LineSlices, ...]:
    """Returns source lines whose loops read or write a tensor element by element, longest first.

    Each slice spans a run of the loop; `rounds` is its number of elements. Runs that multiply
    matrices, and those of data loading and optimizers, are left out.
    """
    ops = outermost_operators(trace)
    selects = filter_by_name(ops, names.selects_one_index)
    explained = times_of_slices_named(trace, names.is_data_loading, names.is_optimizer_annotation)
    selects = selects.filter(~begins_during_intervals(selects, explained))
    products = filter_by_name(ops, names.is_matrix_operator)["start"]
    found = (
        _loops_of_line(line_slices, products) for line_slices in slices_by_line(trace, selects)
    )
    return tuple(loop for loop in found if loop is not None)


def _loops_of_line(line_slices: LineSlices, matmul_starts: pl.Series) -> LineSlices | None:
    """Returns a source line's slices merged into one per loop; None if it runs in no loop."""
    spans = [
        run.head(1).with_columns(
            duration=pl.lit(start_and_end_of_run(run)[1] - start_and_end_of_run(run)[0]),
            rounds=pl.lit(run.height),
        )
        for run in runs_without_long_gap(line_slices.slices, MIN_LOOP_ITERATIONS)
        if not matmul_starts.is_between(*start_and_end_of_run(run)).any()
    ]
    return LineSlices(line_slices.where, pl.concat(spans)) if spans else None


def runs_without_long_gap(slices: pl.DataFrame, min_length: int) -> Iterator[pl.DataFrame]:
    """Yields runs of at least `min_length` successive slices without a long gap between them."""
    begin = slices["start"].to_numpy()
    between = np.diff(begin)
    if between.size + 1 < min_length:
        return
    breaks = np.flatnonzero(between > MIN_LOOP_END_TO_USUAL_GAP_RATIO * np.median(between)) + 1
    edges = [0, *breaks.tolist(), begin.size]
    for first, last in pairwise(edges):
        if last - first >= min_length:
            yield slices.slice(first, last - first)


def start_and_end_of_run(run: pl.DataFrame) -> tuple[int, int]:
    """Returns (start of the first slice, end of the last slice) in ns."""
    begin = run["start"].to_numpy()
    return int(begin[0]), int((begin + run["duration"].to_numpy()).max())
