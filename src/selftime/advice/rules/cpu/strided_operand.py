"""An operator walks one of its operands across memory.

## What it means
Two operands of one shape lie differently in memory, as `a` and `b.t()` do: whichever is read in
order, the other is read with a jump between each two numbers.

## Why it costs
Memory moves in lines of 64 bytes. A walk across fetches a whole line for each number, and uses it
again only if it is still in a cache when its neighbours' turn comes.

## What to do
Make the operand contiguous where it is made, once, outside the loop; or do the transposition last,
on what is smallest. A `.contiguous()` in the step itself is such a walk too.

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
An operand that is broadcast: it lies in a cache.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaaaaaaabcaaaaaaaabcaaaaaaaabc
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::add; input_shapes = [[512,512],[512,512],[]]; input_types = ["float","float","Scalar"]; input_strides = [[512,1],[0,1],[]]
    b = aten::add; input_shapes = [[512,512],[512,512],[]]; input_types = ["float","float","Scalar"]; input_strides = [[512,1],[512,1],[]]
    c = aten::mm; input_shapes = [[512,512],[512,512]]; input_types = ["float","float"]; input_strides = [[512,1],[512,1]]

Two operands that lie alike, though not in the order of their dimensions.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Where, rule
from selftime.advice.detectors.changes import change
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.detectors.operators import recorded_operators, sizes
from selftime.advice.detectors.places import by_line
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.analysis.grouping import grouped
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

SHORTEST: Final = 64
"""A walk along a shorter dimension stays within what a first-level cache holds of lines."""

PACE: Final = 10.0
"""Bytes a nanosecond that one core moves in order, at least: what a core of a server gets from
memory; caches and more cores give several times as much. Only used where no operator of the same
kind in the trace reads its operands in order."""

ALIKE: Final = 0.25
"""Operands of less than this share of the bytes may lie in a cache that these do not fit in."""

LEAST_BYTES: Final = 32 * 1024
"""Smaller operands lie in the first-level cache, in which a jump costs nothing."""


@rule(covers=("J3",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    found = _pointwise(trace) if not trace.device_args.height else None
    across = None if found is None else found.filter("across")
    if limits is None or found is None or across is None or not across.height:
        yield Checked("no operator of the CPU walks an operand across memory", is_absent=True)
        return
    ordered = found.filter(~pl.col("across"))
    for place, part in by_line(trace, across):
        keep = _kept(part, ordered)
        saving = priced(trace, limits, change(trace, part, keep), most=(change(trace, part, 0.0),))
        yield limits.judge(_finding(trace, part, place, saving, keep))


def _pointwise(trace: Trace) -> pl.DataFrame:
    """Operators on two operands of one shape, as they are called: bytes, pace, across."""
    table = filter_by_name(
        recorded_operators(trace), lambda name: names.is_library_operator(name) and _maps(name)
    )
    table = table.drop_nulls(("input_strides", "input_shapes"))
    keys = ("input_shapes", "input_strides", "input_types")
    group, first = grouped(table.select(keys))
    texts = table.select(keys)[pl.Series(first)].cast(pl.String)
    told = [_read(*row) or (None, None) for row in texts.iter_rows()]
    kinds = {"bytes": pl.Int64, "across": pl.Boolean}
    kind = pl.DataFrame(told, schema=kinds, orient="row")[pl.Series(group)]
    time = pl.col("end") - pl.col("start")
    return (
        table.hstack(kind)
        .filter(pl.col("across").is_not_null() & (time > 0))
        .with_columns(pace=pl.col("bytes") / time)
    )


def _maps(name: str) -> bool:
    """Whether an operator is no product, and no copy, which is made to change the layout."""
    return not names.is_matrix_operator(name) and not names.is_conversion(name)


def _read(shapes: str, strides: str, types: str | None) -> tuple[int, bool] | None:
    """Bytes to move, and whether the first two operands lie differently; None if they are not two.

    Two operands lie differently if the dimension in which one is dense is another than that of the
    other, and long.
    """
    shape, stride = sizes(shapes)[:2], sizes(strides)[:2]
    if len(shape) < 2 or len(stride) < 2 or shape[0] != shape[1] or len(shape[0]) < 2:
        return None
    if any(len(one) != len(shape[0]) for one in stride) or min(shape[0]) < 1:
        return None
    width = _width(types)
    size = width * prod(shape[0])
    if size < LEAST_BYTES:
        return None
    first, second = (_dense(shape[0], one) for one in stride)
    if first is None or second is None:
        return None
    across = first != second and min(shape[0][first], shape[0][second]) > SHORTEST
    return 3 * size, across


def _dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> int | None:
    """The dimension along which neighbours lie side by side; None of what is broadcast."""
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


def _width(types: str | None) -> int:
    try:
        read = json.loads(types or "[]")
    except ValueError:
        read = []
    first = read[0] if isinstance(read, list) and read else ""
    known = names.dtype_name(first) if isinstance(first, str) else None
    return names.DTYPE_SIZES.get(known or "", 4)


def _kept(part: pl.DataFrame, ordered: pl.DataFrame) -> float:
    """The share of its time that reading in order takes, by the trace's own operators if any."""
    alike = ordered.filter(pl.col("bytes") >= ALIKE * max(part["bytes"].to_list()))
    usual = alike.group_by("name").agg(usual=pl.col("pace").median())
    known = part.join(usual, on="name", how="left")
    least = pl.col("bytes") / pl.col("usual").fill_null(PACE)
    time = pl.col("end") - pl.col("start")
    share = known.select((pl.min_horizontal(least, time)).sum() / time.sum()).item()
    return float(share)


def _finding(
    trace: Trace, part: pl.DataFrame, place: Where, saving: Saving, keep: float
) -> Finding:
    name = str(part["name"].cast(pl.String)[0])
    time = sum((part["end"] - part["start"]).to_list())
    steps = steps_recorded(trace)
    return Finding(
        title=f"`{name}` walks an operand across memory",
        where=place,
        count_per_step=part.height / steps,
        saving=saving,
        confidence="medium",
        evidence=(
            Evidence("time in it, a step", time / steps / 1e6, "ms"),
            Evidence("share that reading in order would take", keep, "ratio"),
        ),
        fix=Fix(
            "Make the transposed operand contiguous once, where it is made, or transpose the "
            "result instead.",
            "b_t = b.t().contiguous()    # outside the loop\nc = a + b_t",
        ),
        changes=(change(trace, part, keep),),
    )
