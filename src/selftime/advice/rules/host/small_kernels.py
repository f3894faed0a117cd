"""The step is bound by issuing work, because each piece of it is small.

## What it means
A step runs very many short operators. On a device each is a launch, and the device has finished it
before the host has issued the next; on a CPU the dispatch of an operator takes longer than its
arithmetic. Loading, collections, compilation, logging, optimizers and loops over elements have
pages of their own and do not count here.

## Why it costs
Python, the dispatcher and a launch take 5 to 20 us an operator, a short kernel 2 to 10 us. A faster
device changes nothing.

## What to do
First remove what makes the host wait, then give it less to issue: larger batches; `torch.compile`,
which makes one kernel of a chain of operators, on a GPU with `mode="reduce-overhead"`, which
replays all of them as one CUDA graph; fused operators such as `scaled_dot_product_attention`,
`layer_norm`, and `fused=True` or `foreach=True` optimizers.

## Fires on
On a CPU: very many short operators, and hardly anything else.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | abababababababababababababababababababababababababababababababababababababab
    s = ProfilerStep#1
    a = aten::mul; line = net.py:5 forward
    b = aten::add; line = net.py:5 forward

On a device: kernels that are done before the next is launched.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | abababababababababababababababababababababababababababababababababababababab
    call 1 | abababababababababababababababababababababababababababababababababababababab
    gpu 7  |  b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b b
    s = ProfilerStep#1
    a = aten::mul; line = net.py:5 forward
    b = aten::add; line = net.py:5 forward

## Silent on
The same beside operators that work.

    column = 5 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | ababababababababababababababababababababababababababababababmmmmmmmmmmmmmmmmmmmmmmmmmmm
    s = ProfilerStep#1
    a = aten::mul; line = net.py:5 forward
    b = aten::add; line = net.py:5 forward
    m = aten::mm

A device that has work all the time.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | abababababababababababababababababababababababababababababababababababababab
    call 1 | ab
    gpu 7  |  bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb
    s = ProfilerStep#1
    a = aten::mul; line = net.py:5 forward
    b = aten::add; line = net.py:5 forward
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.counted_steps import regions_of, steps_counted
from selftime.advice.detectors.dispatching import Dispatching, dispatching, is_fed_unrecorded
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Cut
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.intervals import Intervals, length, subtract
from selftime.trace import Trace

GRAPHED: Final = 0.15
"""Of the host's time that a graph replays in: a starting value, not yet fitted to a corpus."""

COMPILED: Final = 0.5
"""Of the host's time that compiled code without graphs takes: a starting value likewise."""

FUSED: Final = 0.2
"""Of a CPU's time in small operators that are no products, compiled, where nothing is trained:
0.06 to 0.33 were measured, on chains of operators and ensembles of small networks."""

TRAINED: Final = 0.6
"""The same in training, where autograd and the optimizer stay: 0.6 to 0.8 were measured."""

FUSABLE: Final = 0.5
"""With less than this share of the operators' time in others than products, nothing is to fuse:
compiled networks of small layers alone gained 7 to 14 %."""

WORTH_IT: Final = 0.1
"""A compiler takes 5 s and more before the first step on a CPU, and again for new shapes: a saving
below this share of the step is not worth it."""

CODE: Final = """model = torch.compile(model)                          # a kernel of many operators
model = torch.compile(model, mode="reduce-overhead")  # on a GPU: and one launch of many"""
"""The two forms of the compiler that help."""


@rule(covers=("D1", "J9"), broad=True)
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    issue = dispatching(trace)
    if limits is None or not issue.is_bound:
        yield Checked("the step is not bound by issuing many small pieces of work", is_absent=True)
    elif issue.decodes:
        yield Checked("the step makes a token; see `eager_decoding`")
    elif issue.on_device and trace.frame_args.height and is_fed_unrecorded(trace, issue):
        yield Checked("launches are late only because the recording of stacks slows the host")
    elif issue.on_device:
        where = "the device waits for launches"
        yield limits.judge(_finding(trace, limits, issue, _launched(issue), where))
    else:
        yield _on_the_host(trace, limits, issue)


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What a compiler leaves of the time that the host issues work in."""

    time: Intervals
    keep: float
    at_most: float
    """If it helps least."""


def _launched(issue: Dispatching) -> _Compiled:
    return _Compiled(issue.time, GRAPHED, COMPILED)


def _on_the_host(trace: Trace, limits: Gate, issue: Dispatching) -> Outcome:
    """On a CPU a compiler fuses what stands between products, and those stay."""
    if regions_of(trace, lambda name: names.compiled_region(name) is not None).starts.size:
        return Checked("the small operators are those of compiled code, or between pieces of it")
    products = covered_time(filter_by_name(issue.operators, names.is_matrix_operator))
    every = length(covered_time(issue.operators))
    if every - length(products) < FUSABLE * every:
        return Checked("the small operators are mostly products of matrices, which nothing fuses")
    trains = filter_by_name(trace.slices, names.is_backward_node).height > 0
    keep = TRAINED if trains else FUSED
    compiled = _Compiled(subtract(issue.time, products), keep, (1 + keep) / 2)
    finding = _finding(trace, limits, issue, compiled, "dispatch takes most of it")
    estimate = finding.saving.estimate_ms or 0.0
    if estimate < WORTH_IT * limits.step_ms:
        reason = f"a compiler would save {limits.unrecorded(estimate):.2f} ms of the step, and cost"
        return Checked(f"{reason} seconds before the first", limits.unrecorded(estimate))
    return limits.judge(finding)


def _finding(
    trace: Trace, limits: Gate, issue: Dispatching, compiled: _Compiled, told: str
) -> Finding:
    most = next(places(trace, issue.operators), Place.of(issue.operators))
    spent = limits.typical(length(issue.time) / steps_counted(trace) / 1e6)
    change = Cut(compiled.time, compiled.keep)
    saving = priced(trace, limits, change, most=(Cut(issue.time),))
    least = priced(trace, limits, Cut(compiled.time, compiled.at_most)).estimate_ms or 0.0
    saving = replace(saving, low_ms=min(least, saving.low_ms or 0.0))
    return Finding(
        covers=("D1",) if issue.on_device else ("J9",),
        title=f"The step issues {issue.per_step:.0f} small operators, and {told}",
        where=most.where,
        count_per_step=issue.per_step,
        saving=saving,
        confidence="medium",
        evidence=(
            Evidence("host time to issue work", spent, "ms", most.events()),
            Evidence("operators a step", issue.per_step, "count"),
            Evidence("the typical operator's host time", issue.typical_ns / 1e6, "ms"),
        ),
        fix=Fix(
            "Compile the model, or make its pieces larger: the named line issues most of them.",
            CODE,
        ),
        changes=(change,),
    )
