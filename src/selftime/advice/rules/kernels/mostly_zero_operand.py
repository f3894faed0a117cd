"""A matrix product multiplies by a matrix of zeros, such as one-hot rows.

## What it means
`torch.diag(v)`, `torch.eye(n)` or `F.one_hot(labels)` makes a matrix of which each row has one
element that is not zero, and a product multiplies by all of them.

In the trace: an operator that makes such a matrix, and a product that is the first to take a tensor
of its sizes, but for operators that convert, transpose or scale it. A recording names no tensors:
where both matrices of the product have these sizes and the next operator adds two tensors of them,
the rule is silent.

## Why it costs
A product by a diagonal of n elements takes n times as many operations as multiplying by the vector.
One-hot rows read a whole table for each index, and as a matrix they may take gigabytes.

## What to do
- A diagonal: multiply by the vector, `x * v` for `x @ torch.diag(v)`, and `v[:, None] * x` for
  `torch.diag(v) @ x`.
- One-hot rows: look up, `F.embedding(labels, table)` or `table[labels]`. Transposed they sum by
  index: `torch.zeros(classes, width).index_add_(0, labels, x)`.
- An identity: leave it out.

The estimate gives the products, and those of their gradients, the time in which this machine moves
the other matrix and the result, and removes what made the matrix if nothing may take it later.

## Fires on
A product by a diagonal.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | admmmmmmmraDmmmmmmmr
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear; input_shapes = [[512,64],[64,64]]; input_types = ["float","float"]
    d = aten::diag_embed; input_shapes = [[64],[],[],[]]; input_types = ["float","Scalar","Scalar","Scalar"]; concrete_inputs = ["","0","-2","-1"]; line = net.py:8 forward
    D = aten::diag_embed; input_shapes = [[64],[],[],[]]; input_types = ["float","Scalar","Scalar","Scalar"]; concrete_inputs = ["","0","-2","-1"]; line = net.py:8 forward
    m = aten::matmul; input_shapes = [[512,64],[64,64]]; input_types = ["float","float"]; line = net.py:9 forward
    r = aten::relu; input_shapes = [[512,64]]; input_types = ["float"]

One-hot rows by a table.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | ohcmmmmmmrohcmmmmmmr
    s = ProfilerStep#1
    t = ProfilerStep#2
    o = aten::relu; input_shapes = [[512,64]]; input_types = ["float"]
    h = aten::one_hot; input_shapes = [[512],[]]; input_types = ["long int","Scalar"]; concrete_inputs = ["","900"]; line = net.py:8 forward
    c = aten::to; input_shapes = [[512,900],[],[],[],[]]; input_types = ["long int","Scalar","Scalar","Scalar",""]; line = net.py:8 forward
    m = aten::matmul; input_shapes = [[512,900],[900,64]]; input_types = ["float","float"]; line = net.py:9 forward
    r = aten::relu; input_shapes = [[512,64]]; input_types = ["float"]

## Silent on
A diagonal that is added.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | admmmmmmmpadmmmmmmmp
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
    d = aten::diag_embed; input_shapes = [[64],[],[],[]]; input_types = ["float","Scalar","Scalar","Scalar"]; concrete_inputs = ["","0","-2","-1"]; line = net.py:8 forward
    m = aten::matmul; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]; line = net.py:9 forward
    p = aten::add; input_shapes = [[64,64],[64,64],[]]; input_types = ["float","float","Scalar"]

One-hot rows by which a loss multiplies.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | ahcppmmmmmahcppmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::relu; input_shapes = [[512,64]]; input_types = ["float"]
    h = aten::one_hot; input_shapes = [[512],[]]; input_types = ["long int","Scalar"]; concrete_inputs = ["","900"]
    c = aten::to; input_shapes = [[512,900],[],[],[],[]]; input_types = ["long int","Scalar","Scalar","Scalar",""]
    p = aten::mul; input_shapes = [[512,900],[512,900]]; input_types = ["float","float"]
    m = aten::matmul; input_shapes = [[512,900],[900,64]]; input_types = ["float","float"]
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from math import prod
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.attained_rates import moving_ns
from selftime.advice.detectors.counted_operators import with_backward_operators
from selftime.advice.detectors.counted_steps import counted_step_count
from selftime.advice.detectors.elementwise_operators import operator_ms_per_step
from selftime.advice.detectors.operator_changes import change_shortening_operators
from selftime.advice.detectors.pattern_matrices import PatternProduct, pattern_products
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.trace import Trace

MIN_PRODUCT_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step in such products, and in making their matrices, to report."""

SLOW_ACCESS_FACTOR: Final = 3.0
"""How many times as long as a copy of as many bytes the lower end takes look-ups and sums by index
to be: rows of a few elements come from all over the table."""

_DEFAULT_ELEMENT_BYTES: Final = 4
"""Bytes of an element whose dtype a list of inputs does not tell; it is mostly float32."""

