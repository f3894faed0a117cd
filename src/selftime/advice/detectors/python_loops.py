"""Finds Python loops: source lines that run many times in a row, as over a tensor's elements."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import begins_during_intervals, times_of_slices_named
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.well_optimised_verdict import MIN_COMPUTING_OPERATOR_NS
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import caller_of_every_frame
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.array_types import Flags, Ints
from selftime.intervals import Intervals, length
from selftime.nesting import NO_SLICE, nearest_ancestor
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
    matrices or call a network, and those of data loading and optimizers, are left out. So are loops
    that compute for most of their time: one operation for all rounds would compute as much.
    """
    ops = outermost_operators(trace)
    selects = filter_by_name(ops, names.selects_one_index)
    explained = times_of_slices_named(trace, names.is_data_loading, names.is_optimizer_annotation)
    selects = selects.filter(~begins_during_intervals(selects, explained))
    ends = _LoopEnds(
        always=_in_order(
            filter_by_name(ops, names.is_matrix_operator)["start"],
            _starts_of_network_calls(trace),
            counted_step_windows(trace)["start"],
        ),
        in_long_gaps=_in_order(
            filter_by_name(ops, names.is_layer_operator)["start"],
            ops.filter(pl.col("duration") > LARGE_OPERATOR_NS)["start"],
        ),
    )
    found = (_loops_of_line(line_slices, ends) for line_slices in slices_by_line(trace, selects))
    return tuple(loop for loop in found if loop is not None and not _mostly_computes(trace, loop))


def _mostly_computes(trace: Trace, loop: LineSlices) -> bool:
    return 2 * length(computing_times_of_loop(trace, loop)) > length(loop.times)


def computing_times_of_loop(trace: Trace, loop: LineSlices) -> Intervals:
    """Returns when operators run in a loop that are mostly too long to be dispatch.

    One that is long once was interrupted. With a device, operators dispatch: it computes.
    """
    ops = outermost_operators(trace)
    inside = ops.filter(begins_during_intervals(ops, loop.times))
    if trace.device_args.height:
        inside = inside.clear()
    median = pl.col("duration").median().over("name")
    return covered_time(inside.filter(median >= MIN_COMPUTING_OPERATOR_NS))


@dataclass(frozen=True, slots=True)
class _LoopEnds:
    """Instants, in ns and ascending, at which no loop over elements runs."""

    always: Ints
    """Starts of matrix products, networks and steps."""
    in_long_gaps: Ints
    """Starts of layers and large operators: they end a loop unless each round has them."""


def _in_order(*starts: pl.Series) -> Ints:
    """Returns the instants of all series, ascending."""
    return np.sort(np.concatenate([each.to_numpy() for each in starts]))


def _starts_of_network_calls(trace: Trace) -> pl.Series:
    """Returns the starts, in ns, of calls of modules that call others: a network, and no loss."""
    modules = trace.frame_args.filter(pl.col("module_id").is_not_null())["id"].to_numpy()
    caller = caller_of_every_frame(trace)
    is_module = np.zeros(trace.slices.height, np.bool_)
    is_module[modules] = True
    around = nearest_ancestor(caller, is_module, caller[modules])
    return trace.slices["start"].gather(np.unique(around[around != NO_SLICE]))


def _loops_of_line(line_slices: LineSlices, ends: _LoopEnds) -> LineSlices | None:
    """Returns a line's slices merged into the time of its loops; None if it runs in no loop.

    The gaps of a loop may differ: three elements are read one after the other, then comes the rest
    of the round. Longer ones, in which the system took the core from the program, belong to the
    loop, and their time does not.
    """
    slices = line_slices.slices
    if slices.height < MIN_LOOP_ITERATIONS:
        return None
    begin = slices["start"].to_numpy()
    between = np.diff(begin)
    is_long = between > MIN_LOOP_END_TO_USUAL_GAP_RATIO * np.median(between)
    is_end = _lies_in_gaps(ends.always, begin) | (is_long & _lies_in_gaps(ends.in_long_gaps, begin))
    usual = np.quantile(between, SHARE_OF_GAPS_WITHIN_LOOP)
    is_foreign = between > MIN_LOOP_END_TO_USUAL_GAP_RATIO * usual
    spans = [
        _run_as_row(slices.slice(first + start, end - start))
        for first, last in _pieces(is_end)
        if last - first >= MIN_LOOP_ITERATIONS
        for start, end in _pieces(is_foreign[first : last - 1])
    ]
    return LineSlices(line_slices.where, pl.concat(spans)) if spans else None


def _lies_in_gaps(instants: Ints, begin: Ints) -> Flags:
    """Returns for each gap between successive starts whether one of the instants lies in it."""
    before = np.searchsorted(instants, begin, side="right")
    return np.diff(before) > 0


def _pieces(is_cut: Flags) -> Iterator[tuple[int, int]]:
    """Yields [first, last) of each piece of a row of elements, of whose gaps some are cut."""
    cuts = (np.flatnonzero(is_cut) + 1).tolist()
    yield from pairwise([0, *cuts, is_cut.size + 1])


def _run_as_row(run: pl.DataFrame) -> pl.DataFrame:
    """Returns one row for a run of a loop; `rounds` is its number of slices."""
    begin, end = start_and_end_of_run(run)
    return run.head(1).with_columns(duration=pl.lit(end - begin), rounds=pl.lit(run.height))


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
