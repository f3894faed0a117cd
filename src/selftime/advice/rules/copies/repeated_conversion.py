"""The same conversion of dtype or layout runs again and again in a step.

## What it means
A line converts tensors of one size from one dtype or layout to another several times in each step,
and no gradient flows through it: weights that are frozen, a mask, an adjacency matrix, indices.
Such a tensor is the same in every step, or at least for all layers of one step.

In the trace: conversion operators of 1,024 elements and more on one line, three of one shape and
dtype a step, without a backward operator of their own.

## Why it costs
A conversion reads and writes the whole tensor; where memory bandwidth is the limit, it takes as
long as the operator that uses it.

## What to do
Convert once, where the tensor is made, and keep one dtype and one layout. In a module: convert in
`__init__`, or keep the result in a buffer.

The estimate leaves one conversion of each shape and dtype per step.

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

float64, which `double_precision` reports.

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
from numpy.typing import NDArray

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators, parse_sizes
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    significance_limits_for_cause,
    times_of_slices_named,
)
from selftime.advice.detectors.operator_changes import (
    changes_shortening_intervals,
    device_work_launched_during,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Unknown, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_arguments import parent_of_every_slice, slices_with_arguments
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length, union
from selftime.names.tensor_operators import asks_for_conversion, copies_between_devices
from selftime.nesting import nearest_ancestor
from selftime.trace import Trace
from selftime.units import count_text, whole_percent_text

MIN_EQUAL_CONVERSIONS_PER_STEP: Final = 3
"""Smallest number of equal conversions per step to report; two may be an input and its target."""

MIN_CONVERSION_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step in conversions to report."""

MIN_CONVERTED_TENSOR_ELEMENTS: Final = 1_024
"""Smallest converted tensor to report, in elements; smaller ones cost only dispatch."""

CONVERT_ONCE_FIX_CODE: Final = """\
self.register_buffer("weights", edges.float())  # once, in __init__
near = self.weights @ x                         # was: edges.float() @ x"""
"""Example code of the fix: the tensor is converted once, where it is made."""


