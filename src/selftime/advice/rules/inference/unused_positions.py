"""A matrix product is computed for all positions, but only one is used.

## What it means
`logits = head(hidden)` on a whole prompt, and then `logits[:, -1]`: of the products with the
largest matrix of a language model all rows but the last are thrown away. The same holds for any
layer of whose result one position is used.

In the trace: the sizes of a product's result, and the operators after it that take a tensor of
these sizes: all select a part of its positions. `dropped_positions` tells of programs that
compute gradients.

## Why it costs
A vocabulary has some hundred thousand columns: for a prompt of a few thousand tokens the head alone
is work like that of several layers, and its result fills gigabytes.

## What to do
Take the position first: `head(hidden[:, -1:])`. Models of the library `transformers` take
`logits_to_keep=1`.

The estimate leaves the products' work on the used rows; on a device no less than that of 128 rows,
on a CPU of 4, and no less than reading the weights takes, where `selftime run` measured how fast it
copies.

## Fires on
The head runs on 512 positions, of which the last is taken.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | ahhhhhhdf ahhhhhhdf
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::relu; input_shapes = [[1,512,64]]
    h = aten::linear; input_shapes = [[1,512,64],[1000,64]]; line = net.py:8 forward
    d = aten::select; input_shapes = [[1,512,1000],[],[]]; concrete_inputs = ["","1","-1"]
    f = aten::argmax; input_shapes = [[1,1000],[],[]]

## Silent on
All positions are used.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | ahhhhhhdg ahhhhhhdg
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::relu; input_shapes = [[1,512,64]]
    h = aten::linear; input_shapes = [[1,512,64],[1000,64]]; line = net.py:8 forward
    d = aten::select; input_shapes = [[1,512,1000],[],[]]; concrete_inputs = ["","1","-1"]
    g = aten::log_softmax; input_shapes = [[1,512,1000],[],[]]

The position is taken first.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | adhhhhhhf adhhhhhhf
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::relu; input_shapes = [[1,512,64]]
    d = aten::select; input_shapes = [[1,512,64],[],[]]; concrete_inputs = ["","1","-1"]
    h = aten::linear; input_shapes = [[1,64],[1000,64]]; line = net.py:8 forward
    f = aten::argmax; input_shapes = [[1,1000],[],[]]
"""

import json
from collections.abc import Iterator
from typing import Final, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.detectors.operator_changes import device_work_launched_during
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.detectors.token_decoding import (
    time_share_with_fewer_rows,
    weight_matrix_products,
)
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.account.useful_work import cpu_peaks_of_trace
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length
from selftime.trace import Trace

FIX_CODE: Final = """logits = head(hidden[:, -1:])          # for: head(hidden)[:, -1:]
out = model(prompt, logits_to_keep=1)  # with the library `transformers`"""
"""Example code of the fix: take the position before the matrix product."""

_WEIGHT_BYTES: Final = 4
"""Bytes of a weight on a CPU, where models are mostly in float32."""

TensorSizes: TypeAlias = tuple[int, ...]


