"""Successive elementwise operators each read and write a whole tensor.

## What it means
Four or more elementwise operators follow each other on tensors of one size, with nothing else
between them: sums, products, activations, comparisons, each of them an operator of its own.

In the trace: such operators one after the other in a forward pass, on 256 KiB and more, by their
sizes.

## Why it costs
Each reads its tensors from memory and writes another, though it does next to nothing with a number.
One pass that does it all would read once what comes from outside, and write the result.

## What to do
`torch.compile` the function or module that holds them; in a forward pass their gradients are fused
with them. It pays where shapes stay the same. Without a compiler write in place (`add_`) where no
gradient is wanted, or use one operator for two: `torch.addcmul`, `torch.lerp`.

The estimate leaves the share of the bytes that one fused pass moves, forward and backward.

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

Small tensors, for which each operator costs its call.

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

from selftime import names
from selftime.advice.detectors.counted_operators import with_backward_operators
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    recorded_step_count,
    times_of_slices_named,
)
from selftime.advice.detectors.elementwise_operators import (
    fused_chain_bytes_share,
    operator_ms_per_step,
    pointwise_chains,
)
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.lines.function_definitions import definition_line, frames_by_function
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
from selftime.advice.savings.estimates import estimated_saving_of_recorded_step
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.call_tree.training_passes import takes_gradients_of_gradients
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_SAVED_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step that fusion must save to report; compiling takes seconds per new
shape."""

MIN_SAVED_SHARE_OF_STEP_ON_CPU: Final = 0.1
"""Smallest share of the step that fusion must save on a CPU to report; for small tensors, caches
hide what fusion saves."""


@rule(covers=("E6",), needs=("operators", "shapes"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    chains = pointwise_chains(trace)
    if limits is None or not chains.height:
        yield Checked(
            "no four elementwise operators in a row pass over a large tensor", is_absent=True
        )
        return
    compiled = times_of_slices_named(trace, lambda name: names.compiled_region(name) is not None)
    inside = chains.filter(begins_during_intervals(chains, compiled))["chain"].unique()
    chains = chains.filter(~pl.col("chain").is_in(inside.implode()))
    if inside.len():
        yield Checked(f"{inside.len()} chains of elementwise operators run in compiled code")
    on_device = bool(trace.device_args.height)
    if chains.height and takes_gradients_of_gradients(trace):
        yield Checked(
            "elementwise operators run in a row, but `torch.compile`, which would fuse them, does "
            "not support the gradients of gradients that the program takes",
            operator_ms_per_step(trace, with_backward_operators(trace, chains)),
            is_slowed=not on_device,
        )
        return
    least = MIN_SAVED_SHARE_OF_STEP if on_device else MIN_SAVED_SHARE_OF_STEP_ON_CPU
    least_text = f"less than {whole_percent_text(least)} of the recorded step"
    for location, forward in _pointwise_chains_by_function(trace, chains):
        with_gradients = with_backward_operators(trace, forward)
        spent_ms = operator_ms_per_step(trace, with_gradients)
        if spent_ms < least * limits.step_ms:
            yield Checked(
                f"a chain of elementwise operators takes {least_text}",
                spent_ms,
                is_slowed=not on_device,
            )
            continue
        fused_share = fused_chain_bytes_share(forward)
        claim = RemovalClaim(
            (change_shortening_operators(trace, with_gradients, fused_share),),
            largest_changes=(change_shortening_operators(trace, with_gradients, 0.0),),
        )
        finding = _finding(trace, forward, with_gradients, location, claim, fused_share)
        recorded = estimated_saving_of_recorded_step(trace, claim)
        if recorded.estimate_ms >= least * limits.step_ms:
            yield finding
        else:
            yield Checked(
                f"{finding.title}: saves {least_text}",
                recorded.upper_ms,
                is_slowed=not on_device,
            )


def _pointwise_chains_by_function(
    trace: Trace, chained_operators: pl.DataFrame
) -> Iterator[tuple[Where, pl.DataFrame]]:
    """Yields for each function its first chain's source line and the operators of all its chains.

    A function is the unit of compilation. A chain belongs to the function in which it begins.
    Functions of one name in a file, such as `forward` of several modules, are told apart by the
    line at which they are defined.
    """
    placed = chained_operators.with_columns(source_sites_of_slices(trace, chained_operators["id"]))
    heads = placed.group_by("chain", maintain_order=True).agg(pl.col(*SOURCE_SITE_COLUMNS).first())
    frames = frames_by_function(trace)
    heads = heads.with_columns(
        definition=pl.Series(
            [definition_line(frames, where_from_row(row)) for row in heads.iter_rows(named=True)],
            dtype=pl.Int64,
        )
    )
    of_function = ("file", "function", "definition")
    heads = heads.with_columns(pl.col(*SOURCE_SITE_COLUMNS).first().over(of_function))
    placed = placed.drop(*SOURCE_SITE_COLUMNS).join(heads, on="chain", maintain_order="left")
    for part in placed.partition_by(of_function, maintain_order=True):
        location = where_from_row(part.row(0, named=True))
        yield location, part.drop(*SOURCE_SITE_COLUMNS, "definition")


def _finding(
    trace: Trace,
    forward_operators: pl.DataFrame,
    all_operators: pl.DataFrame,
    location: Where,
    claim: RemovalClaim,
    fused_share: float,
) -> Finding:
    steps = recorded_step_count(trace)
    chain_count = forward_operators["chain"].n_unique()
    length = round(forward_operators.height / chain_count)
    return Finding(
        title=f"{length} elementwise operators in a row each read and write a whole tensor",
        where=location,
        count_per_step=chain_count / steps,
        claim=claim,
        confidence="medium",
        evidence=(
            Evidence(
                "time in these operators, forward and backward",
                operator_ms_per_step(trace, all_operators),
                "ms",
            ),
            Evidence(
                "bytes that one fused pass would move, as a share of those moved",
                fused_share,
                "ratio",
            ),
        ),
        semantics="numerics",
        fix=Fix(
            "Compile the function or module that contains these operators, which takes seconds, "
            "once.",
            "@torch.compile\ndef activate(x): ...\n# or: model.block = torch.compile(model.block)",
        ),
    )
