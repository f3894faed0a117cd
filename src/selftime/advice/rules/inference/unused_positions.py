"""A product is computed for all positions, and one of them is used.

## What it means
`logits = head(hidden)` on a whole prompt, and then `logits[:, -1]`: of the products with the
largest matrix of a language model all rows but the last are thrown away. The same holds for any
layer of whose result only a position is taken.

## Why it costs
A vocabulary has some hundred thousand columns: for a prompt of a few thousand tokens the head alone
is work like that of several layers, and its result fills gigabytes.

## What to do
Take the position first: `head(hidden[:, -1:])`. Models of the library `transformers` take
`logits_to_keep=1`.

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
from selftime.analysis.slice_filters import filter_by_name
from selftime.intervals import length
from selftime.trace import Trace

CODE: Final = """logits = head(hidden[:, -1:])                  # for: head(hidden)[:, -1:]
out = model(prompt, logits_to_keep=1)          # with the library `transformers`"""
"""The position is taken before the product."""

Sizes: TypeAlias = tuple[int, ...]


@rule(covers=("K7",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    wasted = _wasted(trace)
    if limits is None or not wasted.height:
        yield Checked("no product is computed for positions that nothing uses", is_absent=True)
        return
    for place in places(trace, wasted):
        yield limits.judge(_finding(trace, limits, place))


def _wasted(trace: Trace) -> pl.DataFrame:
    """Products of whose result only parts are taken; with `left`, the rows that are used."""
    products = weight_products(trace).drop_nulls("rows")
    products = products.with_columns(result=_results(products))
    if filter_by_name(trace.slices, names.is_backward_node).height:
        products = products.clear()
    users = _users(trace, products["result"].drop_nulls().unique().to_list())
    found = [products.clear().with_columns(left=pl.lit(0, pl.Int64))]
    for (result,), own in products.drop_nulls("result").group_by("result"):
        own_users = users.filter(pl.col("result") == result).sort("start")
        found.append(_used(own.sort("start"), own_users))
    return pl.concat(found).filter(pl.col("left") < pl.col("rows")).sort("start", "id")


def _used(products: pl.DataFrame, users: pl.DataFrame) -> pl.DataFrame:
    """Each product with the rows that its users take, all if one of them takes all, or none is.

    A result is used between its product and the next of the same sizes.
    """
    done = (products["start"] + products["duration"]).to_numpy()
    at = np.searchsorted(done, users["start"].to_numpy(), side="right") - 1
    share = np.zeros(products.height)
    np.add.at(share, at[at >= 0], users["share"].to_numpy()[at >= 0])
    share[share == 0] = 1.0
    rows = products["rows"].to_numpy()
    left = np.ceil(np.minimum(share, 1.0) * rows).astype(np.int64)
    return products.with_columns(left=pl.Series(left, dtype=pl.Int64))


def _results(products: pl.DataFrame) -> pl.Series:
    """The sizes of each result as text; null for a matrix, whose rows may be anything."""
    texts = products.select("shapes", "columns").unique()
    rows = [
        (text, columns, str((*first[:-1], columns)))
        for text, columns in texts.iter_rows()
        if len(first := _sizes(text)[0]) > 2
    ]
    schema = {"shapes": pl.String, "columns": pl.Int64, "result": pl.String}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    told = products.join(table, on=["shapes", "columns"], how="left", maintain_order="left")
    return told["result"]


def _users(trace: Trace, results: list[str]) -> pl.DataFrame:
    """Operators that take tensors of these sizes: start, result, and the share that they use."""
    asked = trace.op_args.select(
        "id",
        shapes=pl.col("input_shapes").cast(pl.String),
        told=pl.col("concrete_inputs").cast(pl.String),
    )
    found = outermost_operators(trace).select("id", "start", pl.col("name").cast(pl.String))
    found = found.join(asked, on="id", maintain_order="left").drop_nulls("shapes")
    kinds = found.select("name", "shapes", "told").unique()
    wanted = set(results)
    rows = [
        (name, shapes, told, str(sizes), _share(name, sizes, told))
        for name, shapes, told in kinds.iter_rows()
        for sizes in set(_sizes(shapes))
        if str(sizes) in wanted
    ]
    keys = dict.fromkeys(("name", "shapes", "told", "result"), pl.String)
    table = pl.DataFrame(rows, schema={**keys, "share": pl.Float64}, orient="row")
    return found.join(table, on=["name", "shapes", "told"], nulls_equal=True)


def _share(name: str, sizes: Sizes, told: str | None) -> float:
    """How much of a tensor an operator uses; a conversion uses as much as what follows it.

    >>> _share("aten::select", (2, 7, 64), '["","1","-1"]')
    0.14285714285714285
    >>> _share("aten::slice", (2, 8, 64), '["","1","-2","9223372036854775807","1"]')
    0.25
    >>> _share("aten::select", (2, 7, 64), '["","2","0"]'), _share("aten::to", (2, 7, 64), None)
    (1.0, 0.0)
    """
    if names.is_conversion(name):
        return 0.0
    if not names.selects_part(name):
        return 1.0
    try:
        numbers = [int(value) for value in json.loads(told or "")[1:]]
        size = sizes[numbers[0]]
    except (ValueError, TypeError, IndexError):
        return 1.0
    if numbers[0] in {-1, len(sizes) - 1}:
        return 1.0
    if name == "aten::select":
        return 1 / size
    begin, end, _ = slice(*numbers[1:4]).indices(size)
    return max(end - begin, 0) / size


def _finding(trace: Trace, limits: Gate, place: Place) -> Finding:
    steps = steps_counted(trace)
    left, rows = (place.slices[name].to_numpy() for name in ("left", "rows"))
    work = launched_during(trace, place.times)["id"].cast(pl.Int64).to_numpy()
    keep = float(share_of_rows(left, rows, on_device=bool(work.size)).mean())
    change: Change = Scale(work, keep) if work.size else Cut(place.times, keep)
    most: Change = Scale(work) if work.size else Cut(place.times)
    spent = limits.typical(length(place.times) / steps / 1e6)
    return Finding(
        title=f"A product has {rows.max()} rows, of which {left[rows.argmax()]} are used",
        where=place.where,
        count_per_step=place.slices.height / steps,
        saving=priced(trace, limits, change, most=(most,)),
        confidence="high",
        evidence=(
            Evidence("host time of the products", spent, "ms", place.events()),
            Evidence("rows that are used", float(left.sum() / rows.sum()), "ratio"),
        ),
        fix=Fix("Take the position that is used, and then multiply.", CODE),
        changes=(change,),
    )


def _sizes(text: str) -> list[Sizes]:
    """The sizes of the tensors among the inputs, of which there is at least an empty one."""
    try:
        found = [tuple(int(n) for n in one) for one in json.loads(text) if isinstance(one, list)]
    except (ValueError, TypeError):
        found = []
    return found or [()]
