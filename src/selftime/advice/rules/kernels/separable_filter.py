"""A fixed filter of two dimensions may be two filters of one dimension.

## What it means
A blur, a window or another filter that is not learned runs as a convolution of each channel with a
square of weights.

In the trace: convolutions of each channel for itself with a filter of 15 elements or more in two
dimensions or more, called outside of the convolution layers of `torch.nn`. That the filter is fixed
is known by a backward pass without a gradient of it, or by one filter for all channels without any
gradient. Of other filters without a gradient, in a program that learns others, confidence is low.
Whether a filter is separable cannot be known from a recording.

## Why it costs
A filter of 31 by 31 elements multiplies each position 961 times. One of 31 elements along each
dimension in turn multiplies 62 times, and gives the same if the square is the outer product of the
two, as those of Gaussians and boxes are.

## What to do
Convolve along one dimension, and then along the other. A large filter that is no outer product is
faster by Fourier transforms, `torch.fft.rfft2`.

The estimate gives the convolutions five times the share of the multiplications that remain, as
narrow ones take longer for each; the lower end is that the filter is not separable.

## Fires on
A blur by 31 by 31 elements before a network.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | bbbbbbllllbbbbbbllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    b = aten::conv2d; input_shapes = [[8,1,64,64],[1,1,31,31],[],[],[],[],[]]; input_types = ["float","float","","ScalarList","ScalarList","ScalarList","Scalar"]; concrete_inputs = ["","","","[1, 1]","[15, 15]","[1, 1]","1"]; line = blur.py:4 blur
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

## Silent on
The filter in two parts.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | bbcclllll bbcclllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    b = aten::conv2d; input_shapes = [[8,1,64,64],[1,1,31,1],[],[],[],[],[]]; input_types = ["float","float","","ScalarList","ScalarList","ScalarList","Scalar"]; concrete_inputs = ["","","","[1, 1]","[15, 0]","[1, 1]","1"]
    c = aten::conv2d; input_shapes = [[8,1,64,64],[1,1,1,31],[],[],[],[],[]]; input_types = ["float","float","","ScalarList","ScalarList","ScalarList","Scalar"]; concrete_inputs = ["","","","[1, 1]","[0, 15]","[1, 1]","1"]
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]

Channels whose filters may be learned.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | bbbbbbllllbbbbbbllll
    s = ProfilerStep#1
    t = ProfilerStep#2
    b = aten::conv2d; input_shapes = [[8,32,64,64],[32,1,31,31],[],[],[],[],[]]; input_types = ["float","float","","ScalarList","ScalarList","ScalarList","Scalar"]; concrete_inputs = ["","","","[1, 1]","[15, 15]","[1, 1]","32"]
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import with_backward_operators
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.elementwise_operators import forward_operators, operator_ms_per_step
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import UNSURE_SAVING_RANGE, RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.models import (
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
)
from selftime.analysis.slice_arguments import arguments_of_slices
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_FILTER_LENGTH: Final = 15
"""Smallest length of a filter in each of two dimensions to count: on a CPU two filters of 11 took
as long as one of 11 by 11, and two of 7 up to twice as long as one of 7 by 7."""

NARROW_FILTER_COST: Final = 5.0
"""How many times as long a multiplication takes in a filter of one dimension: 4 to 6, as measured
on a CPU with 1 and 3 channels."""

MIN_FILTER_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step in such convolutions to report."""

OUTPUT_MASK_ARGUMENT: Final = 10
"""Index of the argument `output_mask` of `convolution_backward`: which gradients it computes."""

_DIMENSIONS_BEFORE_FILTER: Final = 2
"""Number of dimensions of a filter before its own: filters, and channels of each."""

FIX: Final = Fix(
    "If the filter is a Gaussian, a box or another outer product, convolve along one dimension "
    "after the other.",
    "rows, columns = g.view(1, 1, 1, -1), g.view(1, 1, -1, 1)  # outer(g, g)\n"
    "x = F.conv2d(x, columns.expand(c, -1, -1, -1), groups=c)\n"
    "x = F.conv2d(x, rows.expand(c, -1, -1, -1), groups=c)",
)
"""What replaces the convolution by a square."""


