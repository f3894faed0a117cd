"""Attention runs as separate products and a softmax, not one operator.

## What it means
Scores are computed by one product of matrices, scaled, masked, put through a softmax, and
multiplied with the values by a second product: the scores of every query with every key are written
to memory and read again between each two of these operators.

In the trace: a softmax over 128 x 128 numbers or more, between a product whose result has these
sizes and a product that takes them.

## Why it costs
The scores have S x S numbers for a sequence of S, for each head. Passes over them take more time
than the products as soon as S is some hundreds, and they are kept for the backward pass.

## What to do
Call `torch.nn.functional.scaled_dot_product_attention`, which keeps the scores on chip. Where it is
called and still runs as a chain (its *math* backend), make it eligible for a fused one: a mask of
the queries' dtype that needs no gradient, `is_causal=True` for a dense causal mask, no head wider
than 256. Where the weights themselves are wanted, leave it.

On a CPU no fused backend drops out weights. Where scores pass a dropout there, the dropout is the
reason, whatever the mask: only a rate of 0 for the weights of attention makes the call eligible,
and that changes the training.

Where queries and values differ in width, no fused backend of a CPU takes the call, and the rule is
silent there.

The estimate removes the operators between the two products, and their gradients.

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

On a CPU, with dropout of the weights.

    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | qxxxddvaaaqxxxddvaaaqxxxddvaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    q = aten::bmm; input_shapes = [[8,512,64],[8,64,512]]; line = attend.py:5 forward
    x = aten::_softmax; input_shapes = [[2,4,512,512],[],[]]; line = attend.py:6 forward
    d = aten::dropout; input_shapes = [[2,4,512,512],[],[]]; line = attend.py:6 forward
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

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

import polars as pl

from selftime.advice.detectors.counted_operators import (
    operators_in_counted_steps,
    parse_sizes,
    with_backward_operators,
)
from selftime.advice.detectors.counted_steps import begins_within_enclosing, recorded_step_count
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.replay import replay_of
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

MIN_REPORTED_SEQUENCE_LENGTH: Final = 128
"""Shortest sequence to report, in tokens; the scores of a shorter one stay in a cache."""

MATMUL_OPERATORS: Final = frozenset({"aten::bmm", "aten::baddbmm", "aten::mm", "aten::addmm"})
"""Operators that multiply matrices; wrapper operators such as `matmul` call one of these."""

SOFTMAX_OPERATORS: Final = frozenset({"aten::_softmax", "aten::_safe_softmax"})
"""Softmax operators, which normalise attention scores."""

DROPOUT_OPERATORS: Final = frozenset({"aten::dropout", "aten::native_dropout", "aten::bernoulli_"})
"""Operators that drop out attention weights."""

ATTENTION_MATH_BACKEND_OPERATOR: Final = "aten::_scaled_dot_product_attention_math"
"""Operator that runs attention as a chain of operators if no fused backend is eligible."""

FUSED_ATTENTION_FIX_CODE: Final = """out = torch.nn.functional.scaled_dot_product_attention(
    q, k, v, attn_mask=mask)  # or is_causal=True
# q, k, v: (batch, heads, length, width)"""
"""Example code of the fix: a call of fused attention."""

ATTENTION_WITHOUT_DROPOUT_FIX_CODE: Final = """\
attend = torch.nn.functional.scaled_dot_product_attention
out = attend(q, k, v, attn_mask=mask, dropout_p=0.0)
# torch.nn.MultiheadAttention(..., dropout=0.0)
# call it with need_weights=False"""
"""Example code of the fix on a CPU, where no fused backend drops out weights."""


