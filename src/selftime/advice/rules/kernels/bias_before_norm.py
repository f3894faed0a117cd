"""A layer adds a bias that the batch norm after it subtracts again.

## What it means
A convolution or linear layer with a bias is followed at once by a batch norm, which subtracts the
mean of each channel, and so the bias with it.

In the trace: a layer with a bias among its inputs, and `aten::batch_norm`, on the statistics of the
batch, as the next operator.

## Why it costs
The sum with the bias is a pass over the layer's output, and its gradient a sum over all of it.
Mostly both are a hundredth of the step, which is not reported; on a CPU the bias is free.

## What to do
`bias=False` in the layer; the batch norm has a bias of its own. For inference fold the batch norm
into the layer, `torch.nn.utils.fusion.fuse_conv_bn_eval`.

The estimate removes the operators that add the bias, or sum its gradient.

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
from selftime.advice.detectors.counted_operators import (
    operators_in_counted_steps,
    parse_sizes,
    with_backward_operators,
)
from selftime.advice.detectors.counted_steps import (
    begins_within_enclosing,
    operator_intervals,
    recorded_step_count,
)
from selftime.advice.detectors.elementwise_operators import forward_operators
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

BATCH_NORM_TRAINING_ARGUMENT_INDEX: Final = 5
"""Index of the argument `training` among the arguments of `aten::batch_norm`."""


@rule(covers=("E14",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    layers = _layers_with_bias_before_batch_norm(trace)
    if limits is None or not layers.height:
        yield Checked("no layer with a bias is followed by a batch norm", is_absent=True)
        return
    all_bias_operators = filter_by_name(operators_in_counted_steps(trace), names.is_bias_operator)
    parts = [
        (
            location,
            layers_of_line,
            _bias_operators_of_layers(trace, layers_of_line, all_bias_operators),
        )
        for location, layers_of_line in operators_by_line(trace, layers)
    ]
    if not any(bias_operators.height for _, _, bias_operators in parts):
        yield Checked(
            "a batch norm cancels a layer's bias, but adding the bias takes no operator of its own"
        )
    for location, layers_of_line, bias_operators in parts:
        if bias_operators.height:
            yield _finding(trace, layers_of_line, bias_operators, location)


def _layers_with_bias_before_batch_norm(trace: Trace) -> pl.DataFrame:
    """Returns the operators of layers that have a bias and that a batch norm follows directly.

    The column `channels` is the length of the bias.
    """
    table = forward_operators(trace)
    table = table.filter(~pl.Series(_are_views_or_batch_counters(table), dtype=pl.Boolean))
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
        if (channels := _elements_of_bias_removed_by_norm(*keyed))
    ]
    kinds = {**dict.fromkeys(keys, pl.String), "channels": pl.Int64}
    told = pl.DataFrame(rows, schema=kinds, orient="row")
    return likely.join(told, on=keys, how="inner", nulls_equal=True, maintain_order="left")


def _are_views_or_batch_counters(operators: pl.DataFrame) -> list[bool]:
    """Returns for each operator whether it is a view or updates a batch norm's batch counter."""
    return [
        names.is_view(name) or (name == "aten::add_" and not any(parse_sizes(shapes)))
        for name, shapes in operators.select(
            pl.col("name", "input_shapes").cast(pl.String)
        ).iter_rows()
    ]


def _elements_of_bias_removed_by_norm(
    layer_name: str,
    layer_shapes: str | None,
    norm_shapes: str | None,
    norm_concrete_inputs: str | None,
) -> int:
    """Returns how many elements a layer's bias has; 0 unless a batch norm cancels the bias."""
    layer_sizes, norm_sizes = parse_sizes(layer_shapes), parse_sizes(norm_shapes)
    bias_index = 0 if names.takes_bias_first(layer_name) else 2
    if (
        len(layer_sizes) <= bias_index
        or len(layer_sizes[bias_index]) != 1
        or not norm_sizes
        or len(norm_sizes[0]) < 2
    ):
        return 0
    if (
        _batch_norm_training_argument(norm_concrete_inputs) == "False"
        or norm_sizes[0][1] != layer_sizes[bias_index][0]
    ):
        return 0
    return layer_sizes[bias_index][0]


def _batch_norm_training_argument(norm_concrete_inputs: str | None) -> str:
    try:
        values = json.loads(norm_concrete_inputs or "[]")
    except ValueError:
        return ""
    return (
        str(values[BATCH_NORM_TRAINING_ARGUMENT_INDEX])
        if isinstance(values, list) and len(values) > BATCH_NORM_TRAINING_ARGUMENT_INDEX
        else ""
    )


def _bias_operators_of_layers(
    trace: Trace, layers: pl.DataFrame, bias_operators: pl.DataFrame
) -> pl.DataFrame:
    """Returns the operators that add the bias of the layers or sum its gradient."""
    within = bias_operators.filter(
        pl.Series(
            begins_within_enclosing(bias_operators, with_backward_operators(trace, layers)),
            dtype=pl.Boolean,
        )
    )
    channels = set(layers["channels"].to_list())
    texts = within["input_shapes"].cast(pl.String)
    whole = [
        text
        for text in texts.unique().drop_nulls().to_list()
        if (first := parse_sizes(text)[:1]) and len(first[0]) > 1 and first[0][1] in channels
    ]
    return within.filter(texts.is_in(whole))


def _finding(
    trace: Trace, layers: pl.DataFrame, bias_operators: pl.DataFrame, location: Where
) -> Finding:
    steps = recorded_step_count(trace)
    begin, end = operator_intervals(bias_operators)
    return Finding(
        title="A batch norm removes the bias that the layer before it adds",
        where=location,
        count_per_step=layers.height / steps,
        claim=RemovalClaim((change_shortening_operators(trace, bias_operators, 0.0),)),
        confidence="medium",
        evidence=(
            Evidence(
                "operators that add the bias or sum its gradient, a step",
                bias_operators.height / steps,
                "count",
            ),
            Evidence(
                "host time in these bias operators, a step",
                float((end - begin).sum()) / steps / 1e6,
                "ms",
            ),
        ),
        fix=Fix(
            "Leave the bias out: the norm subtracts the mean of each channel and has its own bias.",
            "nn.Conv2d(inputs, outputs, 3, bias=False), nn.BatchNorm2d(outputs)",
        ),
    )
