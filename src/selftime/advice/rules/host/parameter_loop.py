"""A Python loop updates or measures one parameter at a time.

## What it means
Outside of an optimizer a loop goes through the model's parameters, or their gradients, and runs a
few operators for each: a moving average of the weights, clipping, the norm of the gradients, an
update written by hand.

In the trace: twelve or more updates of a tensor in place, or arithmetic without gradient, in one
function, one after the other, with no layer or backward operator between them. The tensors have the
shapes of parameters, by the inputs of layers and the gradients that autograd accumulates, and two
of these shapes or more where there are so many: samples of a batch are all alike.

## Why it costs
Every operator costs its dispatch on the host, several microseconds with Python around it, whatever
its size; on a device it is a launch of a short kernel. Measured on a CPU, a moving average of 100
small tensors: 317 us in a loop, 38 us with `torch._foreach_lerp_`.

## What to do
Take all tensors at once: `torch._foreach_*`, `torch.nn.utils.clip_grad_norm_`,
`torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`.

The estimate leaves a tenth of the overhead, 5 us an operator or kernel, and all other work.

## Fires on
A moving average of the weights, one parameter after the other.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | llllllllllllllllllllllllllll  mambmambmambmambmambmambmambmambmambma
    s = ProfilerStep#1
    l = aten::linear; line = net.py:9 forward; input_shapes = [[4,8],[8,8],[8]]
    m = aten::mul_; line = ema.py:4 update; input_shapes = [[8,8]]
    a = aten::add_; line = ema.py:4 update; input_shapes = [[8,8]]
    b = aten::add_; line = ema.py:4 update; input_shapes = [[8]]

## Silent on
The samples of a batch, which have the shape of no parameter.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | dddddddddddddddddddddddddddddddd  llllllllllllllllllllllllllllllllll
    s = ProfilerStep#1
    l = aten::linear; line = net.py:9 forward; input_shapes = [[32,64],[8,64],[8]]
    d = aten::div_; line = memory.py:4 sample; input_shapes = [[4,16],[]]

An optimizer, which `single_tensor_optimizer` reports.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    mark 1 |                               oooooooooooooooooooooooooooooooooooooo
    cpu 1  | llllllllllllllllllllllllllll  mamamamamamamamamamamamamamamamamamama
    s = ProfilerStep#1
    o = Optimizer.step#SGD.step
    l = aten::linear; line = net.py:9 forward
    m = aten::mul_; line = sgd.py:4 update
    a = aten::add_; line = sgd.py:4 update

Updates in place between the layers of a network.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | lllamlllamlllamlllamlllamlllamlllamlllamlllamlllamlllamlllamlllamlllam
    s = ProfilerStep#1
    l = aten::linear; line = net.py:8 forward
    m = aten::mul_; line = net.py:9 forward
    a = aten::add_; line = net.py:9 forward

A few parameters.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | llllllllllllllllllllllllllll  mamamama    llllllllllllllllllllllllll
    s = ProfilerStep#1
    l = aten::linear; line = net.py:9 forward
    m = aten::mul_; line = ema.py:4 update
    a = aten::add_; line = ema.py:4 update
"""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators, parse_sizes
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    significance_limits_for_cause,
    times_of_slices_named,
)
from selftime.advice.detectors.loop_rounds import rounds_by_kinds
from selftime.advice.detectors.operator_changes import device_work_launched_during
from selftime.advice.detectors.python_loops import (
    element_loops_by_line,
    runs_without_long_gap,
    start_and_end_of_run,
)
from selftime.advice.detectors.source_lines import LineSlices
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Where,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_arguments import arguments_of_slices, slices_with_arguments
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.intervals import length
from selftime.names.tensor_operators import (
    is_out_of_place_arithmetic,
    takes_parameters,
    updates_one_tensor,
)
from selftime.trace import Trace
from selftime.units import count_text

MIN_PARAMETERS_IN_LOOP: Final = 12
"""Smallest number of parameters in a loop to report; loops over losses and metrics are shorter."""

OPERATOR_OVERHEAD_NS: Final = 5_000
"""Assumed overhead of an operator or kernel in ns; the rest of its time moves bytes."""

REMAINING_OVERHEAD_SHARE: Final = 0.1
"""Share of the loop's overhead that remains if one operator updates all parameters."""

FIX_CODE: Final = """for kept, new in zip(average, parameters):                # before
    kept.mul_(decay).add_(new, alpha=1 - decay)

torch._foreach_lerp_(average, parameters, 1 - decay)      # after
torch.nn.utils.clip_grad_norm_(parameters, 1.0)           # norms too"""
"""Example code of the fix: one operator for all parameters replaces the loop."""


