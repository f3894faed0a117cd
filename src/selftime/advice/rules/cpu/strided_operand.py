"""An operator reads one of its tensors with strides, not in memory order.

## What it means
Two operands of one shape have different layouts in memory, as `a` and `b.t()` do: if one is read in
order, the other is read with a stride.

In the trace: the shapes and strides of an operator's first two inputs: one shape, but the dimension
in which they are dense differs, and both dimensions are longer than 64.

## Why it costs
Memory moves in lines of 64 bytes. A walk across fetches a whole line for each number, and uses it
again only if it is still in a cache when its neighbours' turn comes.

## What to do
Make the operand contiguous where it is made, once, outside the loop; or do the transposition last,
on what is smallest. A `.contiguous()` in the step itself has the same cost.

The estimate gives these operators the rate of the same operators on operands in order, else 10
bytes a ns.

## Fires on
A sum of a matrix and a transposed one.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaaaabcaaaaaaaabcaaaaaaaabc
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::add; input_shapes = [[512,512],[512,512],[]]; input_types = ["float","float","Scalar"]; input_strides = [[512,1],[1,512],[]]; line = train.py:8 f
    b = aten::add; input_shapes = [[512,512],[512,512],[]]; input_types = ["float","float","Scalar"]; input_strides = [[512,1],[512,1],[]]; line = train.py:9 f
    c = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]; input_strides = [[512,1],[512,1]]

## Silent on
An operand that is broadcast: it stays in a cache.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaaaabcaaaaaaaabcaaaaaaaabc
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::add; input_shapes = [[512,512],[512,512],[]]; input_types = ["float","float","Scalar"]; input_strides = [[512,1],[0,1],[]]
    b = aten::add; input_shapes = [[512,512],[512,512],[]]; input_types = ["float","float","Scalar"]; input_strides = [[512,1],[512,1],[]]
    c = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]; input_strides = [[512,1],[512,1]]

Two operands of the same layout, though not in the order of their dimensions.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaaaaacaaaaaaaaacaaaaaaaaac
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::add; input_shapes = [[512,512],[512,512],[]]; input_types = ["float","float","Scalar"]; input_strides = [[1,512],[1,512],[]]
    c = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]; input_strides = [[512,1],[512,1]]
"""  # noqa: E501 - what a letter stands for is on one line

import json
from collections.abc import Iterator
from itertools import pairwise
from math import prod
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps, parse_sizes
from selftime.advice.detectors.counted_steps import recorded_step_count
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.slice_grouping import group_and_first_row_of_rows
from selftime.trace import Trace

MAX_CACHED_DIMENSION_LENGTH: Final = 64
"""Longest dimension, in elements, along which strided reads stay in a first-level cache."""

CONTIGUOUS_READ_BYTES_PER_NS: Final = 10.0
"""Assumed bytes per ns of reads in memory order, if the trace has no equal operator that reads
so."""

MIN_COMPARABLE_BYTES_RATIO: Final = 0.25
"""Smallest ratio of another operator's bytes to a strided operator's for their rates to be
compared."""

MIN_REPORTED_OPERAND_BYTES: Final = 32 * 1024
"""Smallest strided tensor to report, in bytes; a first-level cache holds smaller ones."""


