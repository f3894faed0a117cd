"""Products of matrices run in float32 beside the CPU's matrix units.

## What it means
The processor has units that multiply matrices of bfloat16 (AMX, on Intel since Sapphire Rapids),
and the step's products take float32 tensors, which these units do not multiply. A processor with
the vector instructions AVX512_BF16 alone gains little: it is told, not accused.

What oneDNN does within an operator to lay its operands out anew is not visible in a trace;
`ONEDNN_VERBOSE=1` prints it. Nor is whether the bandwidth of memory bounds a step: a trace does not
hold what it is; a batch of half the size that takes less than half the time tells it.

## Why it costs
AMX does 16 times as many multiplications a cycle as AVX512 does in float32, on half the bytes.

## What to do
Run the model under `torch.autocast("cpu", torch.bfloat16)`: parameters stay in float32. Compare the
loss over some hundred steps. How much a model gains depends on its sizes: measure it.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Unknown, rule
from selftime.advice.detectors.counted_steps import covered, steps_recorded
from selftime.advice.detectors.operators import recorded_operators
from selftime.advice.detectors.places import by_line
from selftime.advice.detectors.recorded_facts import setting
from selftime.advice.gate import Gate, gate
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length
from selftime.trace import Trace

LEAST_SHARE: Final = 0.3
"""Of the step in such products: with less, conversions and the rest of the step outweigh them."""

CODE: Final = """with torch.autocast("cpu", torch.bfloat16):
    loss = criterion(model(x), y)"""
"""How products are run in bfloat16."""


@rule(covers=("J7",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    if limits is None or trace.device_args.height:
        yield Checked("the products of the step do not run on the CPU", is_absent=True)
        return
    products = _single(trace)
    spent = limits.typical(length(covered(products)) / steps_recorded(trace) / 1e6)
    units = setting(trace, "cpu_bfloat16")
    if spent < LEAST_SHARE * limits.step_ms:
        told = "products in float32 on the CPU are no large part of the step"
        yield Checked(told, is_absent=not products.height)
    elif units is None:
        yield Unknown("whether the processor multiplies bfloat16: record with `selftime.profile`")
    elif units == "AMX":
        yield _finding(trace, limits, products, spent)
    else:
        yield Checked(f"no matrix units for bfloat16 beside {units or 'plain vectors'}")


def _single(trace: Trace) -> pl.DataFrame:
    """Products of float32 matrices in the steps that count."""
    products = filter_by_name(recorded_operators(trace), names.is_matrix_operator)
    types = products["input_types"].cast(pl.String)
    return products.filter(types.str.contains('"float"', literal=True))


def _finding(trace: Trace, limits: Gate, products: pl.DataFrame, spent: float) -> Finding:
    place, most = next(by_line(trace, products))
    return Finding(
        title=f"{spent / limits.step_ms:.0%} of the step are products in float32, beside AMX",
        where=place,
        count_per_step=products.height / steps_recorded(trace),
        saving=Saving(),
        confidence="medium",
        semantics="numerics",
        evidence=(Evidence("time in them", spent, "ms", tuple(most["id"].head(3))),),
        fix=Fix("Run the model under autocast, and compare the loss over some steps.", CODE),
    )
