"""A layer or loss that exists as one operator is spelled out.

## What it means
A softmax, a cross entropy, a normalisation or a GELU is written as powers, sums, roots and products
of whole tensors, each of which is an operator of its own, as are their gradients.

## Why it costs
Each operator reads its tensor from memory and writes another, and most of these are kept for the
backward pass. The library's operator reads the input once and writes the output once.

## What to do
Call the library's operator, which is also safe where sums overflow or logarithms meet zero:
`F.cross_entropy` on logits, `F.log_softmax`, `nn.LayerNorm`, `nn.RMSNorm`, `F.gelu`. Where it is
spelled out to differ from these, compile the module that holds it.

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

from selftime.advice.base import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Saving,
    Where,
    rule,
    where,
)
from selftime.advice.detectors.changes import change
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.detectors.elementwise import kept_share, spelled_out, spent_ms
from selftime.advice.detectors.operators import with_backward
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.analysis.sites import EXECUTING, SITE, sites
from selftime.trace import Trace

INSTEAD: Final = {
    "log_softmax": ("A log-softmax", "`F.cross_entropy` on logits, or `F.log_softmax`"),
    "log_of_softmax": ("A log-softmax", "`F.cross_entropy` on logits, or `F.log_softmax`"),
    "softmax": ("A softmax", "`torch.softmax`"),
    "layer_norm": ("A layer norm", "`nn.LayerNorm`, or `F.layer_norm`"),
    "rms_norm": ("An RMS norm", "`nn.RMSNorm`, or `F.rms_norm`"),
    "gelu": ("A GELU", '`F.gelu`, with `approximate="tanh"` for the one by tanh'),
}
"""What each kind is called, and what there is instead."""

CODE: Final = {
    "log_softmax": "loss = F.cross_entropy(logits, target)",
    "log_of_softmax": "loss = F.cross_entropy(logits, target)",
    "softmax": "weights = torch.softmax(scores, dim=-1)",
    "layer_norm": "self.norm = nn.LayerNorm(width)",
    "rms_norm": "self.norm = nn.RMSNorm(width, eps=1e-6)    # on a CPU: torch.compile(self.norm)",
    "gelu": 'y = F.gelu(x)    # F.gelu(x, approximate="tanh")',
}
"""How what there is instead is called."""


@rule(covers=("E6",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    found = spelled_out(trace)
    if limits is None or not found.height:
        yield Checked(
            "no layer or loss is spelled out in operators on whole tensors", is_absent=True
        )
        return
    for place, part in _places(trace, found):
        every = with_backward(trace, part)
        spent = spent_ms(trace, every)
        if not limits.passes(spent):
            what, _ = INSTEAD[str(part["spells"][0])]
            yield Checked(limits.reason(f"{what} is spelled out"), limits.unrecorded(spent))
            continue
        keep = kept_share(trace, part)
        saving = priced(
            trace, limits, change(trace, every, keep), most=(change(trace, every, 0.0),)
        )
        yield limits.judge(_finding(trace, part, every, place, saving, keep))


def _places(trace: Trace, found: pl.DataFrame) -> Iterator[tuple[Where, pl.DataFrame]]:
    """The operators by kind and by the line on which the layer begins, as far as it is exact."""
    placed = found.with_columns(sites(trace, found["id"]))
    exact = pl.col("how").is_in(EXECUTING).fill_null(value=False)
    ordered = placed.sort(~exact, "start", "id")
    heads = ordered.group_by("layer").agg(pl.col(*SITE).first())
    placed = placed.drop(*SITE).join(heads, on="layer", maintain_order="left")
    for part in placed.partition_by("spells", *SITE, maintain_order=True):
        yield where(part.row(0, named=True)), part.drop(*SITE)


def _finding(
    trace: Trace, part: pl.DataFrame, every: pl.DataFrame, place: Where, saving: Saving, keep: float
) -> Finding:
    steps = steps_recorded(trace)
    kind = str(part["spells"][0])
    what, instead = INSTEAD[kind]
    layers = part["layer"].n_unique()
    return Finding(
        title=f"{what} is spelled out in {round(part.height / layers)} operators",
        where=place,
        count_per_step=layers / steps,
        saving=saving,
        confidence="medium",
        evidence=(
            Evidence("time in them, forward and backward", spent_ms(trace, every), "ms"),
            Evidence("elements of the tensor", float(part["elements"][0]), "count"),
            Evidence("share of the bytes that one operator moves", keep, "ratio"),
        ),
        fix=Fix(
            f"Call {instead}. Where it is meant to differ, put `torch.compile` around the module.",
            CODE[kind],
        ),
        changes=(change(trace, every, keep),),
    )
