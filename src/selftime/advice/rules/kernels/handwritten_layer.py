"""A layer is written as many operators, though PyTorch has one for it.

## What it means
A softmax, a cross entropy, a normalisation or a GELU is written as powers, sums, roots and products
of whole tensors, each of which is an operator of its own, as are their gradients.

In the trace: operators in a row on tensors of one size whose names are the steps of such a formula.

## Why it costs
Each operator reads its tensor from memory and writes another, and most of these are kept for the
backward pass. The library's operator reads the input once and writes the output once.

## What to do
Call the library's operator, which is also safe where sums overflow or logarithms meet zero:
`F.cross_entropy` on logits, `F.log_softmax`, `nn.LayerNorm`, `nn.RMSNorm`, `F.gelu`. Where it is
spelled out to differ from these, compile the module that holds it.

The estimate gives these operators, and their gradients, the time of one pass that reads and writes
once.

## Fires on
A normalisation by the root of the mean square, in parts.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ppnrmmwaaappnrmmwaaappnrmmwaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    p = aten::pow; input_shapes = [[2048,512],[]]; input_types = ["float","Scalar"]; line = norm.py:5 forward
    n = aten::mean; input_shapes = [[2048,512],[],[],[]]; input_types = ["float","ScalarList","Scalar",""]; line = norm.py:5 forward
    r = aten::rsqrt; input_shapes = [[2048,1]]; input_types = ["float"]; line = norm.py:6 forward
    m = aten::mul; input_shapes = [[2048,512],[2048,1]]; input_types = ["float","float"]; line = norm.py:6 forward
    w = aten::mul; input_shapes = [[2048,512],[512]]; input_types = ["float","float"]; line = norm.py:6 forward
    a = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

## Silent on
The operator itself.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | nnnnnnnaaannnnnnnaaannnnnnnaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    n = aten::layer_norm; input_shapes = [[2048,512],[],[512],[512],[],[]]; input_types = ["float","ScalarList","float","float","Scalar","Scalar"]
    a = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

The same steps on so few numbers that only their calls cost.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ppnrmmwaaappnrmmwaaappnrmmwaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    p = aten::pow; input_shapes = [[8,512],[]]; input_types = ["float","Scalar"]
    n = aten::mean; input_shapes = [[8,512],[],[],[]]; input_types = ["float","ScalarList","Scalar",""]
    r = aten::rsqrt; input_shapes = [[8,1]]; input_types = ["float"]
    m = aten::mul; input_shapes = [[8,512],[8,1]]; input_types = ["float","float"]
    w = aten::mul; input_shapes = [[8,512],[512]]; input_types = ["float","float"]
    a = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.advice.detectors.counted_operators import with_backward_operators
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.elementwise_operators import (
    handwritten_layer_passes,
    operator_ms_per_step,
    time_share_as_one_pass,
)
from selftime.advice.detectors.operator_changes import change_shortening_operators
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
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.call_tree.training_passes import takes_gradients_of_gradients
from selftime.analysis.source_sites import (
    EVIDENCE_OF_EXECUTING_LINE,
    SOURCE_SITE_COLUMNS,
    source_sites_of_slices,
)
from selftime.trace import Trace
from selftime.units import count_text

LAYER_NAME_AND_TORCH_OPERATOR_BY_KIND: Final = {
    "log_softmax": ("A log-softmax", "`F.cross_entropy` on logits, or `F.log_softmax`"),
    "log_of_softmax": ("A log-softmax", "`F.cross_entropy` on logits, or `F.log_softmax`"),
    "softmax": ("A softmax", "`torch.softmax`"),
    "layer_norm": ("A layer norm", "`nn.LayerNorm`, or `F.layer_norm`"),
    "rms_norm": ("An RMS norm", "`nn.RMSNorm`, or `F.rms_norm`"),
    "gelu": ("A GELU", '`F.gelu`, with `approximate="tanh"` for the one by tanh'),
}
"""For each kind of layer: its name in messages, and PyTorch's single operator for it."""

