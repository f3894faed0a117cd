"""A Python loop takes a tensor apart, one element or row at a time.

## What it means
A line runs `t[i]` for every `i`: each is an operator of its own, `aten::select`, and what is done
with the element is another. `for row in t` takes the tensor apart with one operator, and each
operator of its body runs once for every row. Loops whose rounds multiply matrices or call a network
are left out: a recurrent network has to go step by step.

In the trace: 50 or more operators that select an element, from one line or neighbouring ones of a
function, one after the other, with no product of matrices, call of a network or other
step between them; one of the lines has 25 or more. Between rounds of several elements there may be
more time, if no layer of a network and no operator that mostly takes more than 50 us is between
them. Time in which the program does not have the core belongs to no round. Loops within each other
are one finding. Of `for row in t`: an `aten::unbind` of 50 or more parts, after which an operator
at one line runs for at least half of them, and for no more, before its function ends.

## Why it costs
An operator costs its dispatch, about a microsecond in the library and several with Python around
it, whatever its size; on a device it is a launch. One operator on the whole tensor does the same
work in the time of a few of them. Where gradients are needed each `t[i]` costs in the backward pass
a tensor of the size of `t`.

## What to do
Write the loop as one operation on the whole tensor: slices, broadcasting, `torch.where`,
`index_put`, `scatter`, `torch.cumsum`. Where only Python needs the values, take them out at once
with `t.tolist()`.

Without a device, loops that take most of their time in operators that compute for mostly 12 us and
more, without those that they call, are left out, for one operation on the whole tensor computes as
much, and takes more memory. Of other loops the estimate leaves such operators, and a twentieth of
the rest of the loop and of its backward pass, with what autograd takes between the nodes of that.

## Fires on
Very many elements taken one after the other.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  |     abababababababababababababababababababababababababababab    mmmmmmmmmmmmm
    s = ProfilerStep#1
    a = aten::select; line = fill.py:4 fill
    b = aten::select; line = fill.py:4 fill
    m = aten::mm; line = net.py:9 forward

A loop through the rows of a tensor.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  |    ubababababababababababababababababababababababababababab mmmmmmmmmmmmmmmm
    s = ProfilerStep#1
    u = aten::unbind; line = area.py:4 area; input_shapes = [[64,4],[]]
    b = aten::mul; line = area.py:5 area
    a = aten::mul; line = area.py:5 area
    m = aten::mm; line = net.py:9 forward

## Silent on
A tensor that is taken apart once, before a loop over other data.

    column = 10 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    cpu 1  |    ubababababababababababababababababababababababababababab mmmmmmmmmmmmmmmm
    s = ProfilerStep#1
    u = aten::unbind; line = area.py:4 area; input_shapes = [[3,64],[]]
    b = aten::mul; line = area.py:5 area
    a = aten::mul; line = area.py:5 area
    m = aten::mm; line = net.py:9 forward

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

A loop that calls a network in each round, and stores its loss.

    column = 10 us
    mark 1   | ssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssssss
    python 1 | n   n   n   n   n   n   n   n   n   n   n   n   n   n   n   n   n   n   n
    python 1 | l   l   l   l   l   l   l   l   l   l   l   l   l   l   l   l   l   l   l
    cpu 1    | eabaeabaeabaeabaeabaeabaeabaeabaeabaeabaeabaeabaeabaeabaeabaeabaeabaeabaeaba
    s = ProfilerStep#1
    n = nn.Module: Bigram_0; module_id = 1
    l = nn.Module: Embedding_0; module_id = 2
    e = aten::embedding; line = bigram.py:9 forward
    a = aten::select; line = bigram.py:4 estimate_loss
    b = aten::select; line = bigram.py:4 estimate_loss

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
from dataclasses import replace
from typing import Final

from selftime import names
from selftime.advice.detectors.counted_steps import (
    counted_step_count,
    significance_limits_for_cause,
    union_of_interval_sets,
)
from selftime.advice.detectors.loop_rounds import rounds_of_element_loop
from selftime.advice.detectors.operator_changes import changes_shortening_intervals
from selftime.advice.detectors.python_loops import (
    MIN_LOOP_ITERATIONS,
    backward_times_of_loop,
    computing_times_of_loop,
    tensor_element_loops,
)
from selftime.advice.detectors.source_lines import LineSlices
from selftime.advice.lines.line_from_source import syntax_scope_of_place
from selftime.advice.lines.loop_dependence import outermost_loops
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length, subtract
from selftime.trace import Trace
from selftime.units import count_text

REMAINING_LOOP_TIME_SHARE: Final = 0.05
"""Share of the loop's time that remains: one operation on the whole tensor instead."""

