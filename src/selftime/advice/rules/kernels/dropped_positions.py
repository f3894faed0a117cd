"""Positions are computed in training that a slice drops before the loss.

## What it means
`head(hidden)[:, -1]` in training, or a network of convolutions over a whole sequence whose result
is cut, `network(x)[:, :, -n:]`: the loss sees a part of the positions. The others are computed,
filled with zeros by the backward pass, and differentiated.

In the trace: the operators of the forward pass, read from the last to the first. A slice needs a
part of its input; an elementwise operator, a matrix product and a convolution need of theirs what
is needed of their result, a convolution as far as its kernel reaches. An operator that is not
modelled needs all, as does a size of tensors that a step reads before it makes one. Programs that
run compiled code are left out. Steps without gradients are the subject of `unused_positions`.

## Why it costs
The dropped positions take as long as the others, in both passes. The gradient of a slice is a
tensor of the size before it, written twice.

## What to do
Take the positions first: `head(hidden[:, -1])`. Where results of several layers are summed and then
cut, cut the input of each. A convolution with a kernel of k elements needs (k - 1) * dilation
positions more than it gives. Where a slice cuts off what the padding of a convolution added at one
end, pad the other end alone.

The estimate leaves the share of the positions that is used; on a device no less than that of 128
rows, on a CPU of 4.

## Fires on
A head computes 512 positions, and the loss sees the last.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | ahhhdfGGG ahhhdfGGG
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::relu; input_shapes = [[2,512,64]]; input_types = ["float"]
    h = aten::linear; input_shapes = [[2,512,64],[1000,64]]; input_types = ["float","float"]; line = net.py:8 forward
    d = aten::select; input_shapes = [[2,512,1000],[],[]]; input_types = ["float","Scalar","Scalar"]; concrete_inputs = ["","1","-1"]
    f = aten::cross_entropy_loss; input_shapes = [[2,1000],[2],[],[],[],[]]; input_types = ["float","long int","","Scalar","Scalar","Scalar"]
    G = autograd::engine::evaluate_function: AddmmBackward0; forward = h

## Silent on
The loss sees all positions.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | ahhhdfGGG ahhhdfGGG
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::relu; input_shapes = [[2,512,64]]; input_types = ["float"]
    h = aten::linear; input_shapes = [[2,512,64],[1000,64]]; input_types = ["float","float"]; line = net.py:8 forward
    d = aten::select; input_shapes = [[2,512,1000],[],[]]; input_types = ["float","Scalar","Scalar"]; concrete_inputs = ["","1","-1"]
    f = aten::mse_loss; input_shapes = [[2,512,1000],[2,512,1000],[]]; input_types = ["float","float","Scalar"]
    G = autograd::engine::evaluate_function: AddmmBackward0; forward = h
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.advice.detectors.counted_operators import with_backward_operators
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.elementwise_operators import operator_ms_per_step
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.position_needs import partly_used_operators
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.detectors.token_decoding import time_share_with_fewer_rows
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_DROPPED_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step that dropped positions take to report."""

SLICE_FIX: Final = Fix(
    "Take the positions that the loss uses, and compute only them.",
    "y = head(hidden[:, -n:])    # for: head(hidden)[:, -n:]\n"
    "y = conv(x[:, :, -n:])      # width 1; for: conv(x)[:, :, -n:]",
)
"""The fix where a slice drops positions: take the others before the layer."""

PADDING_FIX: Final = Fix(
    "Pad the end alone whose positions are used, in place of both.",
    "conv = nn.Conv1d(n, m, k, dilation=d)  # no padding\n"
    "y = conv(F.pad(x, (p, 0)))  # for: padding=p, and y[:, :, :-p]",
)
"""The fix where a slice drops what the padding of a convolution added."""


@rule(covers=("E18",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    found = partly_used_operators(trace)
    if step_stats is None or not found.height:
        yield Checked("no positions are computed that a slice drops before a loss", is_absent=True)
        return
    for where, products in operators_by_line(trace, found.filter("is_product")):
        of_line = found.filter(pl.col("product").is_in(products["id"].implode()))
        spent = operator_ms_per_step(trace, with_backward_operators(trace, of_line))
        dropped = spent * (1 - _kept_share(trace, of_line))
        if dropped < MIN_DROPPED_SHARE_OF_STEP * step_stats.step_ms:
            least = whole_percent_text(MIN_DROPPED_SHARE_OF_STEP)
            text = f"positions that a slice drops before the loss take less than {least} of a step"
            yield Checked(text, dropped, is_slowed=not trace.device_args.height)
        else:
            yield _finding(trace, of_line, where)


def _kept_share(trace: Trace, operators: pl.DataFrame) -> float:
    """Returns the share of the operators' time that the used positions take."""
    used, positions = (operators[name].to_numpy() for name in ("used", "positions"))
    on_device = trace.device_args.height > 0
    shares = time_share_with_fewer_rows(used, positions, on_device=on_device)
    return float(np.average(shares, weights=positions))


def _finding(trace: Trace, operators: pl.DataFrame, where: Where) -> Finding:
    products = operators.filter("is_product")
    others = operators.filter(~pl.col("is_product"))
    parts = [part for part in (products, others) if part.height]
    with_gradients = [with_backward_operators(trace, part) for part in parts]
    all_operators = with_backward_operators(trace, operators)
    most = products.sort("positions", descending=True).row(0, named=True)
    return Finding(
        title=f"{most['positions']} positions are computed, of which {most['used']} are used",
        where=where,
        count_per_step=products.height / recorded_step_count(trace),
        claim=RemovalClaim(
            tuple(
                change_shortening_operators(trace, both, _kept_share(trace, part))
                for part, both in zip(parts, with_gradients, strict=True)
            ),
            largest_changes=tuple(
                change_shortening_operators(trace, both, 0.0) for both in with_gradients
            ),
        ),
        confidence="high",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in the products, what follows them and their gradients",
                operator_ms_per_step(trace, all_operators),
                "ms",
                tuple(products["id"].head(3).to_list()),
                all_operators["id"].to_numpy(),
            ),
            Evidence(
                "share of the positions that are used",
                sum(products["used"].to_list()) / sum(products["positions"].to_list()),
                "ratio",
            ),
        ),
        fix=PADDING_FIX if products["is_padded"].all() else SLICE_FIX,
    )
