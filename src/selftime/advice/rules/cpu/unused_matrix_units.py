"""Matrix products run in float32 without using the CPU's matrix units.

## What it means
The processor has units that multiply matrices of bfloat16 (AMX, on Intel since Sapphire Rapids),
and the step's products take float32 tensors, which these units do not multiply. A processor with
the vector instructions AVX512_BF16 alone gains little, and is not reported.

A trace does not show how oneDNN reorders operands within an operator; `ONEDNN_VERBOSE=1` prints it.
Nor does it show whether memory bandwidth bounds a step: it does if a batch of half the size takes
less than half the time.

In the trace: products of float32 inputs take 30 % of the step or more. The units of the processor
are a fact of a recording by selftime.

## Why it costs
AMX does 16 times as many multiplications a cycle as AVX512 does in float32, on half the bytes.

## What to do
Run the model under `torch.autocast("cpu", torch.bfloat16)`: parameters stay in float32. Compare the
loss over some hundred steps. How much a model gains depends on its sizes: measure it.

No saving is estimated.

## Fires on
Products in float32 on a processor with AMX.

    column = 1 ms
    facts = {"settings": {"cpu_bfloat16": "AMX"}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]; line = n.py:4 f
    b = aten::relu; input_types = ["float"]; input_shapes = [[64,64]]

## Silent on
Products in bfloat16.

    column = 1 ms
    facts = {"settings": {"cpu_bfloat16": "AMX"}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["c10::BFloat16","c10::BFloat16"]; input_shapes = [[64,64],[64,64]]
    b = aten::relu; input_types = ["float"]; input_shapes = [[64,64]]

A processor without such units.

    column = 1 ms
    facts = {"settings": {"cpu_bfloat16": "AVX512_BF16"}}
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaabbbbb aaaabbbbb aaaabbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_types = ["float","float"]; input_shapes = [[64,64],[64,64]]
    b = aten::relu; input_types = ["float"]; input_shapes = [[64,64]]
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import operator_intervals, recorded_step_count
from selftime.advice.detectors.recorded_facts import recorded_setting
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import (
    Argument,
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
)
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length
from selftime.trace import Trace

MIN_FLOAT32_PRODUCT_SHARE_OF_STEP: Final = 0.3
"""Smallest share of the step in float32 matrix products to report."""

BFLOAT16_AUTOCAST_FIX_CODE: Final = """with torch.autocast("cpu", torch.bfloat16):
    loss = criterion(model(x), y)"""
"""Example code of the fix: a step with matrix products in bfloat16."""


@rule(covers=("J7",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    if limits is None or trace.device_args.height:
        yield Checked("the products of the step do not run on the CPU", is_absent=True)
        return
    products = _float32_matrix_operators(trace)
    spent_ms_per_step = limits.scaled_to_typical_step(
        length(operator_intervals(products)) / recorded_step_count(trace) / 1e6
    )
    units = recorded_setting(trace, "cpu_bfloat16")
    if spent_ms_per_step < MIN_FLOAT32_PRODUCT_SHARE_OF_STEP * limits.step_ms:
        text = "products in float32 on the CPU take a small part of the step"
        yield Checked(text, is_absent=not products.height)
    elif units is None:
        yield Unknown("whether the processor multiplies bfloat16: record with `selftime.profile`")
    elif units == "AMX":
        yield _finding(trace, limits, products, spent_ms_per_step)
    else:
        yield Checked(
            f"the processor has no matrix units for bfloat16, only {units or 'plain vectors'}"
        )


def _float32_matrix_operators(trace: Trace) -> pl.DataFrame:
    """Returns the matrix product operators in the measured steps that have float32 inputs."""
    products = filter_by_name(operators_in_counted_steps(trace), names.is_matrix_operator)
    types = products["input_types"].cast(pl.String)
    return products.filter(types.str.contains('"float"', literal=True))


def _finding(
    trace: Trace, statistics: StepStatistics, products: pl.DataFrame, spent_ms_per_step: float
) -> Finding:
    share = spent_ms_per_step / statistics.step_ms
    location, slowest = next(operators_by_line(trace, products))
    return Finding(
        title=f"{share:.0%} of the step is float32 matrix products without AMX",
        where=location,
        count_per_step=products.height / recorded_step_count(trace),
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in float32 products, a step",
                spent_ms_per_step,
                "ms",
                tuple(slowest["id"].head(3)),
            ),
        ),
        fix=Fix(
            "Run the model under autocast, and compare the loss over some steps.",
            BFLOAT16_AUTOCAST_FIX_CODE,
            Argument("loop", "precision", "bfloat16"),
        ),
    )