@rule(covers=("C5",), needs=("shapes",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    if limits is None or not filter_by_name(trace.slices, names.is_backward_node).height:
        yield _outcome_without_backward_pass(trace, limits)
        return
    if not trace.op_args["forward"].count():
        yield Unknown("which operators the backward pass computes gradients of: record whole steps")
        return
    repeated_by_line = [
        repeated
        for conversions in _gradient_free_conversions_by_line(trace)
        if (repeated := _conversions_repeated_per_step(trace, conversions))
    ]
    if not repeated_by_line:
        yield Checked(
            f"no line converts a tensor without gradient {MIN_EQUAL_CONVERSIONS_PER_STEP} times "
            "a step",
            is_absent=True,
        )
    for conversions in repeated_by_line:
        cause_limits, spent_ms = (
            significance_limits_for_cause(trace, limits, conversions.times),
            _conversion_ms_per_step(trace, limits, conversions),
        )
        if spent_ms >= MIN_CONVERSION_SHARE_OF_STEP * limits.step_ms:
            yield _finding(trace, cause_limits, conversions)
        else:
            least = whole_percent_text(MIN_CONVERSION_SHARE_OF_STEP)
            yield Checked(
                f"conversions at {conversions.where} take less than {least} of the recorded step",
                spent_ms,
                is_slowed=not device_work_launched_during(trace, conversions.times).height,
            )


def _outcome_without_backward_pass(trace: Trace, statistics: StepStatistics | None) -> Outcome:
    """Returns the rule's outcome for a trace without a backward pass."""
    repeated_by_line = [
        repeated
        for conversions in _gradient_free_conversions_by_line(trace)
        if (repeated := _conversions_repeated_per_step(trace, conversions))
    ]
    if statistics is not None and repeated_by_line:
        conversions = max(
            repeated_by_line,
            key=lambda line: _conversion_ms_per_step(trace, statistics, line),
        )
        spent_ms = _conversion_ms_per_step(trace, statistics, conversions)
        if spent_ms >= MIN_CONVERSION_SHARE_OF_STEP * statistics.step_ms:
            return Unknown(
                "a backward pass, which distinguishes constants from activations; "
                f"{conversions.where} converts tensors of one shape for "
                f"{whole_percent_text(spent_ms / statistics.step_ms)} of the recorded step: "
                "if they are weights or tables, convert them once"
            )
    return Checked(
        "no line converts large tensors of one shape and dtype "
        f"{MIN_EQUAL_CONVERSIONS_PER_STEP} times a step",
        is_absent=True,
    )


def _gradient_free_conversions_by_line(trace: Trace) -> Iterator[LineSlices]:
    """Yields each source line's conversions of large tensors that need no gradient."""
    operators = filter_by_name(outermost_operators(trace), asks_for_conversion)
    conversions = slices_with_arguments(trace, "op_args", operators, "input_shapes", "input_types")
    conversions = conversions.with_columns(pl.col("input_shapes", "input_types").cast(pl.String))
    kinds = conversions.select("input_shapes", "input_types").unique()
    large = kinds.filter(
        pl.Series(map(_is_first_input_large_and_not_float64, *kinds), dtype=pl.Boolean)
    )
    conversions = conversions.join(
        large, on=["input_shapes", "input_types"], how="semi", maintain_order="left"
    )
    explained = times_of_slices_named(trace, names.is_data_loading, names.is_optimizer_annotation)
    conversions = conversions.filter(~begins_during_intervals(conversions, explained))
    yield from slices_by_line(
        trace, conversions.filter(_are_conversions_of_constants(trace, conversions))
    )


def _is_first_input_large_and_not_float64(
    input_shapes: str | None, input_types: str | None
) -> bool:
    sizes = next(iter(parse_sizes(input_shapes)), ())
    return (
        int(np.prod(sizes)) >= MIN_CONVERTED_TENSOR_ELEMENTS
        if sizes and '"double"' not in str(input_types)
        else False
    )


def _are_conversions_of_constants(trace: Trace, conversions: pl.DataFrame) -> pl.Series:
    """Returns for each conversion whether it has no gradient and copies nothing across devices."""
    begin, end = (
        conversions["start"].to_numpy(),
        (conversions["start"] + conversions["duration"]).to_numpy(),
    )
    work = device_work_launched_during(trace, union(begin, end))
    when = np.sort(filter_by_name(work, copies_between_devices)["launched"].to_numpy())
    copies = np.searchsorted(when, end) > np.searchsorted(when, begin)
    return pl.Series(~copies & ~_have_gradient(trace, conversions["id"]), dtype=pl.Boolean)


def _have_gradient(trace: Trace, conversion_ids: pl.Series) -> NDArray[np.bool_]:
    """Returns for each conversion whether a backward operator belongs to it or to a part of it.

    By who called whom, not by times: an operator of no time begins when the next one does.
    """
    parent = parent_of_every_slice(trace)
    is_conversion = np.zeros(parent.size, bool)
    is_conversion[conversion_ids.to_numpy()] = True
    forward = trace.op_args["forward"].drop_nulls().unique().cast(pl.Int64).to_numpy()
    return np.isin(conversion_ids.to_numpy(), nearest_ancestor(parent, is_conversion, forward))


def _conversions_repeated_per_step(trace: Trace, conversions: LineSlices) -> LineSlices | None:
    """Returns a source line's conversions that repeat within a step for one shape and dtype.

    None if there are none.
    """
    steps = counted_step_count(trace)
    is_repeated = (
        pl.len().over("input_shapes", "input_types") >= MIN_EQUAL_CONVERSIONS_PER_STEP * steps
    )
    slices = conversions.slices.filter(is_repeated)
    return LineSlices(conversions.where, slices) if slices.height else None


def _conversion_ms_per_step(
    trace: Trace, statistics: StepStatistics, conversions: LineSlices
) -> float:
    """Returns the conversions' device time in ms per step; host time if they launch no kernels."""
    work = device_work_launched_during(trace, conversions.times)
    spent = (
        sum((work["end"] - work["start"]).to_list()) if work.height else length(conversions.times)
    )
    return statistics.scaled_to_typical_step(spent / counted_step_count(trace) / 1e6)


def _finding(trace: Trace, statistics: StepStatistics, conversions: LineSlices) -> Finding:
    count = conversions.slices.height / counted_step_count(trace)
    unique_share = conversions.slices.select("input_shapes", "input_types").n_unique() / count
    changes = changes_shortening_intervals(trace, conversions.times, min(unique_share, 1.0))
    return Finding(
        title=(
            f"Tensors of one shape are converted {count_text(count)} times a step, without a "
            "gradient"
        ),
        where=conversions.where,
        count_per_step=count,
        claim=RemovalClaim(
            changes,
            largest_changes=changes_shortening_intervals(trace, conversions.times, 0.0),
            noise_ms=statistics.noise_ms,
        ),
        confidence="medium",
        evidence=(
            Evidence(
                "time of the repeated conversions, a step",
                _conversion_ms_per_step(trace, statistics, conversions),
                "ms",
                conversions.events(),
                conversions.ids,
            ),
            Evidence("repeated conversions, a step", count, "count"),
        ),
        fix=Fix(
            "Convert once, where the tensor is made, and keep the result.", CONVERT_ONCE_FIX_CODE
        ),
    )