FIX_TEXT: Final = "Do the work of the loop in one operation on the whole tensor."
"""What to do with a loop."""

FIX_CODE: Final = """out = torch.empty(n)
for i in range(n):            # before: n times the cost of an operator
    out[i] = values[i] * scale

out = values * scale          # after: once"""
"""Example code of the fix: one operation on the whole tensor replaces the loop."""


ITERATION_FIX_CODE: Final = """total = 0.0
for box in boxes:             # before: n times each operator
    total += (box[2] - box[0]) * (box[3] - box[1])

sides = boxes[:, 2:] - boxes[:, :2]
total = sides.prod(1).sum()   # after: once"""
"""Example code of the fix of a loop through a tensor."""


@rule(covers=("D3",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    loops = tensor_element_loops(trace)
    if step_stats is None or not loops:
        yield Checked(
            f"no line of code takes {MIN_LOOP_ITERATIONS} or more elements of tensors one by one",
            is_absent=True,
        )
        return
    for loop in loops:
        own = significance_limits_for_cause(trace, step_stats, loop.times)
        yield _finding(trace, own, loop)


def _finding(trace: Trace, step_stats: StepStatistics, loop: LineSlices) -> Finding:
    steps = counted_step_count(trace)
    elements = sum(loop.slices["elements"].to_list())
    forward, backward = loop.times, backward_times_of_loop(trace, loop)
    time = subtract(union_of_interval_sets(forward, backward), computing_times_of_loop(trace, loop))
    less = changes_shortening_intervals(trace, time, REMAINING_LOOP_TIME_SHARE)
    spent = [
        ("host time of the loop", forward),
        ("host time of the loop's backward pass", backward),
    ]
    is_iteration = not filter_by_name(loop.slices, names.selects_one_index).height
    rounds = elements if is_iteration else rounds_of_element_loop(trace, loop)
    return Finding(
        title=_title(elements / steps, rounds and rounds / steps, is_iteration=is_iteration),
        where=_line_of_loop(trace, loop.where),
        count_per_step=(rounds or elements) / steps,
        claim=RemovalClaim(
            less,
            largest_changes=changes_shortening_intervals(trace, time, 0.0),
            noise_ms=step_stats.noise_ms,
        ),
        confidence="high" if loop.where.line is not None else "medium",
        evidence=(
            *(
                Evidence(
                    what,
                    step_stats.scaled_to_typical_step(length(times) / steps / 1e6),
                    "ms",
                    loop.events(),
                    loop.ids if times is forward else None,
                )
                for what, times in spent
                if length(times)
            ),
            *(
                Evidence(what, count / steps, "count")
                for what, count in (
                    ("loop iterations a step", rounds),
                    ("elements taken a step", None if is_iteration else elements),
                )
                if count is not None
            ),
        ),
        fix=_fix_of_iteration() if is_iteration else Fix(FIX_TEXT, FIX_CODE),
    )


def _title(elements: float, rounds: float | None, *, is_iteration: bool) -> str:
    """Returns what a loop does in a step, with its rounds where they take several elements."""
    does = "goes through tensors" if is_iteration else "indexes tensors"
    of_rounds = (
        f"in {count_text(rounds)} rounds, " if rounds is not None and rounds < elements else ""
    )
    return (
        f"A Python loop {does} {count_text(elements)} times a step, {of_rounds}one element at a "
        "time"
    )


def _fix_of_iteration() -> Fix:
    """Returns the fix of a loop through a tensor, whose elements may be for Python alone."""
    return Fix(
        f"{FIX_TEXT} If only Python needs the values, go through `t.tolist()`.", ITERATION_FIX_CODE
    )


def _line_of_loop(trace: Trace, place: Where) -> Where:
    """Returns the line of a function's only loop where it is only known that the function ran."""
    if place.how != "definition" or names.is_comprehension(place.function or ""):
        return place
    scope = syntax_scope_of_place(trace, place)
    loops = [] if scope is None else outermost_loops(scope)
    return replace(place, line=loops[0].lineno, how="static") if len(loops) == 1 else place