@rule(covers=("E16",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    filters = _fixed_filters(trace)
    if step_stats is None or not filters.height:
        yield Checked(
            "no filter of two dimensions that is not learned runs over each channel",
            is_absent=True,
        )
        return
    for where, of_line in operators_by_line(trace, filters):
        both = with_backward_operators(trace, of_line)
        spent = operator_ms_per_step(trace, both)
        if spent < MIN_FILTER_SHARE_OF_STEP * step_stats.step_ms:
            least = whole_percent_text(MIN_FILTER_SHARE_OF_STEP)
            text = f"fixed filters of two dimensions take less than {least} of the step"
            yield Checked(text, spent, is_slowed=not trace.device_args.height)
        else:
            yield _finding(trace, of_line, both, where, spent)


def _fixed_filters(trace: Trace) -> pl.DataFrame:
    """Returns the forward convolutions by filters of several dimensions that nothing learns.

    Columns: those of `forward_operators`; filter, its sizes as text; kept, the share of the
    multiplications that remains if it is split; certain, whether the filter is surely fixed.
    """
    table = filter_by_name(forward_operators(trace), names.is_forward_convolution)
    keys = ["name", "input_shapes", "input_types", "input_strides", "concrete_inputs"]
    table = table.with_columns(pl.col(keys).cast(pl.String))
    rows = [
        (*row, *found)
        for row in table.select(keys).unique().iter_rows()
        if (found := filter_of_each_channel(*row)) is not None
    ]
    schema = {**dict.fromkeys((*keys, "filter"), pl.String), "kept": pl.Float64, "one": pl.Boolean}
    known = pl.DataFrame(rows, schema=schema, orient="row")
    table = table.join(known, on=keys, how="inner", nulls_equal=True, maintain_order="left")
    gradients = _filter_gradients(trace)
    learned = table["id"].is_in(gradients.filter("learned")["id"].implode())
    fixed = table["id"].is_in(gradients["id"].implode())
    trains = gradients.height > 0  # what has no gradient there is no layer that learns
    certain = pl.Series(fixed | table["one"], dtype=pl.Boolean)
    table = table.with_columns(certain=certain)
    return table.filter(~_is_in_layer(trace, table["id"]) & ~learned & (certain | trains))


def _filter_gradients(trace: Trace) -> pl.DataFrame:
    """Returns id, of each convolution with a gradient, and learned, whether the filter has one."""
    found = filter_by_name(trace.slices, names.is_backward_convolution)
    inputs = arguments_of_slices(
        trace, "op_args", found["id"], "input_shapes", "input_types", "concrete_inputs"
    )
    learned = [_computes_filter_gradient(*row) for row in inputs.cast(pl.String).iter_rows()]
    node = arguments_of_slices(trace, "op_args", found["parent"], "forward")
    table = node.select(id="forward", learned=pl.Series(learned, dtype=pl.Boolean)).drop_nulls("id")
    around = table.with_columns(id=trace.slices["parent"].gather(table["id"])).drop_nulls("id")
    return pl.concat([table, around])


def _computes_filter_gradient(
    shapes: str | None, types: str | None, concrete_inputs: str | None
) -> bool:
    """Returns whether a convolution's backward operator computes the filter's gradient.

    True where the recording does not tell.
    """
    try:
        call = RecordedOperatorCall(shapes or "[]", types, concrete_inputs)
        return call.flags(OUTPUT_MASK_ARGUMENT)[1]
    except (UnknownOperatorArgument, IndexError):
        return True


def _is_in_layer(trace: Trace, operators: pl.Series) -> pl.Series:
    """Returns for each operator whether a layer of `torch.nn`, which learns a filter, called it."""
    module = arguments_of_slices(trace, "op_args", operators, "module")["module"]
    name = trace.slices["name"].gather(module).cast(pl.String).to_list()
    return pl.Series(
        [one is not None and names.is_convolution_layer(one) for one in name], dtype=pl.Boolean
    )


def filter_of_each_channel(
    operator: str,
    shapes: str | None,
    types: str | None,
    strides: str | None,
    concrete_inputs: str | None,
) -> tuple[str, float, bool] | None:
    """Returns sizes, share of multiplications if split, and whether one filter is for all channels.

    None if the convolution is not by a filter of several dimensions for each channel.

    >>> shapes = "[[8,3,64,64],[3,1,31,31],[],[],[],[],[]]"
    >>> told = '["","","","[1, 1]","[0, 0]","[1, 1]","3"]'
    >>> filter_of_each_channel("aten::conv2d", shapes, '["float","float"]', None, told)
    ('31 x 31', 0.06451612903225806, False)
    """
    try:
        call = RecordedOperatorCall(shapes or "[]", types, concrete_inputs, strides)
        given, weight = call.tensor_argument(0), call.tensor_argument(1)
        groups = call.number(names.convolution_groups_argument(operator))
    except UnknownOperatorArgument:
        return None
    if len(weight.shape) != len(given.shape) or len(given.shape) <= _DIMENSIONS_BEFORE_FILTER:
        return None
    lengths = [size for size in weight.shape[_DIMENSIONS_BEFORE_FILTER:] if size > 1]
    if weight.shape[1] != 1 or groups != given.shape[1] or len(lengths) < 2:
        return None
    if sorted(lengths)[-2] < MIN_FILTER_LENGTH:
        return None
    return " x ".join(map(str, lengths)), sum(lengths) / prod(lengths), _is_one_filter(weight)


def _is_one_filter(weight: RecordedTensor) -> bool:
    """Returns whether all channels surely have the same filter: there is one, or it is expanded."""
    return weight.shape[0] == 1 or (weight.strides is not None and weight.strides[0] == 0)


def _finding(
    trace: Trace, filters: pl.DataFrame, both: pl.DataFrame, where: Where, spent_ms: float
) -> Finding:
    times = (filters["end"] - filters["start"]).to_numpy()
    kept = float((np.minimum(NARROW_FILTER_COST * filters["kept"].to_numpy(), 1) * times).sum())
    share = kept / max(float(times.sum()), 1.0)
    return Finding(
        title=f"A fixed filter of {filters['filter'][0]} elements runs in one convolution",
        where=where,
        count_per_step=filters.height / recorded_step_count(trace),
        claim=RemovalClaim(
            (change_shortening_operators(trace, both, share),),
            largest_changes=(change_shortening_operators(trace, both, 0.0),),
            interval=UNSURE_SAVING_RANGE,
        ),
        confidence="medium" if filters["certain"].all() else "low",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in these convolutions and their gradients",
                spent_ms,
                "ms",
                tuple(filters["id"].head(3).to_list()),
                both["id"].to_numpy(),
            ),
            Evidence(
                "share of the multiplications if it is split", float(filters["kept"][0]), "ratio"
            ),
        ),
        fix=FIX,
    )
