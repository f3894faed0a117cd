"""The same conversion of dtype or layout runs again and again in a step.

## What it means
A line converts tensors of one size from one dtype or layout to another several times in each step,
and no gradient flows through it: weights that are frozen, a mask, an adjacency matrix, indices.
Such a tensor is the same in every step, or at least for all layers of one step.

## Why it costs
A conversion reads and writes the whole tensor; where memory sets the pace that is as much as the
operator that uses it.

## What to do
Convert once, where the tensor is made, and keep one dtype and one layout. In a module: convert in
`__init__`, or keep the result in a buffer.

## Fires on
A matrix that every layer converts.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | cccaacccaacccaaeeee cccaacccaacccaaeeee cccaacccaacccaaeeee
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::to; line = net.py:7 forward; input_types = ["long int"]; input_shapes = [[640,640]]
    a = aten::mm; line = net.py:8 forward
    e = autograd::engine::evaluate_function: MmBackward0; forward = a

## Silent on
A batch that is converted once.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | cccaaaaaaaaaaaaeeee cccaaaaaaaaaaaaeeee cccaaaaaaaaaaaaeeee
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::to; line = net.py:7 forward; input_types = ["long int"]; input_shapes = [[640,640]]
    a = aten::mm; line = net.py:8 forward
    e = autograd::engine::evaluate_function: MmBackward0; forward = a

Activations, through which gradients flow: part of the network's arithmetic.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | cccaacccaacccaae e ecccaacccaacccaae e ecccaacccaacccaae e e
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::to; line = net.py:7 forward; input_types = ["c10::Half"]; input_shapes = [[640,640]]
    a = aten::mm; line = net.py:8 forward
    e = autograd::engine::evaluate_function: ToCopyBackward0; forward = c

float64, of which another rule tells.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | cccaacccaacccaaeeee cccaacccaacccaaeeee cccaacccaacccaaeeee
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::to; line = net.py:7 forward; input_types = ["double"]; input_shapes = [[640,640]]
    a = aten::mm; line = net.py:8 forward
    e = autograd::engine::evaluate_function: MmBackward0; forward = a
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Unknown, rule
from selftime.advice.detectors.changes import launched_during, shortened
from selftime.advice.detectors.counted_steps import gate_of, is_during, regions_of, steps_counted
from selftime.advice.detectors.operators import outermost_operators, sizes
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length, union
from selftime.names.tensors import asks_for_conversion, copies_between_devices
from selftime.trace import Trace

LEAST_TIMES: Final = 3
"""Of one kind a step: twice is two batches, or an input and its target."""

LEAST_SHARE: Final = 0.05
"""Of the step: below it the conversions are part of the usual traffic."""

LEAST_ELEMENTS: Final = 1_024
"""A smaller tensor costs its dispatch only, of which another rule tells."""

CODE: Final = """self.register_buffer("weights", edges.float())   # once, in __init__
near = self.weights @ x                          # in place of: edges.float() @ x"""
"""Converted where it is made."""


