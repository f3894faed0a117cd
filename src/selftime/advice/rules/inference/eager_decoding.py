"""Tokens are made one by one, and the host issues operators too slowly.

## What it means
Every token runs the whole network on a row or a few, without gradients: hundreds of operators, each
too small to keep a processor busy. How much of a batch is padding is not visible in a trace; count
it in the data: mean of the attention mask.

In the trace: most products with weights have 16 rows or fewer, attention runs, nothing computes
gradients, and a step issues 200 operators or more.

## Why it costs
A product of one row reads all weights and computes hardly anything, some microseconds on a device;
to issue it takes as long or longer. So the device waits for the host most of the time.

## What to do
Keep the cache at one size (`StaticCache`), so that all tokens run the same work, and replay that as
a CUDA graph: `torch.compile(model.forward, mode="reduce-overhead")`, or an engine that does so.
More sequences in a batch cost next to nothing; so do tokens that a smaller model has guessed.

The estimate leaves, of the host's time to issue work, 15 % on a device and half on a CPU.

## Fires on
Each operator of a token is issued on its own.

    column = 2 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 2  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 3  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    s = ProfilerStep#1
    a = aten::scaled_dot_product_attention; line = net.py:4 attend
    l = aten::linear; input_shapes = [[1,1,64],[64,64],[64]]; line = net.py:5 forward

## Silent on
Products of many rows: a prompt, or training.

    column = 2 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 2  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 3  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    s = ProfilerStep#1
    a = aten::scaled_dot_product_attention
    l = aten::linear; input_shapes = [[1,512,64],[64,64],[64]]

A small network without attention.

    column = 2 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 2  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 3  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    s = ProfilerStep#1
    a = aten::relu
    l = aten::linear; input_shapes = [[1,1,64],[64,64],[64]]
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.detectors.work_dispatching import DispatchAnalysis, dispatch_analysis_of
from selftime.advice.replay import CutHostTime
from selftime.advice.rule_definition import Checked, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import REPLAYED_SAVING_RANGE, RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.intervals import length
from selftime.trace import Trace
from selftime.units import count_text

DISPATCH_TIME_SHARE_WITH_DEVICE_GRAPHS: Final = 0.15
"""Assumed share of the host's dispatch time that remains if CUDA graphs are replayed."""

DISPATCH_TIME_SHARE_IF_COMPILED_ON_CPU: Final = 0.5
"""Assumed share of the dispatch time that remains in compiled code on a CPU."""

FIX_CODE: Final = """model.generation_config.cache_implementation = "static"
model.forward = torch.compile(
    model.forward, mode="reduce-overhead", fullgraph=True
)"""
"""Example code of the fix: settings of the library `transformers`."""


@rule(covers=("K1",), needs=("operators", "shapes"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    dispatching = dispatch_analysis_of(trace)
    if step_stats is None or not dispatching.is_token_decoding:
        yield Checked(
            "the steps are not those of a model that makes one token after the other",
            is_absent=True,
        )
    elif not dispatching.is_dispatch_bound:
        yield Checked("tokens are made one by one, but issuing operators does not bound the steps")
    else:
        yield _finding(trace, step_stats, dispatching)


def _finding(trace: Trace, step_stats: StepStatistics, dispatching: DispatchAnalysis) -> Finding:
    most = next(
        slices_by_line(trace, dispatching.operators), LineSlices.as_one_group(dispatching.operators)
    )
    spent = step_stats.scaled_to_typical_step(
        length(dispatching.dispatch_times) / counted_step_count(trace) / 1e6
    )
    change = CutHostTime(
        dispatching.dispatch_times,
        DISPATCH_TIME_SHARE_WITH_DEVICE_GRAPHS
        if dispatching.on_device
        else DISPATCH_TIME_SHARE_IF_COMPILED_ON_CPU,
    )
    least = CutHostTime(dispatching.dispatch_times, DISPATCH_TIME_SHARE_IF_COMPILED_ON_CPU)
    claim = RemovalClaim(
        (change,),
        worst_case_changes=(least,),
        worst_case_share=REPLAYED_SAVING_RANGE.low,
        largest_changes=(CutHostTime(dispatching.dispatch_times),),
    )
    return Finding(
        title=(
            f"Each token issues {count_text(dispatching.operators_per_step)} operators one by one"
        ),
        where=most.where,
        count_per_step=dispatching.operators_per_step,
        claim=claim,
        confidence="medium",
        evidence=dispatching.evidence(spent, most.events()),
        semantics="numerics",
        fix=Fix(
            "Give the cache a fixed size, compile, and replay a CUDA graph for each token.",
            FIX_CODE,
        ),
    )
