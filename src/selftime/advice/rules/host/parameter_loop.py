"""A Python loop updates or measures one parameter at a time.

## What it means
Outside of an optimizer a loop goes through the model's parameters, or their gradients, and runs a
few operators for each: a moving average of the weights, clipping, the norm of the gradients, an
update written by hand.

## Why it costs
Every operator costs its dispatch on the host, several microseconds with Python around it, whatever
its size; on a device it is a launch of a short kernel. Measured on a CPU, a moving average of 100
small tensors: 317 us in a loop, 38 us with `torch._foreach_lerp_`.

## What to do
Take all tensors at once: `torch._foreach_*`, `torch.nn.utils.clip_grad_norm_`,
`torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn`.

## Fires on
A moving average of the weights, one parameter after the other.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | llllllllllllllllllllllllllll  mamamamamamamamamamamamamamamamamamama
    s = ProfilerStep#1
    l = aten::linear; line = net.py:9 forward
    m = aten::mul_; line = ema.py:4 update; input_shapes = [[8,8]]
    a = aten::add_; line = ema.py:4 update; input_shapes = [[8,8]]

## Silent on
An optimizer, of which another rule tells.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Where, rule, where
from selftime.advice.detectors.changes import launched_during
from selftime.advice.detectors.counted_steps import gate_of, is_during, regions_of, steps_counted
from selftime.advice.detectors.loops import element_loops, rounds, span
from selftime.advice.detectors.operators import outermost_operators, sizes
from selftime.advice.detectors.places import Place
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Change, Cut, Scale
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_arguments import arguments_of, with_arguments
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.intervals import length
from selftime.names.tensors import is_out_of_place_arithmetic, updates_one_tensor
from selftime.trace import Trace

LEAST_PARAMETERS: Final = 12
"""For fewer a loop is as good as anything; axes, losses and metrics are fewer too."""

DISPATCH_NS: Final = 5_000
"""Of an operator or a kernel this is overhead, what is beyond it moves bytes: measured 1 to 10."""

KEPT: Final = 0.1
"""Of the overhead that stays in one operator for all: measured 38 of 317 us, with its work."""

CODE: Final = """for kept, new in zip(average, parameters):                # before
    kept.mul_(decay).add_(new, alpha=1 - decay)

torch._foreach_lerp_(average, parameters, 1 - decay)      # after
total = torch.nn.utils.clip_grad_norm_(parameters, 1.0)   # norms and clipping likewise"""
"""A loop over parameters and what it becomes."""


