"""Each token computes all tokens before it once more.

## What it means
Every step runs the network on the whole text so far, one token more than the step before, though
only the last row is new. The keys and values of the others are what they were.

## Why it costs
A text of n tokens takes the work of n * n / 2 in place of n. While texts are short a device hardly
notices, as reading the weights takes as long for one row as for a hundred.

## What to do
Keep keys and values of what is computed (`past_key_values`, `use_cache=True`), and run the network
on the new token only. Allocate the cache for the longest text at once.

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
Inputs whose length is what it happens to be.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.detectors.changes import launched_during
from selftime.advice.detectors.counted_steps import steps_counted
from selftime.advice.detectors.decoding import share_of_rows, weight_products
from selftime.advice.detectors.operators import outermost_operators
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Change, Cut, Scale
from selftime.analysis.slice_filters import covered_time, filter_by_name
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.arrays import Ints
from selftime.intervals import Intervals, union
from selftime.trace import Trace

LEAST_LENGTHS: Final = 4
"""Batches that are sorted by length may be one longer twice; three times is a text that grows."""

OF_ROUNDS: Final = 0.8
"""Of the changes of length that are one more token, or two where a step between does not count; the
others begin another text."""

DISPATCH_NS: Final = 5_000
"""What stays of any operator on a CPU: dispatch takes 1 to 10 us."""

CODE: Final = """out = model(tokens, use_cache=True)                      # the prompt, once
while not done:
    token = out.logits[:, -1:].argmax(dim=-1)
    out = model(token, past_key_values=out.past_key_values, use_cache=True)"""
"""What the library `transformers` takes."""


@rule(covers=("K5",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    products = weight_products(trace)
    growing = _growing(trace, products)
    if limits is None or 2 * growing.height <= products.height:
        yield Checked("no network runs on a text that grows by a token a step", is_absent=True)
        return
    yield limits.judge(_finding(trace, limits, growing))


def _growing(trace: Trace, products: pl.DataFrame) -> pl.DataFrame:
    """Products whose rows grow by one token from round to round; with `batch`, the token's rows."""
    found = [products.clear().with_columns(batch=pl.lit(0, pl.Int64))]
    is_training = filter_by_name(trace.slices, names.is_backward_node).height
    told = products.clear() if is_training else products.drop_nulls("rows")
    for _, own in told.group_by("inner", "columns", maintain_order=True):
        batch = _batch(own["rows"].to_numpy())
        if batch and _grows_each_step(trace, own):
            found.append(own.with_columns(batch=pl.lit(batch, pl.Int64)))
    return pl.concat(found).sort("start", "id")


def _batch(rows: Ints) -> int:
    """By how many rows each round is longer than the one before; 0 if that is not so.

    >>> _batch(np.array([34, 34, 36, 36, 38, 40])), _batch(np.array([34, 36, 40, 38]))
    (2, 0)
    """
    more = np.diff(rows)
    more = more[more != 0]
    longer = more[more > 0]
    if not longer.size:
        return 0
    batch = int(longer.min())
    follow = int(np.isin(more, (batch, 2 * batch)).sum())
    is_text = follow >= max(LEAST_LENGTHS - 1, OF_ROUNDS * more.size)
    return batch if is_text and not (rows % batch).any() else 0


def _grows_each_step(trace: Trace, products: pl.DataFrame) -> bool:
    """Whether no step begins with the length at which the one before ended."""
    begin = counted_windows(trace)["start"].to_numpy()
    step = np.searchsorted(begin, products["start"].to_numpy(), side="right")
    rows = products["rows"].to_numpy()
    return not bool(((np.diff(step) > 0) & (np.diff(rows) == 0)).any())


def _changes(trace: Trace, growing: pl.DataFrame) -> tuple[Change, ...]:
    """What is left with a cache: the rows of one token in products, and so in all else.

    What runs between the first and the last product of a round does so for all of its rows.
    """
    on_device = bool(trace.device_args.height)
    one, all_ = growing["batch"].to_numpy(), growing["rows"].to_numpy()
    product = share_of_rows(one, all_, on_device=on_device)
    row = float((one / all_).mean())
    begin = outermost_operators(trace)
    others = begin.join(growing.select("id"), on="id", how="anti")
    others = others.filter(pl.col("start").is_between(growing["start"][0], growing["start"][-1]))
    if on_device:
        return (
            *_scaled(trace, covered_time(growing), float(product.mean())),
            *_scaled(trace, covered_time(others), row),
        )
    return (_cut(growing, product), _cut(others, np.full(others.height, row)))


def _scaled(trace: Trace, times: Intervals, keep: float) -> tuple[Change, ...]:
    work = launched_during(trace, times)["id"].cast(pl.Int64).to_numpy()
    return (Scale(work, keep),) if work.size else ()


def _cut(slices: pl.DataFrame, keep: NDArray[np.float64]) -> Cut:
    """The host time of operators, of each of which so much stays, and dispatch at least."""
    time = slices["duration"].to_numpy()
    left = np.minimum(np.maximum(time * keep, DISPATCH_NS), time)
    begin = slices["start"].to_numpy()
    share = float(left.sum() / time.sum()) if time.sum() else 1.0
    return Cut(union(begin, begin + time), share)


def _finding(trace: Trace, limits: Gate, growing: pl.DataFrame) -> Finding:
    most = next(places(trace, growing), Place.of(growing))
    changes = _changes(trace, growing)
    tokens = (growing["rows"] // growing["batch"]).to_list()
    return Finding(
        title=f"Each token computes the whole text again, {min(tokens)} to {max(tokens)} tokens",
        where=most.where,
        count_per_step=growing.height / steps_counted(trace),
        saving=priced(trace, limits, *changes),
        confidence="medium",
        evidence=(
            Evidence("tokens in the last step", tokens[-1], "count", most.events()),
            Evidence("products a step that grow", growing.height / steps_counted(trace), "count"),
        ),
        fix=Fix("Keep keys and values, and compute the new token alone.", CODE),
        changes=changes,
    )
