"""A recurrent layer is called once for each element of a sequence.

## What it means
A Python loop over time calls `nn.GRUCell`, or `nn.GRU` with a sequence of one element, and hands
the state on. The layers take the whole sequence in one call, and loop over it in C++.

In the trace: 8 or more calls of a cell, or of a layer with a sequence of length 1, from one line
in each step of training. Where most are followed by an operator that picks a result, such as
`argmax` or `multinomial`, or that weighs others, such as `softmax`, the next input depends on the
output.

## Why it costs
Each call costs the dispatch of its operators and their Python, in the backward pass too. Products
with the weights of the input take one row at a time, where the layer takes all at once, and an LSTM
on a CPU has an implementation of its own for sequences.

## What to do
If no input depends on an output before it, call the layer once with the sequence, and what stands
before and after it once with all its elements. If no state depends on one before it either, as of
the nodes on a level of a tree, call the cell once with all inputs stacked. Where the state is
reset within the sequence, as at the end of an episode, call it for each piece.

The estimate takes the share of the calls' time, with their backward pass, that one call saved on a
CPU in sequences of 20 to 50 elements, 1 to 64 samples and 64 to 512 features: 15 to 54 % of a GRU,
47 to 95 % of an LSTM, 4 to 28 % of GRU cells, and -5 to 88 % of LSTM cells. What is saved of the
operators around the calls is not counted.

## Fires on
A cell that is called for each element of a sequence.

    column = 20 us
    mark 1 | sssssssssssssssssssssssssssssstttttttttttttttttttttttttttttt
    cpu 1  | c c c c c c c c c c    bbbbbb c c c c c c c c c c    bbbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    c = aten::gru_cell; line = net.py:8 forward
    b = autograd::engine::evaluate_function: AddBackward0

A layer that gets a sequence of one element.

    column = 20 us
    mark 1 | sssssssssssssssssssssssssssssstttttttttttttttttttttttttttttt
    cpu 1  | r r r r r r r r r r    bbbbbb r r r r r r r r r r    bbbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    r = aten::lstm; input_shapes = [[1,32,64]]; line = net.py:8 forward
    b = autograd::engine::evaluate_function: AddBackward0

## Silent on
A layer that gets whole sequences.

    column = 20 us
    mark 1 | sssssssssssssssssssssssssssssstttttttttttttttttttttttttttttt
    cpu 1  | r r r r r r r r r r    bbbbbb r r r r r r r r r r    bbbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    r = aten::lstm; input_shapes = [[50,32,64]]; line = net.py:8 forward
    b = autograd::engine::evaluate_function: AddBackward0

A decoder that feeds its most likely word back.

    column = 20 us
    mark 1 | sssssssssssssssssssssssssssssstttttttttttttttttttttttttttttt
    cpu 1  | cacacacacacacacacaca    bbbbb cacacacacacacacacaca    bbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    c = aten::gru_cell; line = net.py:8 forward
    a = aten::argmax; line = net.py:9 forward
    b = autograd::engine::evaluate_function: AddBackward0

A text that is made without gradients.

    column = 20 us
    mark 1 | sssssssssssssssssssssssssssssstttttttttttttttttttttttttttttt
    cpu 1  | c c c c c c c c c c           c c c c c c c c c c
    s = ProfilerStep#1
    t = ProfilerStep#2
    c = aten::gru_cell; line = net.py:8 forward
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import (
    backward_slices_of,
    outermost_operators,
    parse_sizes,
)
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    significance_limits_for_cause,
    union_of_interval_sets,
)
from selftime.advice.detectors.operator_changes import changes_shortening_intervals
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    rule,
)
from selftime.advice.savings.claims import RemovalClaim, SavingRange
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, length
from selftime.names.recurrent_operators import is_recurrent_operator, picks_or_weighs_results
from selftime.trace import Trace
from selftime.units import count_text

MIN_CALLS: Final = 8
"""Smallest number of calls a step: stacks of layers and directions make fewer."""

SAVED_SHARES: Final = {
    "gru": (0.15, 0.28, 0.54),
    "lstm": (0.47, 0.72, 0.95),
    "gru_cell": (0.04, 0.20, 0.28),
    "lstm_cell": (-0.05, 0.43, 0.88),
}
"""Least, middle and greatest share of the time of calls, with their backward pass, that one call
for the sequence saved: measured on one core with 5 sizes each. Plain networks are taken for a
GRU."""

FIX_CODE: Final = """for t in range(len(inputs)):            # before
    state = cell(inputs[t], state)
    outputs.append(state)

outputs, state = nn.GRU(n, m)(inputs)   # after: all times at once"""
"""Example code of the fix: one call of the layer takes the sequence."""