@rule(covers=("J3",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    operators = (
        _elementwise_operators_on_two_tensors(trace) if not trace.device_args.height else None
    )
    strided = None if operators is None else operators.filter("across")
    if limits is None or operators is None or strided is None or not strided.height:
        yield Checked("no operator on the CPU reads an operand in large strides", is_absent=True)
        return
    in_order = operators.filter(~pl.col("across"))
    for location, strided_of_line in operators_by_line(trace, strided):
        in_order_share = _in_order_to_strided_time_ratio(strided_of_line, in_order)
        yield _finding(trace, strided_of_line, location, in_order_share)


def _elementwise_operators_on_two_tensors(trace: Trace) -> pl.DataFrame:
    """Returns the elementwise operators whose two input tensors have the same shape.

    Columns: bytes (moved), pace (bytes per ns), and across: whether the layouts differ.
    """
    table = filter_by_name(
        operators_in_counted_steps(trace),
        lambda name: names.is_aten_operator(name) and _is_neither_matrix_operator_nor_copy(name),
    )
    table = table.drop_nulls(("input_strides", "input_shapes"))
    keys = ("input_shapes", "input_strides", "input_types")
    group, first = group_and_first_row_of_rows(table.select(keys))
    texts = table.select(keys)[pl.Series(first)].cast(pl.String)
    rows = [
        _moved_bytes_and_whether_layouts_differ(*row) or (None, None) for row in texts.iter_rows()
    ]
    kinds = {"bytes": pl.Int64, "across": pl.Boolean}
    kind = pl.DataFrame(rows, schema=kinds, orient="row")[pl.Series(group)]
    time = pl.col("end") - pl.col("start")
    return (
        table.hstack(kind)
        .filter(pl.col("across").is_not_null() & (time > 0))
        .with_columns(pace=pl.col("bytes") / time)
    )


def _is_neither_matrix_operator_nor_copy(operator_name: str) -> bool:
    """Returns whether an operator is neither a matrix product nor a copy or conversion."""
    return not names.is_matrix_operator(operator_name) and not names.is_copy_or_conversion(
        operator_name
    )


def _moved_bytes_and_whether_layouts_differ(
    input_shapes: str, input_strides: str, input_types: str | None
) -> tuple[int, bool] | None:
    """Returns the bytes that an operator moves, and whether its two inputs' layouts differ.

    None if the inputs are small or cannot be compared.

    Two layouts differ if the dimensions in which they are dense differ, and both are long.
    """
    shape, stride = parse_sizes(input_shapes)[:2], parse_sizes(input_strides)[:2]
    if len(shape) < 2 or len(stride) < 2 or shape[0] != shape[1] or len(shape[0]) < 2:
        return None
    if any(len(steps) != len(shape[0]) for steps in stride) or min(shape[0]) < 1:
        return None
    width = _bytes_per_element_of_first_input(input_types)
    tensor_bytes = width * prod(shape[0])
    if tensor_bytes < MIN_REPORTED_OPERAND_BYTES:
        return None
    first, second = (_contiguous_dimension(shape[0], steps) for steps in stride)
    if first is None or second is None:
        return None
    is_strided = (
        first != second and min(shape[0][first], shape[0][second]) > MAX_CACHED_DIMENSION_LENGTH
    )
    return 3 * tensor_bytes, is_strided


def _contiguous_dimension(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """Returns the index of a tensor's dimension that has stride 1, or None.

    None if no dimension has stride 1, and if the tensor is broadcast.
    """
    real = [
        (step, at) for at, (step, size) in enumerate(zip(strides, shape, strict=True)) if size > 1
    ]
    if not real or any(step == 0 for step, _ in real):
        return None
    ordered = sorted(real)
    if any(small == large for (small, _), (large, _) in pairwise(ordered)):
        return None
    step, at = ordered[0]
    return at if step == 1 else None


def _bytes_per_element_of_first_input(input_types: str | None) -> int:
    try:
        dtypes = json.loads(input_types or "[]")
    except ValueError:
        dtypes = []
    first = dtypes[0] if isinstance(dtypes, list) and dtypes else ""
    known = names.dtype_name(first) if isinstance(first, str) else None
    return names.DTYPE_SIZES_IN_BYTES.get(known or "", 4)


def _in_order_to_strided_time_ratio(
    strided_operators: pl.DataFrame, in_order_operators: pl.DataFrame
) -> float:
    """Returns the time of strided operators in memory order as a share of their recorded time."""
    alike = in_order_operators.filter(
        pl.col("bytes") >= MIN_COMPARABLE_BYTES_RATIO * max(strided_operators["bytes"].to_list())
    )
    usual = alike.group_by("name").agg(usual=pl.col("pace").median())
    known = strided_operators.join(usual, on="name", how="left")
    least = pl.col("bytes") / pl.col("usual").fill_null(CONTIGUOUS_READ_BYTES_PER_NS)
    time = pl.col("end") - pl.col("start")
    share = known.select((pl.min_horizontal(least, time)).sum() / time.sum()).item()
    return float(share)


def _finding(
    trace: Trace, strided_operators: pl.DataFrame, location: Where, in_order_share: float
) -> Finding:
    name = str(strided_operators["name"].cast(pl.String)[0])
    time = sum((strided_operators["end"] - strided_operators["start"]).to_list())
    steps = recorded_step_count(trace)
    return Finding(
        title=f"`{name}` reads an operand in large strides",
        where=location,
        count_per_step=strided_operators.height / steps,
        claim=RemovalClaim(
            (change_shortening_operators(trace, strided_operators, in_order_share),),
            largest_changes=(change_shortening_operators(trace, strided_operators, 0.0),),
        ),
        confidence="medium",
        evidence=(
            Evidence("time in the operator, a step", time / steps / 1e6, "ms"),
            Evidence("share of this time if operands were read in order", in_order_share, "ratio"),
        ),
        fix=Fix(
            "Make the transposed operand contiguous once, where it is made, or transpose the "
            "result instead.",
            "b_t = b.t().contiguous()    # outside the loop\nc = a + b_t",
        ),
    )