@rule(covers=("C5",), needs=("shapes",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    if limits is None or not filter_by_name(trace.slices, names.is_backward_node).height:
        yield _without_backward(trace, limits)
        return
    if not trace.op_args["forward"].count():
        yield Unknown("whose gradients the backward pass computes: record whole steps")
        return
    found = [repeated for place in _conversions(trace) if (repeated := _repeated(trace, place))]
    if not found:
        yield Checked(
            f"no line converts a tensor without gradient {LEAST_TIMES} times a step", is_absent=True
        )
    for place in found:
        own, most = gate_of(trace, limits, place.times), _time_ms(trace, limits, place)
        if most >= LEAST_SHARE * limits.step_ms:
            yield own.judge(_finding(trace, limits, place))
        else:
            yield Checked(f"conversions at {place.where} take {most:.2f} ms of the step", most)


def _without_backward(trace: Trace, limits: Gate | None) -> Outcome:
    """Constants look like activations where no gradient is computed: only the cost is known."""
    found = [repeated for place in _conversions(trace) if (repeated := _repeated(trace, place))]
    if limits is not None and found:
        place = max(found, key=lambda one: _time_ms(trace, limits, one))
        spent = _time_ms(trace, limits, place)
        if spent >= LEAST_SHARE * limits.step_ms:
            return Unknown(
                "a backward pass, which tells constants from activations; "
                f"{place.where} converts tensors of one kind for {spent:.2f} ms a step: "
                "if they are weights or tables, convert them once"
            )
    return Checked(
        f"no line converts large tensors of one kind {LEAST_TIMES} times a step", is_absent=True
    )


def _conversions(trace: Trace) -> Iterator[Place]:
    """Conversions that the program asks for, of large tensors that need no gradient, by line."""
    ops = filter_by_name(outermost_operators(trace), asks_for_conversion)
    told = with_arguments(trace, "op_args", ops, "input_shapes", "input_types")
    told = told.with_columns(pl.col("input_shapes", "input_types").cast(pl.String))
    kinds = told.select("input_shapes", "input_types").unique()
    large = kinds.filter(pl.Series(map(_is_large, *kinds), dtype=pl.Boolean))
    told = told.join(large, on=["input_shapes", "input_types"], how="semi", maintain_order="left")
    explained = regions_of(trace, names.is_data_loading, names.is_optimizer)
    told = told.filter(~is_during(told, explained))
    yield from places(trace, told.filter(_converts(trace, told)))


def _is_large(shapes: str | None, types: str | None) -> bool:
    first = next(iter(sizes(shapes)), ())
    return (
        int(np.prod(first)) >= LEAST_ELEMENTS if first and '"double"' not in str(types) else False
    )


def _converts(trace: Trace, ops: pl.DataFrame) -> pl.Series:
    """Whether each runs something within, moves nothing between devices, and has no gradient."""
    begin, end = ops["start"].to_numpy(), (ops["start"] + ops["duration"]).to_numpy()

    def holds(instants: pl.Series) -> np.ndarray:
        when = np.sort(instants.to_numpy())
        return np.searchsorted(when, end) > np.searchsorted(when, begin)

    forward = trace.slices["start"].gather(trace.op_args["forward"].drop_nulls())
    work = launched_during(trace, union(begin, end))
    moved = filter_by_name(work, copies_between_devices)["launched"]
    return pl.Series(~holds(forward) & ~holds(moved), dtype=pl.Boolean)


def _repeated(trace: Trace, place: Place) -> Place | None:
    """The conversions of the line that run several times a step on tensors of one kind."""
    steps = steps_counted(trace)
    often = pl.len().over("input_shapes", "input_types") >= LEAST_TIMES * steps
    slices = place.slices.filter(often)
    return Place(place.where, slices) if slices.height else None


def _time_ms(trace: Trace, limits: Gate, place: Place) -> float:
    """What the conversions take of a step: of the device where it does them."""
    work = launched_during(trace, place.times)
    spent = sum((work["end"] - work["start"]).to_list()) if work.height else length(place.times)
    return limits.typical(spent / steps_counted(trace) / 1e6)


def _finding(trace: Trace, limits: Gate, place: Place) -> Finding:
    count = place.slices.height / steps_counted(trace)
    once = place.slices.select("input_shapes", "input_types").n_unique() / count
    less = shortened(trace, place.times, min(once, 1.0))
    return Finding(
        title=f"Tensors of one kind are converted {count:.0f} times a step, without a gradient",
        where=place.where,
        count_per_step=count,
        saving=priced(trace, limits, *less, most=shortened(trace, place.times, 0.0)),
        confidence="medium",
        evidence=(
            Evidence(
                "time of the conversions", _time_ms(trace, limits, place), "ms", place.events()
            ),
            Evidence("conversions a step", count, "count"),
        ),
        fix=Fix("Convert once, where the tensor is made, and keep the result.", CODE),
        changes=less,
    )
