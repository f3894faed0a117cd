"""Attention runs as products and a softmax of their own.

## What it means
Scores are computed by one product of matrices, scaled, masked, put through a softmax, and
multiplied with the values by a second product: the scores of every query with every key are written
to memory and read again between each two of these operators.

## Why it costs
The scores have S x S numbers for a sequence of S, for each head. Passes over them take more time
than the products as soon as S is some hundreds, and they are kept for the backward pass.

## What to do
Call `torch.nn.functional.scaled_dot_product_attention`, which keeps the scores on chip. Where it is
called and still runs as a chain (its *math* backend), make it eligible for a fused one: a mask of
the queries' dtype, `is_causal=True` for a dense causal mask, no head wider than 256. Where the
weights themselves are wanted, leave it.

## Fires on
A softmax over what a product made, with a second product after it.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | qmxxxvaaaaqmxxxvaaaaqmxxxvaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    q = aten::bmm; input_shapes = [[8,512,64],[8,64,512]]; line = attend.py:5 forward
    m = aten::mul; input_shapes = [[2,4,512,512],[]]; line = attend.py:5 forward
    x = aten::_softmax; input_shapes = [[2,4,512,512],[],[]]; line = attend.py:6 forward
    v = aten::bmm; input_shapes = [[8,512,512],[8,512,64]]; line = attend.py:7 forward
    a = aten::addmm; input_shapes = [[64],[1024,64],[64,64]]

On a device that works all the time.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | qxvaqxvaqxva
    call 1 | qxvaqxvaqxva
    gpu 7  |  qxxxxvaaaqxxxxvaaaqxxxxvaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    q = aten::bmm; input_shapes = [[8,512,64],[8,64,512]]
    x = aten::_softmax; input_shapes = [[2,4,512,512],[],[]]
    v = aten::bmm; input_shapes = [[8,512,512],[8,512,64]]
    a = aten::addmm; input_shapes = [[64],[1024,64],[64,64]]

## Silent on
The fused operator.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ffffffaaaaffffffaaaaffffffaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = aten::_scaled_dot_product_flash_attention_for_cpu; input_shapes = [[2,4,512,64]]
    a = aten::addmm; input_shapes = [[64],[1024,64],[64,64]]

A softmax over classes, which is no attention.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | aaxxxxxbbbaaxxxxxbbbaaxxxxxbbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[512,64],[64,1000]]
    x = aten::_softmax; input_shapes = [[512,1000],[],[]]
    b = aten::mm; input_shapes = [[64,512],[512,1000]]

Short sequences: the scores stay in a cache.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | qqxxxvaaaaqqxxxvaaaaqqxxxvaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    q = aten::bmm; input_shapes = [[8,32,64],[8,64,32]]
    x = aten::_softmax; input_shapes = [[2,4,32,32],[],[]]
    v = aten::bmm; input_shapes = [[8,32,32],[8,32,64]]
    a = aten::addmm; input_shapes = [[64],[1024,64],[64,64]]
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, Where, rule
from selftime.advice.detectors.changes import change
from selftime.advice.detectors.counted_steps import is_under, steps_recorded
from selftime.advice.detectors.operators import recorded_operators, sizes, with_backward
from selftime.advice.detectors.places import by_line
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import replay_of
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

SHORTEST: Final = 128
"""Of shorter sequences the scores of a head (128 x 128 floats, 64 KiB) stay in a core's cache."""

PRODUCTS: Final = frozenset({"aten::bmm", "aten::baddbmm", "aten::mm", "aten::addmm"})
"""Operators that multiply; what wraps them (`matmul`) runs them within."""

SOFTMAX: Final = frozenset({"aten::_softmax", "aten::_safe_softmax"})
"""Operators that normalise the scores."""

MATH: Final = "aten::_scaled_dot_product_attention_math"
"""The operator that runs attention as a chain where no fused one is eligible."""

CODE: Final = """out = torch.nn.functional.scaled_dot_product_attention(
    q, k, v, attn_mask=mask)   # or is_causal=True; q, k, v: (batch, heads, length, width)"""
"""How fused attention is called."""