@rule(covers=("D12",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    steps = counted_step_count(trace)
    lines = [
        line
        for line in slices_by_line(trace, _stepwise_calls(trace))
        if line.slices.height >= MIN_CALLS * steps
    ]
    if step_stats is None or not lines:
        missing = missing_requirement_sentences(trace, ("shapes",))
        if missing and _recurrent_calls(trace).height >= MIN_CALLS * steps:
            yield Unknown(missing[0])
        else:
            yield Checked("no recurrent layer is called for one element at a time", is_absent=True)
        return
    if not filter_by_name(slices_on(trace, "host"), names.is_backward_node).height:
        yield Checked("a recurrent layer is called step by step without training it")
        return
    for line in lines:
        if _feeds_back(trace, line):
            yield Checked("the next input of a recurrent layer depends on its output")
        else:
            yield _finding(trace, step_stats, line)


def _recurrent_calls(trace: Trace) -> pl.DataFrame:
    return filter_by_name(outermost_operators(trace), is_recurrent_operator)


def _stepwise_calls(trace: Trace) -> pl.DataFrame:
    """Returns calls of cells, and of layers with a sequence of one element."""
    calls = _recurrent_calls(trace)
    told = slices_with_arguments(trace, "op_args", calls, "input_shapes", "concrete_inputs")
    is_stepwise = [
        str(name).endswith("_cell") or _sequence_length(shapes, values) == 1
        for name, shapes, values in told.select(
            pl.col("name").cast(pl.String), "input_shapes", "concrete_inputs"
        ).iter_rows()
    ]
    return calls.filter(pl.Series(is_stepwise, dtype=pl.Boolean))


def _sequence_length(input_shapes: str | None, concrete_inputs: str | None) -> int | None:
    """Returns the number of elements of a layer's input; None if packed, or if unknown.

    The last argument of the operator says whether the first dimension is that of samples.
    """
    sizes = parse_sizes(input_shapes)
    if not sizes or len(sizes[0]) != len(("time", "samples", "features")):
        return None
    is_batch_first = (concrete_inputs or "").rstrip('"] \\').endswith("True")
    return sizes[0][1 if is_batch_first else 0]


def _feeds_back(trace: Trace, line: LineSlices) -> bool:
    """Returns whether operators that pick or weigh results run between most of the calls."""
    picks = filter_by_name(outermost_operators(trace), picks_or_weighs_results)
    starts = line.slices["start"].to_numpy()
    between = starts.searchsorted(picks["start"].to_numpy())
    inside = between[(between > 0) & (between < starts.size)]
    return 2 * len(set(inside.tolist())) >= starts.size


def _finding(trace: Trace, step_stats: StepStatistics, line: LineSlices) -> Finding:
    steps = counted_step_count(trace)
    times = _times_with_backward_pass(trace, line)
    own = significance_limits_for_cause(trace, step_stats, times)
    operator = str(line.slices["name"][0]).removeprefix("aten::")
    least, middle, most = SAVED_SHARES[
        operator.replace("rnn_tanh", "gru").replace("rnn_relu", "gru")
    ]
    calls = line.slices.height / steps
    return Finding(
        title=(
            f"`{operator}` is called {count_text(calls)} times a step, with one element at a time"
        ),
        where=line.where,
        count_per_step=calls,
        claim=RemovalClaim(
            changes_shortening_intervals(trace, times, 1 - middle),
            worst_case_changes=changes_shortening_intervals(trace, times, 1 - max(least, 0.0)),
            largest_changes=changes_shortening_intervals(trace, times, 1 - most),
            interval=SavingRange(1.0, None),
            noise_ms=own.noise_ms,
        ),
        confidence="medium" if _is_alone(trace, line) else "low",
        semantics="numerics",
        evidence=(
            Evidence(
                "time of the calls and of their backward pass",
                step_stats.scaled_to_typical_step(length(times) / steps / 1e6),
                "ms",
                line.events(),
            ),
            Evidence("calls a step", calls, "count", (), line.ids),
        ),
        fix=Fix(
            "If no input depends on an output before it, call the layer once with the sequence; if "
            "no state does either, call the cell once with all inputs stacked.",
            FIX_CODE,
        ),
    )


def _times_with_backward_pass(trace: Trace, line: LineSlices) -> Intervals:
    host = slices_on(trace, "host")
    within = host.filter(begins_during_intervals(host, line.times))
    return union_of_interval_sets(line.times, covered_time(backward_slices_of(trace, within)))


def _is_alone(trace: Trace, line: LineSlices) -> bool:
    """Returns whether no product or embedding runs between most calls: none makes their input."""
    others = filter_by_name(
        outermost_operators(trace),
        lambda name: names.is_matrix_operator(name) or name == "aten::embedding",
    )
    others = others.filter(~begins_during_intervals(others, line.times))
    starts = line.slices["start"].to_numpy()
    between = starts.searchsorted(others["start"].to_numpy())
    inside = between[(between > 0) & (between < starts.size)]
    return 2 * len(set(inside.tolist())) < starts.size