@rule(covers=("K7",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    if filter_by_name(trace.slices, names.is_backward_node).height:
        yield Checked(
            "the steps train: what a loss leaves out is the subject of `dropped_positions`",
            is_absent=True,
        )
        return
    wasted = _partly_used_products(trace)
    if step_stats is None or not wasted.height:
        yield Checked(
            "no product with a weight is computed for positions that later operators leave out",
            is_absent=True,
        )
        return
    for wasteful_products in slices_by_line(trace, wasted):
        yield _finding(trace, step_stats, wasteful_products)


def _partly_used_products(trace: Trace) -> pl.DataFrame:
    """Returns matrix products of which later operators use only some rows of the result.

    The column `left` is the number of rows that are used.
    """
    products = weight_matrix_products(trace).drop_nulls("rows")
    products = products.with_columns(result=_result_sizes_text(products))
    consumers = _consumers_of_results(trace, products["result"].drop_nulls().unique().to_list())
    found = [products.clear().with_columns(left=pl.lit(0, pl.Int64))]
    for (result,), own in products.drop_nulls("result").group_by("result"):
        own_users = consumers.filter(pl.col("result") == result).sort("start")
        found.append(_products_with_used_row_counts(own.sort("start"), own_users))
    return pl.concat(found).filter(pl.col("left") < pl.col("rows")).sort("start", "id")


def _products_with_used_row_counts(products: pl.DataFrame, consumers: pl.DataFrame) -> pl.DataFrame:
    """Returns matrix products with a column `left`: the number of result rows that are used.

    A result is used between its product and the next of the same sizes.
    """
    done = (products["start"] + products["duration"]).to_numpy()
    at = np.searchsorted(done, consumers["start"].to_numpy(), side="right") - 1
    share = np.zeros(products.height)
    np.add.at(share, at[at >= 0], consumers["share"].to_numpy()[at >= 0])
    share[share == 0] = 1.0
    rows = products["rows"].to_numpy()
    left = np.ceil(np.minimum(share, 1.0) * rows).astype(np.int64)
    return products.with_columns(left=pl.Series(left, dtype=pl.Int64))


def _result_sizes_text(products: pl.DataFrame) -> pl.Series:
    """Returns the shape of each matrix product's result as text; null for a 2-D result."""
    texts = products.select("shapes", "columns").unique()
    rows = [
        (text, columns, str((*first[:-1], columns)))
        for text, columns in texts.iter_rows()
        if len(first := _input_tensor_sizes(text)[0]) > 2
    ]
    schema = {"shapes": pl.String, "columns": pl.Int64, "result": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    told = products.join(table, on=["shapes", "columns"], how="left", maintain_order="left")
    return told["result"]


def _consumers_of_results(trace: Trace, result_sizes: list[str]) -> pl.DataFrame:
    """Returns operators that read a matrix product's result, and the share of it that they read."""
    asked = trace.op_args.select(
        "id",
        shapes=pl.col("input_shapes").cast(pl.String),
        told=pl.col("concrete_inputs").cast(pl.String),
    )
    found = outermost_operators(trace).select("id", "start", pl.col("name").cast(pl.String))
    found = found.join(asked, on="id", maintain_order="left").drop_nulls("shapes")
    kinds = found.select("name", "shapes", "told").unique()
    wanted = set(result_sizes)
    rows = [
        (name, shapes, told, str(sizes), _used_tensor_share(name, sizes, told))
        for name, shapes, told in kinds.iter_rows()
        for sizes in set(_input_tensor_sizes(shapes))
        if str(sizes) in wanted
    ]
    keys = dict.fromkeys(("name", "shapes", "told", "result"), pl.String)
    table = pl.DataFrame(rows, schema={**keys, "share": pl.Float64}, orient="row")
    return found.join(table, on=["name", "shapes", "told"], nulls_equal=True)


def _used_tensor_share(operator: str, sizes: TensorSizes, concrete_inputs: str | None) -> float:
    """Returns the share of a tensor that an operator uses: 1 unless it selects a part.

    It is 0 for a copy or conversion, which does not count as a use.

    >>> _used_tensor_share("aten::select", (2, 7, 64), '["","1","-1"]')
    0.14285714285714285
    >>> _used_tensor_share("aten::slice", (2, 8, 64), '["","1","-2","9223372036854775807","1"]')
    0.25
    >>> _used_tensor_share("aten::select", (2, 7, 64), '["","2","0"]')
    1.0
    >>> _used_tensor_share("aten::to", (2, 7, 64), None)
    0.0
    """
    if names.is_copy_or_conversion(operator):
        return 0.0
    if not names.selects_part_of_dimension(operator):
        return 1.0
    try:
        numbers = [int(value) for value in json.loads(concrete_inputs or "")[1:]]
        size = sizes[numbers[0]]
    except (ValueError, TypeError, IndexError):
        return 1.0
    if numbers[0] in {-1, len(sizes) - 1}:
        return 1.0
    if operator == "aten::select":
        return 1 / size
    begin, end, _ = slice(*numbers[1:4]).indices(size)
    return max(end - begin, 0) / size


def _finding(trace: Trace, step_stats: StepStatistics, wasteful_products: LineSlices) -> Finding:
    steps = counted_step_count(trace)
    left, rows = (wasteful_products.slices[name].to_numpy() for name in ("left", "rows"))
    work = (
        device_work_launched_during(trace, wasteful_products.times)["id"].cast(pl.Int64).to_numpy()
    )
    shares = time_share_with_fewer_rows(left, rows, on_device=bool(work.size))
    keep = float(np.maximum(shares, _shares_of_reading_weights(trace, wasteful_products)).mean())
    change: Change = (
        ScaleDeviceWork(work, keep) if work.size else CutHostTime(wasteful_products.times, keep)
    )
    most: Change = ScaleDeviceWork(work) if work.size else CutHostTime(wasteful_products.times)
    spent = step_stats.scaled_to_typical_step(length(wasteful_products.times) / steps / 1e6)
    return Finding(
        title=f"A matrix product has {rows.max()} rows, of which {left[rows.argmax()]} are used",
        where=wasteful_products.where,
        count_per_step=wasteful_products.slices.height / steps,
        claim=RemovalClaim((change,), largest_changes=(most,)),
        confidence="high",
        evidence=(
            Evidence(
                "host time of the products",
                spent,
                "ms",
                wasteful_products.events(),
                wasteful_products.ids,
            ),
            Evidence("share of the rows that are used", float(left.sum() / rows.sum()), "ratio"),
        ),
        fix=Fix("Take the position that is used, and then multiply.", FIX_CODE),
    )


def _shares_of_reading_weights(trace: Trace, products: LineSlices) -> NDArray[np.float64]:
    """Returns for each product the share of its time in which a CPU reads the weights.

    However few rows are multiplied, all weights are read. It is 0 if the rates are unknown.
    """
    slices, peaks = products.slices, cpu_peaks_of_trace(trace)
    if peaks is None:
        return np.zeros(slices.height)
    sizes = (slices["inner"] * slices["columns"]).cast(pl.Float64).to_numpy() * _WEIGHT_BYTES
    rates = np.array([peaks.bytes_per_second(size) or np.inf for size in sizes.tolist()])
    durations = np.maximum(slices["duration"].to_numpy(), 1)
    return np.asarray(np.minimum(sizes / rates * 1e9 / durations, 1.0), np.float64)


def _input_tensor_sizes(input_shapes: str) -> list[TensorSizes]:
    """Returns the shapes of an operator's input tensors, read from JSON text; `[()]` if none."""
    try:
        found = [
            tuple(int(n) for n in one) for one in json.loads(input_shapes) if isinstance(one, list)
        ]
    except (ValueError, TypeError):
        found = []
    return found or [()]
