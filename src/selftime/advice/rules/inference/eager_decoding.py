"""Tokens are made one by one, and issuing their work bounds each.

## What it means
Every token runs the whole network on a row or a few, without gradients: hundreds of operators, each
too small to keep a processor busy. How much of a batch is padding is not visible in a trace; count
it in the data: mean of the attention mask.

## Why it costs
A product of one row reads all weights and computes hardly anything, some microseconds on a device;
to issue it takes as long or longer. So the device waits for the host most of the time.

## What to do
Keep the cache at one size (`StaticCache`), so that all tokens run the same work, and replay that as
a CUDA graph: `torch.compile(model.forward, mode="reduce-overhead")`, or an engine that does so.
More sequences in a batch cost next to nothing; so do tokens that a smaller model has guessed.

## Fires on
Each operator of a token is issued on its own.

    column = 2 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 2  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 3  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    s = ProfilerStep#1
    a = aten::softmax; line = net.py:4 attend
    l = aten::linear; input_shapes = [[1,1,64],[64,64],[64]]; line = net.py:5 forward

## Silent on
Products of many rows: a prompt, or training.

    column = 2 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 2  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    cpu 3  | alalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalalal
    s = ProfilerStep#1
    a = aten::softmax
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
from dataclasses import replace
from typing import Final

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.counted_steps import steps_counted
from selftime.advice.detectors.dispatching import Dispatching, dispatching
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.intervals import length
from selftime.trace import Trace

GRAPHED: Final = 0.15
"""Of the host's time that a graph replays in: a starting value, not yet fitted to a corpus."""

COMPILED: Final = 0.5
"""Of the host's time that compiled code takes without a graph, as on a CPU: a starting value."""

CODE: Final = """model.generation_config.cache_implementation = "static"
model.forward = torch.compile(model.forward, mode="reduce-overhead", fullgraph=True)"""
"""What the library `transformers` takes."""


@rule(covers=("K1",), needs=("operators", "shapes"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    issue = dispatching(trace)
    if limits is None or not issue.decodes:
        yield Checked(
            "the steps are not those of a model that makes one token after the other",
            is_absent=True,
        )
    elif not issue.is_bound:
        yield Checked("tokens are made one by one, and issuing their work does not bound them")
    else:
        yield limits.judge(_finding(trace, limits, issue))


def _finding(trace: Trace, limits: Gate, issue: Dispatching) -> Finding:
    most = next(places(trace, issue.operators), Place.of(issue.operators))
    spent = limits.typical(length(issue.time) / steps_counted(trace) / 1e6)
    change = Cut(issue.time, GRAPHED if issue.on_device else COMPILED)
    saving = priced(trace, limits, change, most=(Cut(issue.time),))
    least = priced(trace, limits, Cut(issue.time, COMPILED)).low_ms or 0.0
    return Finding(
        title=f"Each token issues {issue.per_step:.0f} operators one by one",
        where=most.where,
        count_per_step=issue.per_step,
        saving=replace(saving, low_ms=min(least, saving.low_ms or 0.0)),
        confidence="medium",
        evidence=(
            Evidence("host time to issue work", spent, "ms", most.events()),
            Evidence("operators a step", issue.per_step, "count"),
        ),
        fix=Fix("Give the cache one size, compile, and let a graph replay each token.", CODE),
        changes=(change,),
    )