TITLES_BY_PATTERN: Final = {
    "diagonal": "A product multiplies by a diagonal matrix",
    "identity": "A product multiplies by an identity matrix",
    "one_hot": "A product multiplies by one-hot rows",
}
"""For each pattern of a matrix: what a message says of a product with it."""

FIXES_BY_PATTERN: Final = {
    "diagonal": Fix(
        "Multiply by the vector, which broadcasts over rows or columns.",
        "y = x * v           # for: x @ torch.diag(v)\n"
        "y = v[:, None] * x  # for: torch.diag(v) @ x",
    ),
    "identity": Fix(
        "Leave out the product: its result is the other matrix.", "y = x  # for: x @ torch.eye(n)"
    ),
    "one_hot": Fix(
        "Look the rows up by their index; of the transposed matrix, add rows by their index.",
        "y = F.embedding(labels, table)  # for: one_hot(labels) @ table\n"
        "s = x.new_zeros(n, x.shape[1])  # for: one_hot(labels).T @ x\n"
        "s.index_add_(0, labels, x)",
    ),
}
"""For each pattern of a matrix: what replaces the product."""


@rule(covers=("E15",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    operators, found = pattern_products(trace)
    if step_stats is None or not found:
        yield Checked(
            "no product takes a diagonal, an identity or one-hot rows that were just made",
            is_absent=True,
        )
        return
    at = pl.Series([one.product for one in found], dtype=pl.UInt32)
    products = operators[at].with_columns(at=pl.int_range(at.len()))
    for where, of_line in operators_by_line(trace, products):
        same = [found[one] for one in of_line["at"].to_list()]
        multiplied = with_backward_operators(trace, _with_sums(operators, same, of_line))
        made = operators[sorted({row for one in same for row in (one.maker, *one.carriers)})]
        both = pl.concat([multiplied, made.select(multiplied.columns)]).unique("id").sort("start")
        spent = operator_ms_per_step(trace, both)
        if spent < MIN_PRODUCT_SHARE_OF_STEP * step_stats.step_ms:
            least = f"{MIN_PRODUCT_SHARE_OF_STEP:.0%}"
            text = f"products by matrices that are mostly zeros take less than {least} of the step"
            yield Checked(text, spent, is_slowed=not trace.device_args.height)
        else:
            yield _finding(trace, same, of_line, multiplied, made, where)


def _with_sums(
    operators: pl.DataFrame, found: list[PatternProduct], products: pl.DataFrame
) -> pl.DataFrame:
    """Returns the products, and the operators that add up those that only repeat the matrix."""
    sums = operators[sorted({one.sum for one in found if one.sum is not None})]
    return pl.concat([products.select(sums.columns), sums])


def _finding(
    trace: Trace,
    found: list[PatternProduct],
    products: pl.DataFrame,
    multiplied: pl.DataFrame,
    made: pl.DataFrame,
    where: Where,
) -> Finding:
    recorded_ns = operator_ms_per_step(trace, products) * counted_step_count(trace) * 1e6
    needed_ns = sum(moving_ns(trace, _needed_bytes(one)) for one in found)
    kept = float(np.clip(needed_ns / max(recorded_ns, 1), 0, 1))
    slow = min(SLOW_ACCESS_FACTOR * kept, 1.0)
    all_made = change_shortening_operators(trace, made, 0.0)
    removed = () if any(one.is_matrix_used_again for one in found) else (all_made,)
    pattern = found[0].pattern
    sizes = " x ".join(map(str, found[0].matrix.shape))
    return Finding(
        title=f"{TITLES_BY_PATTERN[pattern]}, {sizes}",
        where=where,
        count_per_step=products.height / counted_step_count(trace),
        claim=RemovalClaim(
            (change_shortening_operators(trace, multiplied, kept), *removed),
            worst_case_changes=(change_shortening_operators(trace, multiplied, slow),),
            largest_changes=(change_shortening_operators(trace, multiplied, 0.0), all_made),
        ),
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence(
                "time in the products and their gradients",
                operator_ms_per_step(trace, multiplied),
                "ms",
                tuple(products["id"].head(3).to_list()),
            ),
            Evidence("time in making the matrices", operator_ms_per_step(trace, made), "ms"),
            Evidence("share of the products' time that remains", kept, "ratio"),
        ),
        fix=FIXES_BY_PATTERN[pattern],
    )


def _needed_bytes(product: PatternProduct) -> float:
    """Returns the bytes that a look-up, a sum by index or a broadcast reads and writes."""
    other, classes = product.other, max(product.last_size, 1)
    width = names.DTYPE_SIZES_IN_BYTES.get(other.dtype or "", _DEFAULT_ELEMENT_BYTES)
    if product.pattern != "one_hot":
        return 2.0 * other.elements * width
    batch = max(prod(other.shape[:-2]), 1)
    rows = max(product.matrix.elements / classes, 1)
    if classes in other.shape:
        looked_up = rows * other.elements / (classes * batch)
        return (min(other.elements, looked_up) + looked_up) * width
    summed = classes * other.elements * batch / rows
    return (other.elements + 2 * summed) * width