@rule(covers=("E4", "E5"), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    operators = operators_in_counted_steps(trace)
    chains = _softmaxes_of_unfused_attention(operators)
    if limits is None or not chains.height:
        yield Checked("no attention runs as a chain of operators", is_absent=True)
        return
    if not trace.device_args.height:
        chains = chains.filter(pl.col("summed") == pl.col("value_width"))
    if not chains.height:
        yield Checked("queries and values differ in width, which no fused form on a CPU takes")
        return
    scores = _operators_on_attention_scores(operators, chains)
    math_calls = filter_by_name(operators, ATTENTION_MATH_BACKEND_OPERATOR.__eq__)
    for location, softmaxes in operators_by_line(trace, chains):
        changes = _FusedAttentionChanges(trace, scores, softmaxes)
        is_math = bool(begins_within_enclosing(softmaxes, math_calls).all())
        yield _finding(trace, softmaxes, changes, location, is_math_backend=is_math)


class _FusedAttentionChanges:
    """Simulated changes if one source line used fused attention, and its attention time in ms."""

    def __init__(
        self, trace: Trace, score_operators: pl.DataFrame, softmaxes: pl.DataFrame
    ) -> None:
        chain_operators = score_operators.join(softmaxes.select(chain="id"), on="chain", how="semi")
        products = filter_by_name(chain_operators, MATMUL_OPERATORS.__contains__)
        between = chain_operators.join(products.select("id"), on="id", how="anti")
        self.cut = change_shortening_operators(trace, with_backward_operators(trace, between), 0.0)
        self.drops_out = bool(
            filter_by_name(chain_operators, DROPOUT_OPERATORS.__contains__).height
        )
        self.all = change_shortening_operators(
            trace, with_backward_operators(trace, chain_operators), 0.0
        )
        replay = replay_of(trace)
        self.spent_ms = replay.saving(self.all) / 1e6


def _softmaxes_of_unfused_attention(operators: pl.DataFrame) -> pl.DataFrame:
    """Returns the softmax operators that, with the matrix products around them, form attention.

    The column `begin` is the start of the first product, `done` the end of the second, in ns.

    Scores are sums over the width of a head, which is no longer than the sequence. Where the first
    product sums over more it is a layer, and the softmax one over classes or features.
    """
    softmaxes = _operators_with_matrix_sizes(
        filter_by_name(operators, SOFTMAX_OPERATORS.__contains__), _softmax_matrix_sizes
    )
    products = _operators_with_matrix_sizes(
        filter_by_name(operators, MATMUL_OPERATORS.__contains__), _matmul_sizes
    )
    long = pl.min_horizontal("rows", "columns") >= MIN_REPORTED_SEQUENCE_LENGTH
    softmaxes = softmaxes.filter(long & (pl.col("end") > pl.col("start")))
    first = products.select("track", "rows", "columns", "start", begin="start", summed="inner")
    used = _products_with_values(products)
    keys = ["track", "rows", "columns"]
    chains = softmaxes.sort("start").join_asof(
        first.sort("start"), on="start", by=keys, strategy="backward", check_sortedness=False
    )
    chains = chains.join_asof(
        used.sort("start"), on="start", by=keys, strategy="forward", check_sortedness=False
    )
    scored = pl.col("begin").is_not_null() & (pl.col("summed") <= pl.col("columns"))
    return chains.filter(scored & pl.col("done").is_not_null())


def _products_with_values(products: pl.DataFrame) -> pl.DataFrame:
    """Returns products by the sizes of scores that they may take, with the width of the values.

    Scores are the first factor, or transposed the second. The column `done` is the end in ns.
    """
    first = products.select(
        "track", "start", "rows", columns="inner", done="end", value_width="columns"
    )
    second = products.select(
        "track", "start", rows="columns", columns="inner", done="end", value_width="rows"
    )
    return pl.concat([first, second])


class _MatrixSizes(NamedTuple):
    """Sizes of a result: rows, columns, and a matrix product's inner size (0 for a softmax)."""

    rows: int
    columns: int
    inner_size: int


def _operators_with_matrix_sizes(
    operators: pl.DataFrame,
    sizes_of_inputs: Callable[[list[tuple[int, ...]]], _MatrixSizes | None],
) -> pl.DataFrame:
    """Returns operators of known matrix sizes, with the columns `rows`, `columns` and `inner`."""
    texts = operators["input_shapes"].cast(pl.String)
    known_texts = texts.unique().drop_nulls().to_list()
    kinds = dict.fromkeys(("rows", "columns", "inner"), pl.Int64)
    rows = [(text, *sizes) for text in known_texts if (sizes := sizes_of_inputs(parse_sizes(text)))]
    table = pl.DataFrame(rows, schema={"shapes": pl.String, **kinds}, orient="row")
    return operators.with_columns(shapes=texts).join(
        table, on="shapes", how="inner", maintain_order="left"
    )


def _softmax_matrix_sizes(input_shapes: list[tuple[int, ...]]) -> _MatrixSizes | None:
    if not input_shapes or len(input_shapes[0]) < 2:
        return None
    return _MatrixSizes(input_shapes[0][-2], input_shapes[0][-1], 0)


def _matmul_sizes(input_shapes: list[tuple[int, ...]]) -> _MatrixSizes | None:
    """Returns rows, columns and inner size of a matrix product; None if they are unknown."""
    matrices = [shape for shape in input_shapes if len(shape) > 1][-2:]
    if len(matrices) < 2 or matrices[0][-1] != matrices[1][-2]:
        return None
    return _MatrixSizes(matrices[0][-2], matrices[1][-1], matrices[0][-1])


def _operators_on_attention_scores(
    operators: pl.DataFrame, attention_softmaxes: pl.DataFrame
) -> pl.DataFrame:
    """Returns the operators that read or write attention scores, with the id of their softmax.

    The column `chain` is the id of the chain's softmax.
    """
    spans = attention_softmaxes.select(
        "track", "rows", "columns", "done", chain="id", start="begin"
    )
    placed = operators.sort("start").join_asof(
        spans.sort("start"), on="start", by="track", strategy="backward", check_sortedness=False
    )
    placed = placed.filter(pl.col("chain").is_not_null() & (pl.col("end") <= pl.col("done")))
    placed = placed.with_columns(shapes=pl.col("input_shapes").cast(pl.String))
    keys = ["shapes", "rows", "columns"]
    rows = [
        (text, rows, columns)
        for text, rows, columns in placed.select(keys).unique().drop_nulls("shapes").iter_rows()
        if _has_attention_score_sizes(parse_sizes(text), rows, columns)
    ]
    wanted = pl.DataFrame(rows, schema=placed.select(keys).schema, orient="row")
    return placed.join(wanted, on=keys, how="semi")


def _has_attention_score_sizes(
    input_shapes: list[tuple[int, ...]], rows: int, columns: int
) -> bool:
    product = _matmul_sizes(input_shapes)
    is_result = product is not None and product[:2] == (rows, columns)
    return is_result or any(shape[-2:] == (rows, columns) for shape in input_shapes)


def _finding(
    trace: Trace,
    softmaxes: pl.DataFrame,
    changes: _FusedAttentionChanges,
    location: Where,
    *,
    is_math_backend: bool,
) -> Finding:
    rows, columns = softmaxes.select("rows", "columns").row(0)
    count = softmaxes.height / recorded_step_count(trace)
    size = f"{rows} x {columns}"
    is_by_dropout = changes.drops_out and not trace.device_args.height
    chain = "The math backend of fused attention" if is_math_backend else "Attention"
    reason = ", with dropout" if is_by_dropout else ""
    return Finding(
        covers=("E5",) if is_math_backend else ("E4",),
        title=f"{chain} runs as a chain over {size} scores{reason}",
        where=location,
        count_per_step=count,
        claim=RemovalClaim((changes.cut,), largest_changes=(changes.all,)),
        confidence="high" if location.line is not None else "medium",
        semantics="training" if is_by_dropout else "numerics",
        evidence=(
            Evidence(
                "time in the products, the softmax and operators between them",
                changes.spent_ms,
                "ms",
            ),
            Evidence("number of queries", rows, "count"),
            Evidence("number of keys", columns, "count"),
        ),
        fix=_fix_of_dropout()
        if is_by_dropout
        else _fused_attention_fix(is_math_backend=is_math_backend),
    )


def _fix_of_dropout() -> Fix:
    return Fix(
        "On a CPU no fused backend drops out weights: call the fused operator, with the dropout of "
        "attention at 0. That changes the training; other dropout may stay.",
        ATTENTION_WITHOUT_DROPOUT_FIX_CODE,
    )


def _fused_attention_fix(*, is_math_backend: bool) -> Fix:
    if is_math_backend:
        text = (
            "Make the call eligible for a fused backend: a mask of the queries' dtype without a "
            "gradient, or none, `is_causal=True` for a causal mask, heads no wider than 256, half "
            "precision on a GPU."
        )
        return Fix(text, FUSED_ATTENTION_FIX_CODE)
    text = (
        "Call the fused operator, which never writes the scores; leave it where the attention "
        "weights themselves are wanted. `nn.MultiheadAttention` calls it with "
        "`need_weights=False`. It divides scores by the root of the width: give `scale=1.0` where "
        "they are not divided."
    )
    return Fix(text, FUSED_ATTENTION_FIX_CODE)
