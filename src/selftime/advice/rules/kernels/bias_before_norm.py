"""A layer adds a bias that a batch norm takes away again.

## What it means
A convolution or linear layer with a bias is followed at once by a batch norm, which subtracts the
mean of each channel, and so the bias with it.

## Why it costs
The sum with the bias is a pass over the layer's output, and its gradient a sum over all of it.
Mostly both are a hundredth of the step: then nothing is said, and on a CPU the bias is free.

## What to do
`bias=False` in the layer; the batch norm has a bias of its own. For inference fold the batch norm
into the layer, `torch.nn.utils.fusion.fuse_conv_bn_eval`.

## Fires on
A bias whose sums take a fifth of the device's time.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | ccnnccnnccnn
    cpu 1  | bp  bp  bp
    call 1 | kp nkp nkp n
    gpu 7  |  kkkkppnnkkkkppnnkkkkppnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::conv2d; input_shapes = [[8,3,32,32],[64,3,3,3],[64],[],[],[],[]]; line = net.py:7 forward
    b = aten::cudnn_convolution; input_shapes = [[8,3,32,32],[64,3,3,3]]
    p = aten::add_; input_shapes = [[8,64,32,32],[1,64,1,1],[]]
    n = aten::batch_norm; input_shapes = [[8,64,32,32],[64],[64],[64],[64],[],[],[],[]]; concrete_inputs = ["","","","","","True","0.1","1e-05","True"]

## Silent on
A layer that has none.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | ccnnccnnccnn
    cpu 1  | bp  bp  bp
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::conv2d; input_shapes = [[8,3,32,32],[64,3,3,3],[],[],[],[],[]]
    b = aten::mkldnn_convolution; input_shapes = [[8,3,32,32],[64,3,3,3]]
    p = aten::add_; input_shapes = [[8,64,32,32],[1,64,1,1],[]]
    n = aten::batch_norm; input_shapes = [[8,64,32,32],[64],[64],[64],[64],[],[],[],[]]

Something between the two, to which the bias matters.

    column = 1 ms
    mark 1 | sssstttuuuu
    cpu 1  | ccrnccrnccrn
    cpu 1  | bp  bp  bp
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::conv2d; input_shapes = [[8,3,32,32],[64,3,3,3],[64],[],[],[],[]]
    b = aten::mkldnn_convolution; input_shapes = [[8,3,32,32],[64,3,3,3]]
    p = aten::add_; input_shapes = [[8,64,32,32],[1,64,1,1],[]]
    r = aten::relu; input_shapes = [[8,64,32,32]]
    n = aten::batch_norm; input_shapes = [[8,64,32,32],[64],[64],[64],[64],[],[],[],[]]
"""  # noqa: E501 - what a letter stands for is on one line

import json
from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Where, rule
from selftime.advice.detectors.changes import change
from selftime.advice.detectors.counted_steps import covered, is_under, steps_recorded
from selftime.advice.detectors.elementwise import forward_operators
from selftime.advice.detectors.operators import recorded_operators, sizes, with_backward
from selftime.advice.detectors.places import by_line
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

TRAINING: Final = 5
"""The place of the flag among a batch norm's arguments that says that it is of this batch."""


@rule(covers=("E14",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    layers = _layers(trace)
    if limits is None or not layers.height:
        yield Checked("no layer with a bias stands before a batch norm", is_absent=True)
        return
    sums = filter_by_name(recorded_operators(trace), names.is_bias_operator)
    parts = [(place, part, _sums(trace, part, sums)) for place, part in by_line(trace, layers)]
    if not any(own.height for _, _, own in parts):
        yield Checked("a batch norm takes a bias away, which costs nothing of its own")
    for place, part, own in parts:
        if own.height:
            saving = priced(trace, limits, change(trace, own, 0.0))
            yield limits.judge(_finding(trace, part, own, place, saving))


def _layers(trace: Trace) -> pl.DataFrame:
    """Layers with a bias whose output a batch norm takes next; `channels` are the bias's."""
    table = forward_operators(trace)
    table = table.filter(~pl.Series(_is_view(table), dtype=pl.Boolean))
    texts = table.select(
        pl.col("name", "input_shapes", "concrete_inputs").cast(pl.String)
    ).with_columns(
        pl.col("name", "input_shapes", "concrete_inputs")
        .shift(-1)
        .over(table["track"])
        .name.prefix("next_")
    )
    before = pl.Series([names.may_have_bias(name) for name in texts["name"].to_list()])
    after = (texts["next_name"] == "aten::batch_norm").fill_null(value=False)
    likely = table.with_columns(texts).filter(before.cast(pl.Boolean) & after)
    keys = ["name", "input_shapes", "next_input_shapes", "next_concrete_inputs"]
    rows = [
        (*keyed, channels)
        for keyed in likely.select(keys).unique().iter_rows()
        if (channels := _channels(*keyed))
    ]
    kinds = {**dict.fromkeys(keys, pl.String), "channels": pl.Int64}
    told = pl.DataFrame(rows, schema=kinds, orient="row")
    return likely.join(told, on=keys, how="inner", nulls_equal=True, maintain_order="left")


def _is_view(table: pl.DataFrame) -> list[bool]:
    """What stands between a layer and its norm without a meaning for it: the count of batches."""
    return [
        names.is_view(name) or (name == "aten::add_" and not any(sizes(shapes)))
        for name, shapes in table.select(pl.col("name", "input_shapes").cast(pl.String)).iter_rows()
    ]


def _channels(name: str, shapes: str | None, norm: str | None, concrete: str | None) -> int:
    """How many numbers the bias has; 0 if there is none, or the norm is no norm of this batch."""
    given, taken = sizes(shapes), sizes(norm)
    place = 0 if names.is_bias_first(name) else 2
    if len(given) <= place or len(given[place]) != 1 or not taken or len(taken[0]) < 2:
        return 0
    if _flag(concrete) == "False" or taken[0][1] != given[place][0]:
        return 0
    return given[place][0]


def _flag(concrete: str | None) -> str:
    try:
        read = json.loads(concrete or "[]")
    except ValueError:
        return ""
    return str(read[TRAINING]) if isinstance(read, list) and len(read) > TRAINING else ""


def _sums(trace: Trace, layers: pl.DataFrame, sums: pl.DataFrame) -> pl.DataFrame:
    """The operators within these layers, and within their gradients, that handle the bias."""
    within = sums.filter(pl.Series(is_under(sums, with_backward(trace, layers)), dtype=pl.Boolean))
    channels = set(layers["channels"].to_list())
    texts = within["input_shapes"].cast(pl.String)
    whole = [
        text
        for text in texts.unique().drop_nulls().to_list()
        if (first := sizes(text)[:1]) and len(first[0]) > 1 and first[0][1] in channels
    ]
    return within.filter(texts.is_in(whole))


def _finding(
    trace: Trace, layers: pl.DataFrame, own: pl.DataFrame, place: Where, saving: Saving
) -> Finding:
    steps = steps_recorded(trace)
    begin, end = covered(own)
    return Finding(
        title="A batch norm takes away the bias that a layer adds",
        where=place,
        count_per_step=layers.height / steps,
        saving=saving,
        confidence="medium",
        evidence=(
            Evidence(
                "operators that sum with a bias or over its gradient", own.height / steps, "count"
            ),
            Evidence("host time in them, a step", float((end - begin).sum()) / steps / 1e6, "ms"),
        ),
        fix=Fix(
            "Leave the bias out: the norm subtracts the mean of each channel, and adds its own.",
            "nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)",
        ),
        changes=(change(trace, own, 0.0),),
    )