@rule(covers=("E4", "E5"), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    operators = recorded_operators(trace)
    chains = _chains(operators)
    if limits is None or not chains.height:
        yield Checked("no attention runs as a chain of operators", is_absent=True)
        return
    scores = _of_scores(operators, chains)
    whose = filter_by_name(operators, MATH.__eq__)
    for place, softmax in by_line(trace, chains):
        parts = _Parts(trace, scores, softmax)
        saving = priced(trace, limits, parts.cut, most=(parts.all,))
        is_math = bool(is_under(softmax, whose).all())
        yield limits.judge(_finding(trace, softmax, parts, saving, place, is_math=is_math))


class _Parts:
    """What fused attention changes of the chains of one line."""

    def __init__(self, trace: Trace, scores: pl.DataFrame, softmax: pl.DataFrame) -> None:
        chosen = scores.join(softmax.select(chain="id"), on="chain", how="semi")
        products = filter_by_name(chosen, PRODUCTS.__contains__)
        between = chosen.join(products.select("id"), on="id", how="anti")
        self.cut = change(trace, with_backward(trace, between), 0.0)
        self.all = change(trace, with_backward(trace, chosen), 0.0)
        replay = replay_of(trace)
        self.spent_ms = replay.saving(self.all) / 1e6


def _chains(operators: pl.DataFrame) -> pl.DataFrame:
    """Softmaxes between two products: the operator, the begin of the first, the end of the last.

    Scores are sums over the width of a head, which is no longer than the sequence. Where the first
    product sums over more it is a layer, and the softmax one over classes or features.
    """
    softmax = _with_sizes(filter_by_name(operators, SOFTMAX.__contains__), _scores)
    products = _with_sizes(filter_by_name(operators, PRODUCTS.__contains__), _product)
    long = pl.min_horizontal("rows", "columns") >= SHORTEST
    softmax = softmax.filter(long & (pl.col("end") > pl.col("start")))
    first = products.select("track", "rows", "columns", "start", begin="start", summed="inner")
    used = products.select("track", "start", rows="rows", columns="inner", done="end")
    keys = ["track", "rows", "columns"]
    found = softmax.sort("start").join_asof(
        first.sort("start"), on="start", by=keys, strategy="backward", check_sortedness=False
    )
    found = found.join_asof(
        used.sort("start"), on="start", by=keys, strategy="forward", check_sortedness=False
    )
    scored = pl.col("begin").is_not_null() & (pl.col("summed") <= pl.col("columns"))
    return found.filter(scored & pl.col("done").is_not_null())


def _with_sizes(operators: pl.DataFrame, read: Any) -> pl.DataFrame:
    """With the columns rows, columns and inner, of those whose shapes tell them."""
    texts = operators["input_shapes"].cast(pl.String)
    told = texts.unique().drop_nulls().to_list()
    kinds = dict.fromkeys(("rows", "columns", "inner"), pl.Int64)
    rows = [(text, *found) for text in told if (found := read(sizes(text)))]
    table = pl.DataFrame(rows, schema={"shapes": pl.String, **kinds}, orient="row")
    return operators.with_columns(shapes=texts).join(
        table, on="shapes", how="inner", maintain_order="left"
    )


def _scores(shapes: list[tuple[int, ...]]) -> tuple[int, int, int] | None:
    return (*shapes[0][-2:], 0) if shapes and len(shapes[0]) > 1 else None  # type: ignore[return-value]  # two sizes


def _product(shapes: list[tuple[int, ...]]) -> tuple[int, int, int] | None:
    """Rows and columns of the result, and the length of what is summed."""
    matrices = [shape for shape in shapes if len(shape) > 1][-2:]
    if len(matrices) < 2 or matrices[0][-1] != matrices[1][-2]:
        return None
    return matrices[0][-2], matrices[1][-1], matrices[0][-1]


def _of_scores(operators: pl.DataFrame, chains: pl.DataFrame) -> pl.DataFrame:
    """Operators between the ends of each chain that take or make its scores; `chain` is whose."""
    spans = chains.select("track", "rows", "columns", "done", chain="id", start="begin")
    placed = operators.sort("start").join_asof(
        spans.sort("start"), on="start", by="track", strategy="backward", check_sortedness=False
    )
    placed = placed.filter(pl.col("chain").is_not_null() & (pl.col("end") <= pl.col("done")))
    placed = placed.with_columns(shapes=pl.col("input_shapes").cast(pl.String))
    keys = ["shapes", "rows", "columns"]
    rows = [
        (text, rows, columns)
        for text, rows, columns in placed.select(keys).unique().drop_nulls("shapes").iter_rows()
        if _touches(sizes(text), rows, columns)
    ]
    wanted = pl.DataFrame(rows, schema=placed.select(keys).schema, orient="row")
    return placed.join(wanted, on=keys, how="semi")


def _touches(shapes: list[tuple[int, ...]], rows: int, columns: int) -> bool:
    made = _product(shapes)
    is_made = made is not None and made[:2] == (rows, columns)
    return is_made or any(shape[-2:] == (rows, columns) for shape in shapes)


def _finding(
    trace: Trace,
    softmax: pl.DataFrame,
    parts: _Parts,
    saving: Saving,
    place: Where,
    *,
    is_math: bool,
) -> Finding:
    rows, columns = softmax.select("rows", "columns").row(0)
    count = softmax.height / steps_recorded(trace)
    what = "The math backend of fused attention runs" if is_math else "Attention runs"
    return Finding(
        covers=("E5",) if is_math else ("E4",),
        title=f"{what} as a chain over {rows} x {columns} scores",
        where=place,
        count_per_step=count,
        saving=saving,
        confidence="high" if place.line is not None else "medium",
        evidence=(
            Evidence("products, softmax and what is between", parts.spent_ms, "ms"),
            Evidence("queries", rows, "count"),
            Evidence("keys", columns, "count"),
        ),
        fix=_fix(is_math=is_math),
        changes=(parts.cut,),
    )


def _fix(*, is_math: bool) -> Fix:
    if is_math:
        text = (
            "Make the call eligible for a fused backend: a mask of the queries' dtype or none, "
            "`is_causal=True` for a causal mask, heads no wider than 256, half precision on a GPU."
        )
        return Fix(text, CODE)
    text = (
        "Call the fused operator, which never writes the scores; leave it where the attention "
        "weights themselves are wanted."
    )
    return Fix(text, CODE)
