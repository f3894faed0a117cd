"""Finds Python loops: source lines that run many times in a row, as over a tensor's elements."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import (
    outermost_operators,
    with_backward_operators,
)
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    slices_in_counted_steps,
    times_of_slices_named,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.detectors.tensor_iterations import rounds_of_tensor_iterations
from selftime.advice.well_optimised_verdict import MIN_COMPUTING_OPERATOR_NS
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import caller_of_every_frame
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.source_sites import EVIDENCE_OF_EXECUTING_LINE
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.array_types import Flags, Ints
from selftime.intervals import Intervals, intersect, length, union
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

MIN_LOOP_ITERATIONS: Final = 50
"""Smallest number of iterations of a loop over data; loops over layers or heads have fewer."""

MIN_ROUNDS_OF_A_LINE: Final = 25
"""Smallest number of elements that one of the lines of a loop takes; fewer are no loop, but lines
that take one element each."""

MAX_LINES_BETWEEN: Final = 3
"""Largest distance between lines of one function that are one loop, or loops over the same data."""

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
    """Returns loops that read or write a tensor element by element, or part by part, longest first.

    Loops within each other are one, at the line that indexes most often. Each slice spans a run of
    the loop; `elements` is how many it takes.
    """
    kept: list[LineSlices] = []
    for loop in sorted(element_loops_by_line(trace), key=lambda loop: -length(loop.times)):
        around = next((n for n, other in enumerate(kept) if _is_mostly_within(loop, other)), None)
        if around is None:
            kept.append(loop)
        else:
            kept[around] = _joined(kept[around], loop)
    return tuple(kept)


def _is_mostly_within(loop: LineSlices, other: LineSlices) -> bool:
    return 2 * length(intersect(loop.times, other.times)) > length(loop.times)


def _joined(outer: LineSlices, inner: LineSlices) -> LineSlices:
    """Returns two loops of which one runs within the other, at the line that indexes most often."""
    most = max(outer, inner, key=lambda loop: int(loop.slices["elements"].sum()))
    both = pl.concat([outer.slices, inner.slices]).sort("start", "id")
    end = pl.col("start") + pl.col("duration")
    begins = pl.col("start") >= end.cum_max().shift(1).fill_null(-1)
    runs = both.with_columns(end=end, run=begins.cum_sum()).group_by("run", maintain_order=True)
    first = pl.exclude("run", "duration", "elements", "end").first()
    joined = runs.agg(first, pl.col("elements").sum(), duration=pl.max("end") - pl.min("start"))
    return LineSlices(most.where, joined.select(outer.slices.columns))


@cached_per_trace
def element_loops_by_line(trace: Trace) -> tuple[LineSlices, ...]:
    """Returns the source lines whose loops take tensors apart, neighbouring lines as one.

    Runs that multiply matrices or call a network, and those of data loading, optimizers and the
    backward pass, are left out. So are loops that compute for most of their time: one operation
    for all rounds would compute as much.
    """
    ops = outermost_operators(trace)
    parts = filter_by_name(ops, names.selects_one_index)
    explained = times_of_slices_named(
        trace, names.is_data_loading, names.is_optimizer_annotation, names.is_backward_node
    )
    parts = parts.filter(~begins_during_intervals(parts, explained))
    usual = pl.col("duration").median().over("name")
    ends = _LoopEnds(
        always=_in_order(
            filter_by_name(ops, names.is_matrix_operator)["start"],
            _starts_of_network_calls(trace),
            counted_step_windows(trace)["start"],
        ),
        in_long_gaps=_in_order(
            filter_by_name(ops, names.is_layer_operator)["start"],
            ops.filter((pl.col("duration") > LARGE_OPERATOR_NS) & (usual > LARGE_OPERATOR_NS))[
                "start"
            ],
        ),
    )
    iterations = (
        LineSlices(one.where, one.slices.with_columns(line=pl.lit(0)))
        for one in rounds_of_tensor_iterations(trace, MIN_LOOP_ITERATIONS)
    )
    every = chain(_neighbouring_lines(trace, parts), iterations)
    found = (_loops_of_lines(lines, ends) for lines in every)
    return tuple(loop for loop in found if loop is not None and not _mostly_computes(trace, loop))


def _neighbouring_lines(trace: Trace, slices: pl.DataFrame) -> Iterator[LineSlices]:
    """Yields the slices of lines of one function with few lines between them, as of one line.

    That is the one with the largest total duration, of those that are known to have run and not
    only where their function is defined. The column `line` tells the lines apart.
    """
    of_function: dict[tuple[str | None, str | None], list[LineSlices]] = {}
    for one in slices_by_line(trace, slices):
        of_function.setdefault((one.where.file, one.where.function), []).append(one)
    for lines in of_function.values():
        longest_first = {id(one): rank for rank, one in enumerate(lines)}
        lines.sort(key=lambda one: one.where.line or 0)
        far = [
            (b.where.line or 0) - (a.where.line or 0) > MAX_LINES_BETWEEN
            for a, b in pairwise(lines)
        ]
        for first, last in _pieces(np.array(far, np.bool_)):
            near = lines[first:last]
            told = [one.slices.with_columns(line=pl.lit(n)) for n, one in enumerate(near)]
            longest = min(
                near,
                key=lambda one: (
                    one.where.how not in EVIDENCE_OF_EXECUTING_LINE,
                    longest_first[id(one)],
                ),
            )
            yield LineSlices(longest.where, pl.concat(told).sort("start", "id"))


def _mostly_computes(trace: Trace, loop: LineSlices) -> bool:
    return 2 * length(computing_times_of_loop(trace, loop)) > length(loop.times)


def computing_times_of_loop(trace: Trace, loop: LineSlices) -> Intervals:
    """Returns when operators run in a loop that mostly take too long for dispatch.

    One that is long once was interrupted, and one that is long as it calls many others dispatches
    them. With a device, operators dispatch: it computes.
    """
    host = slices_on(trace, "host")
    ops = filter_by_name(
        host.filter(host["category"].is_in(list(names.OPERATOR_CATEGORIES))),
        names.is_dispatched_operator,
    )
    inside = ops.filter(begins_during_intervals(ops, loop.times) & ops["duration"].is_not_null())
    if trace.device_args.height:
        inside = inside.clear()
    median = pl.col("self").median().over("name")
    return covered_time(inside.filter(median >= MIN_COMPUTING_OPERATOR_NS))


def backward_times_of_loop(trace: Trace, loop: LineSlices) -> Intervals:
    """Returns when the backward pass of a loop's operators runs, with those that they call.

    The time in which autograd goes from one of their nodes to the next belongs to it.
    """
    ops = outermost_operators(trace)
    inside = ops.filter(begins_during_intervals(ops, loop.times))
    inside = inside.with_columns(end=pl.col("start") + pl.col("duration"))
    both = with_backward_operators(trace, inside)
    ids = both["id"].filter(~both["id"].is_in(inside["id"].implode()))
    nodes = slices_in_counted_steps(trace, trace.slices[ids])
    return _without_short_gaps(covered_time(nodes), np.sort(ops["start"].to_numpy()))


def _without_short_gaps(times: Intervals, starts: Ints) -> Intervals:
    """Returns the times with their gaps of up to 50 us, but those in which an operator starts."""
    first, last = times.ends[:-1], times.starts[1:]
    is_free = np.searchsorted(starts, first) == np.searchsorted(starts, last)
    is_joined = is_free & (last - first <= LARGE_OPERATOR_NS)
    return union(
        np.concatenate([times.starts, first[is_joined]]),
        np.concatenate([times.ends, last[is_joined]]),
    )


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


def _loops_of_lines(line_slices: LineSlices, ends: _LoopEnds) -> LineSlices | None:
    """Returns slices of lines merged into the time of their loops; None if they run in no loop.

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
        _run_as_row(slices.slice(first + start, end - start).drop("line"))
        for first, last in _pieces(is_end)
        if last - first >= MIN_LOOP_ITERATIONS
        and slices["line"][first:last].value_counts()["count"].max() >= MIN_ROUNDS_OF_A_LINE  # type: ignore[operator]  # a count
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
    """Returns one row for a run of a loop; `elements` is its number of slices."""
    begin, end = start_and_end_of_run(run)
    return run.head(1).with_columns(
        duration=pl.lit(end - begin, pl.Int64), elements=pl.lit(run.height, pl.Int64)
    )


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
