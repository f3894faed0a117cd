"""Each new token computes all tokens before it once more.

## What it means
Every step runs the network on the whole text so far, one token more than the step before, though
only the last row is new. The keys and values of the others do not change.

In the trace: more than half of the products with weights have more rows from round to round, by the
same number each time, and nothing computes gradients.

## Why it costs
A text of n tokens takes the work of n * n / 2 in place of n. While texts are short a device hardly
notices, as reading the weights takes as long for one row as for a hundred.

## What to do
Keep keys and values of the tokens so far (`past_key_values`, `use_cache=True`), and run the network
on the new token only. Allocate the cache for the longest text at once.

The estimate leaves the rows of one token in the products and in what runs between them.

## Fires on
Products that grow by a row a step.

    column = 1 ms
    mark 1 | 0000000000ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvv
    cpu 1  | eeeeeeeeffaaaaaaaaffbbbbbbbbffccccccccffddddddddff
    0 = ProfilerStep#0
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    e = aten::linear; input_shapes = [[1,99,64],[256,64]]
    a = aten::linear; input_shapes = [[1,100,64],[256,64]]; line = net.py:8 forward
    b = aten::linear; input_shapes = [[1,101,64],[256,64]]; line = net.py:8 forward
    c = aten::linear; input_shapes = [[1,102,64],[256,64]]; line = net.py:8 forward
    d = aten::linear; input_shapes = [[1,103,64],[256,64]]; line = net.py:8 forward
    f = aten::argmax

## Silent on
Inputs of random lengths.

    column = 1 ms
    mark 1 | 0000000000ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvv
    cpu 1  | eeeeeeeeffaaaaaaaaffbbbbbbbbffccccccccffddddddddff
    0 = ProfilerStep#0
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    e = aten::linear; input_shapes = [[1,99,64],[256,64]]
    a = aten::linear; input_shapes = [[1,100,64],[256,64]]
    b = aten::linear; input_shapes = [[1,131,64],[256,64]]
    c = aten::linear; input_shapes = [[1,132,64],[256,64]]
    d = aten::linear; input_shapes = [[1,86,64],[256,64]]
    f = aten::argmax

Batches that are sorted by length: some are as long as the one before.

    column = 1 ms
    mark 1 | 0000000000ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvvwwwwwwwwww
    cpu 1  | eeeeeeeeffaaaaaaaaffaaaaaaaaffbbbbbbbbffccccccccffddddddddff
    0 = ProfilerStep#0
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    e = aten::linear; input_shapes = [[1,99,64],[256,64]]
    a = aten::linear; input_shapes = [[1,100,64],[256,64]]
    b = aten::linear; input_shapes = [[1,101,64],[256,64]]
    c = aten::linear; input_shapes = [[1,102,64],[256,64]]
    d = aten::linear; input_shapes = [[1,103,64],[256,64]]
    f = aten::argmax

One row a token: keys and values are kept.

    column = 1 ms
    mark 1 | 0000000000ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvv
    cpu 1  | aaaaaaaaffaaaaaaaaffaaaaaaaaffaaaaaaaaffaaaaaaaaff
    0 = ProfilerStep#0
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    a = aten::linear; input_shapes = [[1,1,64],[256,64]]
    f = aten::argmax
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.advice.detectors.counted_steps import counted_step_count, slices_in_counted_steps
from selftime.advice.detectors.operator_changes import device_work_launched_during
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.detectors.token_decoding import (
    time_share_with_fewer_rows,
    weight_matrix_products,
    weight_matrix_products_of_recording,
)
from selftime.advice.replay import Change, CutHostTime, ScaleDeviceWork
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.analysis.steps.steady_steps import is_instant_in_windows, steps_with_counted_flags
from selftime.array_types import Ints
from selftime.intervals import Intervals, union
from selftime.trace import Trace

MIN_DISTINCT_TEXT_LENGTHS: Final = 4
"""Smallest number of different sequence lengths from which a text counts as growing."""

MIN_SHARE_OF_ONE_TOKEN_GROWTHS: Final = 0.8
"""Smallest share of length changes by one token (or by two, around a step that was not recorded)
for a text to count as growing; at other changes another text begins."""

MIN_CPU_OPERATOR_NS: Final = 5_000
"""Smallest time of an operator on a CPU, in ns: dispatch takes 1 to 10 us."""

FIX_CODE: Final = """out = model(tokens, use_cache=True)  # the prompt, once
while not done:
    token = out.logits[:, -1:].argmax(dim=-1)
    cache = out.past_key_values
    out = model(token, past_key_values=cache, use_cache=True)"""
"""Example code of the fix: decode with a cache, by the library `transformers`."""


@rule(covers=("K5",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    products = weight_matrix_products(trace)
    growing_products = slices_in_counted_steps(trace, _products_growing_each_step(trace))
    if step_stats is None or 2 * growing_products.height <= products.height:
        yield Checked("no network runs on a text that grows by a token a step", is_absent=True)
        return
    yield _finding(trace, growing_products)


def _products_growing_each_step(trace: Trace) -> pl.DataFrame:
    """Returns the matrix products whose number of rows grows in each recorded step.

    The column `batch` is the number of rows for each token. Steps that are not measured, such as
    outliers, have their lengths as well.
    """
    products = _products_of_recorded_steps(trace)
    found = [products.clear().with_columns(batch=pl.lit(0, pl.Int64))]
    is_training = filter_by_name(trace.slices, names.is_backward_node).height
    told = products.clear() if is_training else products.drop_nulls("rows")
    for _, own in told.group_by("inner", "columns", maintain_order=True):
        batch = _rows_per_token(own["rows"].to_numpy())
        if batch and _do_products_grow_each_step(trace, own):
            found.append(own.with_columns(batch=pl.lit(batch, pl.Int64)))
    return pl.concat(found).sort("start", "id")


def _products_of_recorded_steps(trace: Trace) -> pl.DataFrame:
    products = weight_matrix_products_of_recording(trace)
    within = is_instant_in_windows(products["start"].to_numpy(), steps_with_counted_flags(trace))
    return products.filter(pl.Series(within, dtype=pl.Boolean))


def _rows_per_token(rows: Ints) -> int:
    """Returns by how many rows matrix products grow from step to step; 0 if they do not grow.

    >>> _rows_per_token(np.array([34, 34, 36, 36, 38, 40]))
    2
    >>> _rows_per_token(np.array([34, 36, 40, 38]))
    0
    """
    more = np.diff(rows)
    more = more[more != 0]
    longer = more[more > 0]
    if not longer.size:
        return 0
    batch = int(longer.min())
    follow = int(np.isin(more, (batch, 2 * batch)).sum())
    is_text = follow >= max(
        MIN_DISTINCT_TEXT_LENGTHS - 1, MIN_SHARE_OF_ONE_TOKEN_GROWTHS * more.size
    )
    return batch if is_text and not (rows % batch).any() else 0


def _do_products_grow_each_step(trace: Trace, products: pl.DataFrame) -> bool:
    """Returns whether matrix products change their number of rows from each step to the next."""
    begin = steps_with_counted_flags(trace)["start"].to_numpy()
    step = np.searchsorted(begin, products["start"].to_numpy(), side="right")
    rows = products["rows"].to_numpy()
    return not bool(((np.diff(step) > 0) & (np.diff(rows) == 0)).any())


def _changes_if_prefix_is_cached(
    trace: Trace, growing_products: pl.DataFrame
) -> tuple[Change, ...]:
    """Returns the simulated changes if matrix products compute only the newest token.

    The operators between the products, too, compute only this token.

    What runs between the first and the last product of a round does so for all of its rows.
    """
    on_device = bool(trace.device_args.height)
    one, all_ = growing_products["batch"].to_numpy(), growing_products["rows"].to_numpy()
    product = time_share_with_fewer_rows(one, all_, on_device=on_device)
    row = float((one / all_).mean())
    begin = outermost_operators(trace)
    others = begin.join(growing_products.select("id"), on="id", how="anti")
    others = others.filter(
        pl.col("start").is_between(growing_products["start"][0], growing_products["start"][-1])
    )
    if on_device:
        return (
            *_changes_scaling_device_work(
                trace, covered_time(growing_products), float(product.mean())
            ),
            *_changes_scaling_device_work(trace, covered_time(others), row),
        )
    return (
        _change_shortening_host_operators(growing_products, product),
        _change_shortening_host_operators(others, np.full(others.height, row)),
    )


def _changes_scaling_device_work(
    trace: Trace, launch_times: Intervals, remaining_share: float
) -> tuple[Change, ...]:
    work = device_work_launched_during(trace, launch_times)["id"].cast(pl.Int64).to_numpy()
    return (ScaleDeviceWork(work, remaining_share),) if work.size else ()


def _change_shortening_host_operators(
    operators: pl.DataFrame, remaining_shares: NDArray[np.float64]
) -> CutHostTime:
    """Returns the simulated change that shortens each operator's host time to its own share.

    An operator keeps at least the time of its dispatch.
    """
    time = operators["duration"].to_numpy()
    left = np.minimum(np.maximum(time * remaining_shares, MIN_CPU_OPERATOR_NS), time)
    begin = operators["start"].to_numpy()
    share = float(left.sum() / time.sum()) if time.sum() else 1.0
    return CutHostTime(union(begin, begin + time), share)


def _finding(trace: Trace, growing_products: pl.DataFrame) -> Finding:
    most = next(slices_by_line(trace, growing_products), LineSlices.as_one_group(growing_products))
    changes = _changes_if_prefix_is_cached(trace, growing_products)
    tokens = (growing_products["rows"] // growing_products["batch"]).to_list()
    return Finding(
        title=f"Each token computes the whole text again, {min(tokens)} to {max(tokens)} tokens",
        where=most.where,
        count_per_step=growing_products.height / counted_step_count(trace),
        claim=RemovalClaim(changes),
        confidence="medium",
        evidence=(
            Evidence("tokens computed to make the last token", tokens[-1], "count", most.events()),
            Evidence(
                "growing matrix products a step",
                growing_products.height / counted_step_count(trace),
                "count",
                (),
                growing_products["id"].to_numpy(),
            ),
        ),
        semantics="numerics",
        fix=Fix("Keep keys and values, and compute the new token alone.", FIX_CODE),
    )