FIX_CODE_BY_LAYER_KIND: Final = {
    "log_softmax": "loss = F.cross_entropy(logits, target)",
    "log_of_softmax": "loss = F.cross_entropy(logits, target)",
    "softmax": "weights = torch.softmax(scores, dim=-1)",
    "layer_norm": "self.norm = nn.LayerNorm(width)",
    "rms_norm": "self.norm = nn.RMSNorm(width, eps=1e-6)\n"
    "self.norm = torch.compile(self.norm)    # on a CPU",
    "gelu": 'y = F.gelu(x)    # F.gelu(x, approximate="tanh")',
}
"""For each kind of layer: example code that calls PyTorch's single operator for it."""


@rule(covers=("E6",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    operators = handwritten_layer_passes(trace)
    if step_statistics(trace) is None or not operators.height:
        yield Checked(
            "no layer or loss is spelled out in operators on whole tensors", is_absent=True
        )
        return
    for location, forward in _handwritten_layers_by_line(trace, operators):
        with_gradients = with_backward_operators(trace, forward)
        fused_share = time_share_as_one_pass(trace, forward)
        yield _finding(trace, forward, with_gradients, location, fused_share)


def _handwritten_layers_by_line(
    trace: Trace, handwritten_operators: pl.DataFrame
) -> Iterator[tuple[Where, pl.DataFrame]]:
    """Yields the operators of handwritten layers, grouped by kind of layer and source line."""
    placed = handwritten_operators.with_columns(
        source_sites_of_slices(trace, handwritten_operators["id"])
    )
    exact = pl.col("how").is_in(EVIDENCE_OF_EXECUTING_LINE).fill_null(value=False)
    ordered = placed.sort(~exact, "start", "id")
    heads = ordered.group_by("layer").agg(pl.col(*SOURCE_SITE_COLUMNS).first())
    placed = placed.drop(*SOURCE_SITE_COLUMNS).join(heads, on="layer", maintain_order="left")
    for part in placed.partition_by("spells", *SOURCE_SITE_COLUMNS, maintain_order=True):
        yield where_from_row(part.row(0, named=True)), part.drop(*SOURCE_SITE_COLUMNS)


def _finding(
    trace: Trace,
    forward_operators: pl.DataFrame,
    all_operators: pl.DataFrame,
    location: Where,
    fused_share: float,
) -> Finding:
    steps = recorded_step_count(trace)
    kind = str(forward_operators["spells"][0])
    layer, replacement = LAYER_NAME_AND_TORCH_OPERATOR_BY_KIND[kind]
    layers = forward_operators["layer"].n_unique()
    return Finding(
        title=(
            f"{layer} is written as {count_text(forward_operators.height / layers)} separate "
            "operators"
        ),
        where=location,
        count_per_step=layers / steps,
        claim=RemovalClaim(
            (change_shortening_operators(trace, all_operators, fused_share),),
            largest_changes=(change_shortening_operators(trace, all_operators, 0.0),),
        ),
        confidence="medium",
        evidence=(
            Evidence(
                "time in these operators, forward and backward",
                operator_ms_per_step(trace, all_operators),
                "ms",
                (),
                all_operators["id"].to_numpy(),
            ),
            Evidence("elements of the tensor", float(forward_operators["elements"][0]), "count"),
            Evidence(
                "bytes that one operator would move, as a share of those moved",
                fused_share,
                "ratio",
            ),
        ),
        semantics="numerics",
        fix=_fix(trace, kind, replacement),
    )


def _fix(trace: Trace, kind: str, replacement: str) -> Fix:
    """Returns the fix; without `torch.compile` where gradients of gradients are taken."""
    code = FIX_CODE_BY_LAYER_KIND[kind]
    if takes_gradients_of_gradients(trace):
        return Fix(f"Call {replacement}.", code.partition("\n")[0])
    return Fix(
        f"Call {replacement}. If it differs on purpose, put `torch.compile` around the module.",
        code,
    )