@rule(covers=("D4",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    loops = list(_parameter_loops(trace))
    if step_stats is None or not loops:
        yield Checked(
            f"no loop works on {MIN_PARAMETERS_IN_LOOP} or more parameters one by one",
            is_absent=True,
        )
        return
    for loop in loops:
        own, most = (
            significance_limits_for_cause(trace, step_stats, loop.times),
            _loop_ms_per_step(trace, step_stats, loop),
        )
        if own.is_saving_worth_reporting(most):
            yield _finding(trace, own, loop)
        else:
            reason = own.reason_saving_is_small(f"a loop over parameters ({loop.where})")
            on_device = device_work_launched_during(trace, loop.times).height > 0
            yield Checked(reason, most, is_slowed=not on_device)


def _loop_ms_per_step(trace: Trace, step_stats: StepStatistics, loop: LineSlices) -> float:
    """Returns the longer of the loop's host time and device time, in ms per step."""
    work = device_work_launched_during(trace, loop.times)
    on_device: int = sum((work["end"] - work["start"]).to_list())
    longer = max(length(loop.times), on_device)
    return step_stats.scaled_to_typical_step(longer / counted_step_count(trace) / 1e6)


def _parameter_loops(trace: Trace) -> Iterator[LineSlices]:
    """Yields each Python loop over parameters, one per function, with all its executions.

    A row is one execution of the loop, and `rounds` is its number of iterations.
    """
    operators = outermost_operators(trace)
    network_starts = _starts_of_network_work(trace, operators)
    if not network_starts.size:
        return  # there is no network, and so no parameter
    updates = _parameter_updates(trace, operators)
    explained = times_of_slices_named(
        trace, names.is_data_loading, names.is_optimizer_annotation, names.clears_gradients
    )
    updates = updates.filter(~begins_during_intervals(updates, explained))
    elements = element_loops_by_line(trace)
    for loop in elements:
        updates = updates.filter(~begins_during_intervals(updates, loop.times))
    if updates.height < MIN_PARAMETERS_IN_LOOP:
        return
    kinds = min(len(_parameter_shapes(trace, operators)), 2)
    placed = updates.with_columns(source_sites_of_slices(trace, updates["id"]))
    for loop in elements:  # a pause breaks its runs, and what is left of one has few rounds
        placed = placed.filter(~_row_is_on_line_expression(loop.where))
    for _, same in placed.group_by("file", "function", maintain_order=True):
        spans = [
            _parameter_loop_as_one_row(run, kinds)
            for run in runs_without_long_gap(same.sort("start", "id"), MIN_PARAMETERS_IN_LOOP)
        ]
        found = [
            run
            for run in spans
            if run is not None and not _contains_network_work(network_starts, run)
        ]
        if found:
            runs = pl.concat(found)
            yield LineSlices(where_from_row(_slowest_source_line(same)), runs)


def _row_is_on_line_expression(location: Where) -> pl.Expr:
    """Returns a Polars expression that is true for table rows at the source line of `location`."""
    if location.line is None:
        return pl.lit(value=False)
    same = (pl.col("file").cast(pl.String) == location.file) & (pl.col("line") == location.line)
    return same.fill_null(value=False)


def _parameter_updates(trace: Trace, operators: pl.DataFrame) -> pl.DataFrame:
    """Returns operators that update or measure a tensor of a parameter's shape.

    Those that write a new tensor are of shapes in which gradients are accumulated, and run outside
    of autograd. If these shapes are all alike, they are left out: they may work on one tensor over
    and over. The column `shape` holds the tensor's sizes as text.
    """
    in_place = _with_shape_among(
        trace, filter_by_name(operators, updates_one_tensor), _parameter_shapes(trace, operators)
    )
    trained = _shapes_of_gradients(trace)
    if len(trained) < 2:
        return in_place
    new = _with_shape_among(trace, filter_by_name(operators, is_out_of_place_arithmetic), trained)
    forward = trace.op_args["forward"].drop_nulls()
    return pl.concat([in_place, new.filter(~pl.col("id").is_in(forward.implode()))])


def _with_shape_among(
    trace: Trace, operators: pl.DataFrame, shapes: set[tuple[int, ...]]
) -> pl.DataFrame:
    """Returns the operators whose first input has one of the shapes, in the column `shape`."""
    told = slices_with_arguments(trace, "op_args", operators, "input_shapes")
    texts = told["input_shapes"].cast(pl.String)
    first = {text: next(iter(parse_sizes(text)), ()) for text in texts.unique()}
    kept = {text: str(shape) for text, shape in first.items() if shape in shapes}
    shape = pl.Series("shape", [kept.get(text) for text in texts], dtype=pl.String)
    return told.drop("input_shapes").with_columns(shape).drop_nulls("shape")


def _parameter_shapes(trace: Trace, operators: pl.DataFrame) -> set[tuple[int, ...]]:
    """Returns the shapes of gradients, and of the inputs of layers but the first.

    Of an embedding the first input is the parameter, and the others are none.
    """
    layers = filter_by_name(operators, takes_parameters)
    told = slices_with_arguments(trace, "op_args", layers, "input_shapes")
    found = _shapes_of_gradients(trace)
    for name, text in told.select(pl.col("name", "input_shapes").cast(pl.String)).unique().rows():
        sizes = parse_sizes(text)
        found.update(sizes[:1] if "embedding" in name else sizes[1:])
    return found - {()}


def _shapes_of_gradients(trace: Trace) -> set[tuple[int, ...]]:
    """Returns the shapes in which autograd accumulates gradients: those of trained parameters."""
    sums = filter_by_name(slices_on(trace, "host"), names.accumulates_gradient)
    shapes = arguments_of_slices(trace, "op_args", sums["id"], "input_shapes")["input_shapes"]
    return {
        size
        for text in shapes.drop_nulls().unique().cast(pl.String)
        for size in parse_sizes(text)[:1]
        if size
    }


def _starts_of_network_work(
    trace: Trace, operators: pl.DataFrame
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Returns the start times in ns of layer operators and backward nodes, sorted."""
    nodes = filter_by_name(slices_on(trace, "host"), names.is_backward_node)
    return np.sort(
        pl.concat(
            [filter_by_name(operators, names.is_layer_operator)["start"], nodes["start"]]
        ).to_numpy()
    )


def _parameter_loop_as_one_row(updates: pl.DataFrame, min_shapes: int) -> pl.DataFrame | None:
    """Returns one table row for one execution of a loop; None if it makes too few rounds.

    None too if the tensors have fewer than `min_shapes` shapes.
    """
    turns = _rounds_of_updates(updates)
    if updates["shape"].n_unique() < min_shapes or turns < MIN_PARAMETERS_IN_LOOP:
        return None
    begin, end = start_and_end_of_run(updates)
    return updates.head(1).select(
        "id", "name", "track", "start", duration=pl.lit(end - begin), rounds=pl.lit(turns)
    )


def _rounds_of_updates(updates: pl.DataFrame) -> int:
    """Returns how many rounds a loop makes, each with one parameter.

    An operator that a round runs twice, in one line or in two, counts once.
    """
    counts = updates["name"].cast(pl.String).value_counts()["count"]
    often: list[int] = counts.filter(counts >= MIN_PARAMETERS_IN_LOOP).to_list()
    if not often:
        return 0
    kinds = updates.select(pl.struct("name", "line").rank("dense")).to_series().to_numpy()
    most = updates["name"].mode().sort()[0]
    rounds = rounds_by_kinds(kinds, (updates["name"] == most).to_numpy())
    return min(often) if rounds is None else min(*often, rounds)


def _contains_network_work(
    network_starts: np.ndarray[Any, np.dtype[np.int64]], run: pl.DataFrame
) -> bool:
    begin = int(run["start"][0])
    end = begin + int(run["duration"][0])
    return bool(np.searchsorted(network_starts, end) > np.searchsorted(network_starts, begin))


def _slowest_source_line(operators: pl.DataFrame) -> dict[str, Any]:
    """Returns the table row of the source line on which the operators take the most time."""
    totals = operators.group_by(SOURCE_SITE_COLUMNS, maintain_order=True).agg(
        pl.col("duration").sum()
    )
    return totals.sort("duration", descending=True, maintain_order=True).row(0, named=True)


def _finding(trace: Trace, step_stats: StepStatistics, loop: LineSlices) -> Finding:
    steps = counted_step_count(trace)
    count = sum(loop.slices["rounds"].to_list()) / steps
    less, most = (
        _changes_cutting_overhead(trace, loop, REMAINING_OVERHEAD_SHARE),
        _changes_cutting_overhead(trace, loop, 0.0),
    )
    spent = step_stats.scaled_to_typical_step(length(loop.times) / steps / 1e6)
    return Finding(
        title=f"A Python loop of {count_text(count)} rounds a step works on one parameter in each",
        where=loop.where,
        count_per_step=count,
        claim=RemovalClaim(less, largest_changes=most, noise_ms=step_stats.noise_ms),
        confidence="high" if loop.where.line is not None else "medium",
        evidence=(
            Evidence("host time of the loop", spent, "ms", loop.events(), loop.ids),
            Evidence("loop iterations a step", count, "count"),
        ),
        fix=Fix("Do the work of the loop in one operator for all parameters.", FIX_CODE),
    )


def _changes_cutting_overhead(
    trace: Trace, loop: LineSlices, overhead_share: float
) -> tuple[Change, ...]:
    """Returns simulated changes that cut the overhead of a loop's operators to a share of it.

    The other work of the loop stays.
    """
    work = device_work_launched_during(trace, loop.times)
    if work.height:
        ids = work["id"].cast(pl.Int64).to_numpy()
        durations = (work["end"] - work["start"]).to_numpy()
        return CutHostTime(loop.times, overhead_share), ScaleDeviceWork(
            ids, _remaining_operator_time_shares(durations, overhead_share)
        )
    operators = outermost_operators(trace)
    durations = operators.filter(begins_during_intervals(operators, loop.times))[
        "duration"
    ].to_numpy()
    own = float(np.maximum(durations - OPERATOR_OVERHEAD_NS, 0).sum()) / max(length(loop.times), 1)
    return (CutHostTime(loop.times, own + overhead_share * (1 - own)),)


def _remaining_operator_time_shares(
    durations: np.ndarray[Any, Any], overhead_share: float
) -> np.ndarray[Any, np.dtype[np.float64]]:
    work = np.maximum(durations - OPERATOR_OVERHEAD_NS, 0) / np.maximum(durations, 1)
    return np.asarray(work + overhead_share * (1 - work), np.float64)
