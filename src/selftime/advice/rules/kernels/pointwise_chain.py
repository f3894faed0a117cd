"""Operators in a row each pass over the same numbers.

## What it means
Three or more elementwise operators follow each other on tensors of one size, and nothing else is
between them: sums, products, activations, comparisons, each of them an operator of its own.

## Why it costs
Each reads its tensors from memory and writes another, though it does next to nothing with a number.
One pass that does it all would read once what comes from outside, and write the result.

## What to do
`torch.compile` the function or module that holds them; in a forward pass their gradients are fused
with them. It pays where shapes stay the same. Without a compiler write in place (`add_`) where no
gradient is wanted, or use one operator for two: `torch.addcmul`, `torch.lerp`.

## Fires on
Four passes over a large tensor.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | bbccddeemmbbccddeemmbbccddeemm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    b = aten::mul; input_shapes = [[1024,1024],[]]; input_types = ["float","Scalar"]; line = warp.py:5 warp
    c = aten::sin; input_shapes = [[1024,1024]]; input_types = ["float"]; line = warp.py:5 warp
    d = aten::add; input_shapes = [[1024,1024],[]]; input_types = ["float","Scalar"]; line = warp.py:6 warp
    e = aten::sigmoid; input_shapes = [[1024,1024]]; input_types = ["float"]; line = warp.py:6 warp
    m = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

## Silent on
A product between them.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | bbccmmddeebbccmmddeebbccmmddee
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    b = aten::mul; input_shapes = [[1024,1024],[]]; input_types = ["float","Scalar"]
    c = aten::sin; input_shapes = [[1024,1024]]; input_types = ["float"]
    d = aten::add; input_shapes = [[1024,1024],[]]; input_types = ["float","Scalar"]
    e = aten::sigmoid; input_shapes = [[1024,1024]]; input_types = ["float"]
    m = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

Small tensors, of which each operator costs its call.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | bbccddeemmbbccddeemmbbccddeemm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    b = aten::mul; input_shapes = [[32,32],[]]; input_types = ["float","Scalar"]
    c = aten::sin; input_shapes = [[32,32]]; input_types = ["float"]
    d = aten::add; input_shapes = [[32,32],[]]; input_types = ["float","Scalar"]
    e = aten::sigmoid; input_shapes = [[32,32]]; input_types = ["float"]
    m = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Where,
    rule,
    where,
)
from selftime.advice.detectors.changes import change
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.detectors.elementwise import chains, fused_share, spent_ms
from selftime.advice.detectors.operators import with_backward
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.analysis.sites import SITE, sites
from selftime.trace import Trace

LEAST_SHARE: Final = 0.05
"""Of the step that fusion must save: compiling costs seconds, and again for each new shape."""

LEAST_ON_CPU: Final = 0.1
"""The same on a CPU, where compiled training gained 7 to 35 % of a step that is all dispatch, and
where caches hide what fusion saves of small tensors."""


@rule(covers=("E6",), needs=("operators", "shapes"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    found = chains(trace)
    if limits is None or not found.height:
        yield Checked(
            "no three elementwise operators in a row pass over a large tensor", is_absent=True
        )
        return
    least = LEAST_SHARE if trace.device_args.height else LEAST_ON_CPU
    for place, part in _functions(trace, found):
        every = with_backward(trace, part)
        spent = spent_ms(trace, every)
        if spent < least * limits.step_ms:
            yield Checked(f"a chain of elementwise operators takes {spent:.2f} ms a step", spent)
            continue
        keep = fused_share(part)
        saving = priced(
            trace, limits, change(trace, every, keep), most=(change(trace, every, 0.0),)
        )
        finding = _finding(trace, part, every, place, saving, keep)
        if (saving.estimate_ms or 0.0) >= least * limits.step_ms:
            yield limits.judge(finding)
        else:
            upper = limits.unrecorded(saving.upper_ms or 0.0)
            yield Checked(f"{finding.title}: saves less than {least:.0%} of the step", upper)


def _functions(trace: Trace, found: pl.DataFrame) -> Iterator[tuple[Where, pl.DataFrame]]:
    """The chains of each function, which is what one compiles; its line is where the first begins.

    A chain is of the function in which it begins.
    """
    placed = found.with_columns(sites(trace, found["id"]))
    heads = placed.group_by("chain", maintain_order=True).agg(pl.col(*SITE).first())
    heads = heads.with_columns(pl.col(*SITE).first().over("file", "function"))
    placed = placed.drop(*SITE).join(heads, on="chain", maintain_order="left")
    for part in placed.partition_by("file", "function", maintain_order=True):
        yield where(part.row(0, named=True)), part.drop(*SITE)


def _finding(
    trace: Trace, part: pl.DataFrame, every: pl.DataFrame, place: Where, saving: Saving, keep: float
) -> Finding:
    steps = steps_recorded(trace)
    many = part["chain"].n_unique()
    return Finding(
        title=f"{round(part.height / many)} elementwise operators in a row pass over a tensor",
        where=place,
        count_per_step=many / steps,
        saving=saving,
        confidence="medium",
        evidence=(
            Evidence("time in them, forward and backward", spent_ms(trace, every), "ms"),
            Evidence("share of the bytes that a fused pass moves", keep, "ratio"),
        ),
        fix=Fix(
            "Compile the function or module that holds them.",
            "@torch.compile\ndef activate(x): ...\n# or: model.block = torch.compile(model.block)",
        ),
        changes=(change(trace, every, keep),),
    )
