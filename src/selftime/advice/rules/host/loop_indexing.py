"""A Python loop takes a tensor apart, one element or row at a time.

## What it means
A line runs `t[i]` for every `i`: each is an operator of its own, `aten::select`, and what is done
with the element is another. A loop whose rounds multiply matrices is none of these: a recurrent
network has to go step by step.

## Why it costs
An operator costs its dispatch, about a microsecond in the library and several with Python around
it, whatever its size; on a device it is a launch. One operator on the whole tensor does the same
work in the time of a few of them. Where gradients are needed each `t[i]` costs in the backward pass
a tensor of the size of `t`.

## What to do
Write the loop as one operation on the whole tensor: slices, broadcasting, `torch.where`,
`index_put`, `scatter`, `torch.cumsum`. Where only Python needs the values, take them out at once
with `t.tolist()`.

## Fires on
Very many elements taken one after the other.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  |     abababababababababababababababababababababababababababab    mmmmmmmmmmmmm
    s = ProfilerStep#1
    a = aten::select; line = fill.py:4 fill
    b = aten::select; line = fill.py:4 fill
    m = aten::mm; line = net.py:9 forward

## Silent on
A few elements.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  |     abababababababababababababab          mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
    s = ProfilerStep#1
    a = aten::select; line = fill.py:4 fill
    b = aten::select; line = fill.py:4 fill
    m = aten::mm; line = net.py:9 forward

A loop over time that multiplies in each round.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  | abababababababababababababamabababababababababababababamabababababababababababa
    s = ProfilerStep#1
    a = aten::select; line = cell.py:4 unroll
    b = aten::select; line = cell.py:4 unroll
    m = aten::mm; line = cell.py:5 unroll

Samples that a loader takes from a tensor, which is data loading.

    column = 10 us
    mark 1 | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    mark 1 |     dddddddddddddddddddddddddddddddddddddddddddddddddddddddd
    cpu 1  |     abababababababababababababababababababababababababababab    mmmmmmmmmmmmm
    s = ProfilerStep#1
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    a = aten::select; line = data.py:4 __getitem__
    b = aten::select; line = data.py:4 __getitem__
    m = aten::mm; line = net.py:9 forward
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.changes import shortened
from selftime.advice.detectors.counted_steps import both, gate_of, is_during, steps_counted
from selftime.advice.detectors.loops import LEAST_ROUNDS, element_loops
from selftime.advice.detectors.operators import backward_of, outermost_operators
from selftime.advice.detectors.places import Place
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.analysis.slice_filters import covered_time
from selftime.intervals import length
from selftime.trace import Trace

KEPT: Final = 0.05
"""Of the loop's time that the operation on the whole tensor takes: one round of twenty or more."""

CODE: Final = """out = torch.empty(n)
for i in range(n):            # before: n times the cost of an operator
    out[i] = values[i] * scale

out = values * scale          # after: once"""
"""A loop and what it becomes."""


@rule(covers=("D3",))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    loops = element_loops(trace)
    if limits is None or not loops:
        yield Checked(
            f"no line takes {LEAST_ROUNDS} or more elements of tensors in a row", is_absent=True
        )
        return
    for loop in loops:
        own = gate_of(trace, limits, loop.times)
        yield own.judge(_finding(trace, limits, loop))


def _finding(trace: Trace, limits: Gate, loop: Place) -> Finding:
    steps = steps_counted(trace)
    count = sum(loop.slices["rounds"].to_list()) / steps
    forward, ops = loop.times, outermost_operators(trace)
    backward = covered_time(backward_of(trace, ops.filter(is_during(ops, forward))))
    time = both(forward, backward)
    less = shortened(trace, time, KEPT)
    spent = [("host time of the loop", forward), ("of its backward pass", backward)]
    return Finding(
        title=f"A Python loop takes {count:.0f} elements of tensors a step, one at a time",
        where=loop.where,
        count_per_step=count,
        saving=priced(trace, limits, *less, most=shortened(trace, time, 0.0)),
        confidence="high" if loop.where.line is not None else "medium",
        evidence=(
            *(
                Evidence(what, limits.typical(length(times) / steps / 1e6), "ms", loop.events())
                for what, times in spent
                if length(times)
            ),
            Evidence("loop iterations a step", count, "count"),
        ),
        fix=Fix("Do the work of the loop in one operation on the whole tensor.", CODE),
        changes=less,
    )
