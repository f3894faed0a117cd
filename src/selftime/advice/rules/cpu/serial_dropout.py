"""Dropout on the CPU draws its random numbers one after another.

## What it means
Dropout draws a random number for each element. On a CPU one thread does so, however many PyTorch
has: the random numbers of a seed come in a fixed order.

In the trace: `bernoulli_` in a dropout of a forward pass, whose sizes are recorded, takes 10 % of
the step or more, and 3 ns or more for each number. Dropout within another operator, as attention or
an LSTM, does not count.

## Why it costs
`bernoulli_` draws a number of 53 bits and compares it, where a choice between keeping and dropping
needs few bits. Measured on one core: 5.2 ns for each element with p=0.1, 6.6 ns with 0.2 and 10.2
ns with 0.5, where the branch is predicted worst, in float32 and in bfloat16 alike; a copy takes 0.3
ns. More threads, another dtype, and a mask in uint8 changed nothing; `torch.rand_like(x) >= p` takes
2.5 ns less at p=0.2.

## What to do
Draw 64 bits at once, and use each byte of them for one element. Probabilities are then multiples of
1/256. Measured with the backward pass: 2.5 ns for each element in place of 5.9 (p=0.1), 7.2 (p=0.2)
and 11.0 (p=0.5); a perceptron of three layers of 256 features with p=0.3 went from 89.5 to 60.4 ms
a step, a model of knowledge graphs of other people from 80.8 to 59.4 ms. Dropout within `nn.LSTM`, `nn.MultiheadAttention` and other modules of PyTorch is not reached
so: set their `dropout` to 0 and apply it yourself, where the model lets you.

Fewer numbers cost less, too, but are another regularization: `nn.Dropout1d` drops whole channels.

The estimate leaves 2 ns for each number; the lower end 70 % of the time.

## Fires on
Dropout of a million elements.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ddddddlllldddddddlllldddddddlll
    cpu 1  | bbbbbb    bbbbbb     bbbbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = aten::dropout; input_shapes = [[1024,1024],[],[]]; input_types = ["float","Scalar","Scalar"]; line = net.py:8 forward
    b = aten::bernoulli_; input_shapes = [[1024,1024],[],[]]; input_types = ["float","Scalar",""]; line = net.py:8 forward
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

## Silent on
Random numbers that are drawn fast, as by a library of the processor's maker.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ddlllllllldddllllllllddllllllll
    cpu 1  | bb        bb         bb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = aten::dropout; input_shapes = [[1024,1024],[],[]]; input_types = ["float","Scalar","Scalar"]
    b = aten::bernoulli_; input_shapes = [[1024,1024],[],[]]; input_types = ["float","Scalar",""]
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

Random numbers of the program itself.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | bbbbbbllllbbbbbbbllllbbbbbbbll
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    b = aten::bernoulli_; input_shapes = [[1024,1024],[],[]]; input_types = ["float","Scalar",""]
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np
import polars as pl

from selftime.advice.detectors.counted_operators import (
    operators_in_counted_steps,
    outermost_operators,
    parse_sizes,
)
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.elementwise_operators import (
    operator_ms_per_step,
    outside_backward_passes,
)
from selftime.advice.detectors.operator_changes import claim_of_shorter_operators
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_filters import filter_by_name
from selftime.names.tensor_operators import draws_dropout_mask, is_dropout
from selftime.trace import Trace
from selftime.units import time_text, whole_percent_text

MIN_SERIAL_NS_PER_NUMBER: Final = 3.0
"""Shortest time of a random number, in ns, to report: a byte of a mask as in the fix takes two
thirds of it."""

BYTE_MASK_NS_PER_NUMBER: Final = 2.0
"""Time in ns of one element of a mask that is drawn as bytes: 1.1 to 2.1 were measured, the longer
of masks larger than the caches."""

MIN_DROPOUT_SHARE_OF_STEP: Final = 0.1
"""Smallest share of the step in drawing masks of dropout to report; the fix is a module more."""

MIN_SHARE_OF_DRAWING: Final = 0.1
"""Smallest share of the drawing at a line for the line to have a finding."""

LEAST_REMAINING_SHARE: Final = 0.18
"""Smallest share of the time that remains: that of the slowest draws measured, of 11 ns a number.
Where a number takes longer, the processor or its load slows the byte mask as well."""

LARGEST_REMAINING_SHARE: Final = 0.7
"""Share of the time that remains if the fix helps least."""

BYTE_DROPOUT_FIX_CODE: Final = '''class ByteDropout(nn.Module):
    """Dropout with a probability in steps of 1/256, for the CPU."""

    def __init__(self, p=0.5):
        super().__init__()
        self.dropped = round(256 * p)

    def forward(self, x):
        if not self.training or not self.dropped:
            return x
        n, kept = x.numel(), 1 - self.dropped / 256
        bits = torch.empty(n // 8 + 1, dtype=torch.int64)
        each = bits.random_(-(2**63), None).view(torch.uint8)[:n]
        keep = each.view(x.shape) >= self.dropped
        return x * keep.to(x.dtype).div_(kept)

for parent in list(model.modules()):
    for name, child in parent.named_children():
        if type(child) is nn.Dropout:
            setattr(parent, name, ByteDropout(child.p))'''
"""Example code of the fix: a dropout that takes eight random numbers from 64 bits."""


@rule(covers=("J12",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    drawn = None if trace.device_args.height else _masks_of_dropout(trace)
    if limits is None or drawn is None or not drawn.height:
        yield Checked("no dropout on the CPU draws a mask in a forward pass", is_absent=True)
        return
    spent_ms = operator_ms_per_step(trace, drawn)
    each_ns = _recorded_ns(drawn) / max(int(drawn["numbers"].sum()), 1)
    if spent_ms < MIN_DROPOUT_SHARE_OF_STEP * limits.step_ms:
        least = whole_percent_text(MIN_DROPOUT_SHARE_OF_STEP)
        yield Checked(f"drawing masks of dropout takes less than {least} of the step", spent_ms)
    elif each_ns < MIN_SERIAL_NS_PER_NUMBER:
        yield Checked(f"masks of dropout are drawn at {time_text(each_ns)} a number", spent_ms)
    else:
        yield from _findings(trace, limits, drawn)


def _masks_of_dropout(trace: Trace) -> pl.DataFrame:
    """Returns the operators that draw masks of dropout; numbers: how many each of them draws.

    Dropout within other operators, such as attention, is no call of the program's own.
    """
    table = operators_in_counted_steps(trace)
    draws = outside_backward_passes(trace, filter_by_name(table, draws_dropout_mask))
    draws = draws.drop_nulls("input_shapes")
    layers = filter_by_name(outermost_operators(trace), is_dropout)["id"]
    parents = trace.slices["parent"].gather(draws["id"])
    of_layer = parents.is_in(layers.implode()).fill_null(value=False)
    draws = draws.filter(of_layer & (draws["end"] > draws["start"]))
    sizes = [parse_sizes(text) for text in draws["input_shapes"].cast(pl.String).to_list()]
    numbers = [prod(one[0]) if one and one[0] else 0 for one in sizes]
    return draws.with_columns(numbers=pl.Series(numbers, dtype=pl.Int64)).filter(
        pl.col("numbers") > 0
    )


def _recorded_ns(drawn: pl.DataFrame) -> int:
    return int((drawn["end"] - drawn["start"]).sum())


def _findings(trace: Trace, limits: StepStatistics, drawn: pl.DataFrame) -> Iterator[Finding]:
    least = MIN_SHARE_OF_DRAWING * _recorded_ns(drawn)
    for where, of_line in operators_by_line(trace, drawn):
        if _recorded_ns(of_line) >= least:
            yield _finding(trace, limits, of_line, where)


def _finding(trace: Trace, limits: StepStatistics, drawn: pl.DataFrame, where: Where) -> Finding:
    numbers, recorded = int(drawn["numbers"].sum()), _recorded_ns(drawn)
    steps = recorded_step_count(trace)
    spent_ms = operator_ms_per_step(trace, drawn)
    share, each_ns = spent_ms / limits.step_ms, recorded / numbers
    kept = float(np.clip(BYTE_MASK_NS_PER_NUMBER / each_ns, LEAST_REMAINING_SHARE, 1))
    return Finding(
        title=(
            f"{whole_percent_text(share)} of the step draws masks of dropout, "
            f"{time_text(each_ns)} a number"
        ),
        where=where,
        count_per_step=drawn.height / steps,
        claim=claim_of_shorter_operators(
            trace, drawn, kept, largest_kept_share=LARGEST_REMAINING_SHARE
        ),
        confidence="medium",
        semantics="training",
        evidence=(
            Evidence(
                "time in drawing masks, a step",
                spent_ms,
                "ms",
                tuple(drawn["id"].head(3).to_list()),
                drawn["id"].to_numpy(),
            ),
            Evidence("random numbers a step", numbers / steps, "count"),
            Evidence("share of this time that remains", kept, "ratio"),
        ),
        fix=Fix(
            "Draw eight numbers from 64 random bits: probabilities become multiples of 1/256.",
            BYTE_DROPOUT_FIX_CODE,
        ),
    )
