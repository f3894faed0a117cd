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
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.array_types import Ints
from selftime.trace import Trace

MIN_LOOP_ITERATIONS: Final = 50
"""Smallest number of iterations of a loop over data; loops over layers or heads have fewer."""

MIN_LOOP_END_TO_USUAL_GAP_RATIO: Final = 10.0
"""Smallest ratio to the usual gap between successive slices at which a gap ends a loop."""

SHARE_OF_GAPS_WITHIN_LOOP: Final = 0.9
"""Share of the gaps between a line's slices that are within a loop, those between the rounds among
them. A round that reads up to eight elements has one gap in eight or more that is longer."""

LARGE_OPERATOR_NS: Final = 50_000
"""Duration in ns above which an operator is mostly computation, and no part of a loop over elements
that one operation replaces."""


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
    edges = np.sort(
        np.concatenate(
            [
                filter_by_name(ops, names.is_layer_operator)["start"].to_numpy(),
                ops.filter(pl.col("duration") > LARGE_OPERATOR_NS)["start"].to_numpy(),
                counted_step_windows(trace)["start"].to_numpy(),
            ]
        )
    )
    found = (
        _loops_of_line(line_slices, products) or _uneven_loops_of_line(line_slices, edges)
        for line_slices in slices_by_line(trace, selects)
    )
    return tuple(loop for loop in found if loop is not None)


def _uneven_loops_of_line(line_slices: LineSlices, edges: Ints) -> LineSlices | None:
    """Returns a line's slices merged into one per loop whose rounds have gaps of unequal length.

    Such as three elements that are read one after the other, then the rest of the round. `edges`
    are the instants (ns, ascending) at which such a loop ends: at a layer of a network, a large
    operator or the next step, for they are no part of a round that one operation can replace.
    """
    slices = line_slices.slices
    if slices.height < MIN_LOOP_ITERATIONS:
        return None
    begin = slices["start"].to_numpy()
    between = np.diff(begin)
    usual = np.quantile(between, SHARE_OF_GAPS_WITHIN_LOOP)
    is_cut = np.searchsorted(edges, begin[1:], side="right") != np.searchsorted(
        edges, begin[:-1], side="right"
    )
    breaks = np.flatnonzero((between > MIN_LOOP_END_TO_USUAL_GAP_RATIO * usual) | is_cut) + 1
    runs = [
        slices.slice(first, last - first)
        for first, last in pairwise([0, *breaks.tolist(), begin.size])
        if last - first >= MIN_LOOP_ITERATIONS
    ]
    return (
        LineSlices(line_slices.where, pl.concat([_run_as_row(run) for run in runs]))
        if runs
        else None
    )


def _run_as_row(run: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for a run of a loop; `rounds` is its number of slices."""
    begin, end = start_and_end_of_run(run)
    return run.head(1).with_columns(duration=pl.lit(end - begin), rounds=pl.lit(run.height))


def _loops_of_line(line_slices: LineSlices, matmul_starts: pl.Series) -> LineSlices | None:
    """Returns a source line's slices merged into one per loop; None if it runs in no loop."""
    spans = [
        _run_as_row(run)
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