@rule(covers=("D4",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    loops = list(_loops(trace))
    if limits is None or not loops:
        yield Checked(
            f"no loop works on {LEAST_PARAMETERS} or more parameters one by one", is_absent=True
        )
        return
    for loop in loops:
        own, most = gate_of(trace, limits, loop.times), _time_ms(trace, limits, loop)
        if own.passes(most):
            yield own.judge(_finding(trace, limits, loop))
        else:
            reason = own.reason(f"a loop over parameters ({loop.where})")
            yield Checked(reason, limits.unrecorded(most))


def _time_ms(trace: Trace, limits: Gate, loop: Place) -> float:
    """What the loop takes of a step on the host or the device, whichever is longer."""
    work = launched_during(trace, loop.times)
    on_device: int = sum((work["end"] - work["start"]).to_list())
    longer = max(length(loop.times), on_device)
    return limits.typical(longer / steps_counted(trace) / 1e6)


def _loops(trace: Trace) -> Iterator[Place]:
    """Loops by function: a row spans a run, `rounds` are the operators of its line."""
    ops = outermost_operators(trace)
    others = _others(trace, ops)
    if not others.size:
        return  # there is no network: what is updated is no parameter
    updates = pl.concat([filter_by_name(ops, updates_one_tensor), _replaced(trace, ops)])
    explained = regions_of(trace, names.is_data_loading, names.is_optimizer, names.clears_gradients)
    updates = updates.filter(~is_during(updates, explained))
    elements = element_loops(trace)
    for loop in elements:
        updates = updates.filter(~is_during(updates, loop.times))
    if updates.height < LEAST_PARAMETERS:
        return
    placed = updates.with_columns(sites(trace, updates["id"]))
    for loop in elements:  # a pause breaks its runs, and what is left of one has few rounds
        placed = placed.filter(~_is_at(loop.where))
    for _, same in placed.group_by("file", "function", maintain_order=True):
        spans = [_run(run) for run in rounds(same.sort("start", "id"), LEAST_PARAMETERS)]
        found = [run for run in spans if run is not None and not _holds(others, run)]
        if found:
            runs = pl.concat(found)
            yield Place(where(_main_line(same)), runs)


def _is_at(place: Where) -> pl.Expr:
    """Whether a row's site is this line."""
    if place.line is None:
        return pl.lit(value=False)
    same = (pl.col("file").cast(pl.String) == place.file) & (pl.col("line") == place.line)
    return same.fill_null(value=False)


def _replaced(trace: Trace, ops: pl.DataFrame) -> pl.DataFrame:
    """Arithmetic on what has the shape of a parameter, into a new tensor, that needs no gradient.

    The shapes of parameters are those that autograd accumulates gradients in. Where all are alike
    they tell nothing: what is calculated over and over may be one tensor.
    """
    sums = filter_by_name(slices_on(trace, "host"), names.accumulates_gradient)
    shapes = arguments_of(trace, "op_args", sums["id"], "input_shapes")["input_shapes"]
    trained = shapes.drop_nulls().unique().cast(pl.String)
    parameters = {tuple(sizes(text)[:1]) for text in trained} - {(), ((),)}
    if len(parameters) < 2:
        return ops.clear()
    told = with_arguments(
        trace, "op_args", filter_by_name(ops, is_out_of_place_arithmetic), "input_shapes"
    )
    known = told["input_shapes"].drop_nulls().unique()
    alike = known.filter(
        pl.Series([tuple(sizes(text)[:1]) in parameters for text in known], dtype=pl.Boolean)
    )
    forward = trace.op_args["forward"].drop_nulls()
    mine = pl.col("input_shapes").is_in(alike.implode()) & ~pl.col("id").is_in(forward.implode())
    return told.filter(mine.fill_null(value=False)).select(ops.columns)


def _others(trace: Trace, ops: pl.DataFrame) -> np.ndarray[Any, np.dtype[np.int64]]:
    """When what is no bookkeeping of parameters began: products, layers, nodes of gradients."""
    nodes = filter_by_name(slices_on(trace, "host"), names.is_backward_node)
    return np.sort(
        pl.concat(
            [filter_by_name(ops, names.is_layer_operator)["start"], nodes["start"]]
        ).to_numpy()
    )


def _run(run: pl.DataFrame) -> pl.DataFrame | None:
    """One row that spans the run; None if too few rounds of any operator are in it."""
    counts = run["name"].cast(pl.String).value_counts()["count"]
    often = counts.filter(counts >= LEAST_PARAMETERS).to_list()
    if not often:
        return None
    turns = min(often)  # what a round does twice, as two products for an average, counts once
    begin, end = span(run)
    return run.head(1).select(
        "id", "name", "track", "start", duration=pl.lit(end - begin), rounds=pl.lit(turns)
    )


def _holds(others: np.ndarray[Any, np.dtype[np.int64]], run: pl.DataFrame) -> bool:
    begin = int(run["start"][0])
    end = begin + int(run["duration"][0])
    return bool(np.searchsorted(others, end) > np.searchsorted(others, begin))


def _main_line(ops: pl.DataFrame) -> dict[str, Any]:
    """The line of the function that takes the most time of it."""
    totals = ops.group_by(SITE, maintain_order=True).agg(pl.col("duration").sum())
    return totals.sort("duration", descending=True, maintain_order=True).row(0, named=True)


def _finding(trace: Trace, limits: Gate, loop: Place) -> Finding:
    steps = steps_counted(trace)
    count = sum(loop.slices["rounds"].to_list()) / steps
    less, most = _changes(trace, loop, KEPT), _changes(trace, loop, 0.0)
    spent = limits.typical(length(loop.times) / steps / 1e6)
    return Finding(
        title=f"A Python loop works on {count:.0f} parameters a step, one at a time",
        where=loop.where,
        count_per_step=count,
        saving=priced(trace, limits, *less, most=most),
        confidence="high" if loop.where.line is not None else "medium",
        evidence=(
            Evidence("host time of the loop", spent, "ms", loop.events()),
            Evidence("loop iterations a step", count, "count"),
        ),
        fix=Fix("Do the work of the loop in one operator for all parameters.", CODE),
        changes=less,
    )


def _changes(trace: Trace, loop: Place, kept: float) -> tuple[Change, ...]:
    """The loop without its overhead; what its operators and kernels work beyond that stays."""
    work = launched_during(trace, loop.times)
    if work.height:
        ids = work["id"].cast(pl.Int64).to_numpy()
        lasting = (work["end"] - work["start"]).to_numpy()
        return Cut(loop.times, kept), Scale(ids, _kept(lasting, kept))
    ops = outermost_operators(trace)
    lasting = ops.filter(is_during(ops, loop.times))["duration"].to_numpy()
    own = float(np.maximum(lasting - DISPATCH_NS, 0).sum()) / max(length(loop.times), 1)
    return (Cut(loop.times, own + kept * (1 - own)),)


def _kept(lasting: np.ndarray[Any, Any], kept: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    work = np.maximum(lasting - DISPATCH_NS, 0) / np.maximum(lasting, 1)
    return np.asarray(work + kept * (1 - work), np.float64)
