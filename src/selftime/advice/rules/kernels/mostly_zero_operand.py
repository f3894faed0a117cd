"""A matrix product multiplies by a matrix of zeros, such as one-hot rows.

## What it means
`torch.diag(v)`, `torch.eye(n)` or `F.one_hot(labels)` makes a matrix of which each row has one
element that is not zero, and a product multiplies by all of them. So does a matrix of zeros into
which few elements are written, as the neighbours of each node of a graph.

In the trace: an operator that makes such a matrix, and a product that is the first to take a tensor
of its sizes, but for operators that convert, transpose or scale it. A recording names no tensors:
where both matrices of the product have these sizes and the next operator adds two tensors of them,
the rule is silent. How many elements `index_put_` writes is known by the operators within it; of
zeros with others the rule tells on a CPU alone, and where they are 2 % at most.

## Why it costs
A product by a diagonal of n elements takes n times as many operations as multiplying by the vector.
One-hot rows read a whole table for each index, and as a matrix they may take gigabytes.

## What to do
- A diagonal: multiply by the vector, `x * v` for `x @ torch.diag(v)`, and `v[:, None] * x` for
  `torch.diag(v) @ x`.
- One-hot rows: look up, `F.embedding(labels, table)` or `table[labels]`. Transposed they sum by
  index: `torch.zeros(classes, width).index_add_(0, labels, x)`.
- An identity: leave it out.
- Zeros with few others: a sparse matrix, `torch.sparse_coo_tensor(indices, values, size) @ x`.
  Measured on one core, with making the matrix and the gradient: 749 x 1658 with 0.3 % by 1,433
  columns 41.5 to 7.1 ms, 2708 x 2708 with 0.2 % by 64 columns 24.8 to 1.2 ms, with 1.9 % 26.9 to 9.5
  ms; 1000 x 1000 with 10 % 7.7 to 14.4 ms.

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

The mean of each node's neighbours, by zeros with a 1 for each of them.

    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | ozwqemmmmrozwqemmmmr
    cpu 1  |   i         i
    cpu 1  |   v         v
    s = ProfilerStep#1
    t = ProfilerStep#2
    o = aten::relu; input_shapes = [[900,64]]; input_types = ["float"]
    z = aten::zeros; input_shapes = [[],[],[],[],[]]; concrete_inputs = ["[512, 900]","6","","",""]; line = net.py:8 forward
    w = aten::index_put_; input_shapes = [[512,900],[],[],[]]; input_types = ["float","","float","Scalar"]; line = net.py:9 forward
    i = aten::_index_put_impl_; input_shapes = [[512,900],[],[],[],[]]; input_types = ["float","","float","Scalar","Scalar"]
    v = aten::as_strided; input_shapes = [[512,900],[],[],[]]; concrete_inputs = ["","[2560]","[0]",""]
    q = aten::sum; input_shapes = [[512,900],[],[],[]]; input_types = ["float","ScalarList","Scalar",""]; concrete_inputs = ["","[1]","True",""]
    e = aten::div; input_shapes = [[512,900],[512,1]]; input_types = ["float","float"]
    m = aten::mm; input_shapes = [[512,900],[900,64]]; input_types = ["float","float"]; line = net.py:11 forward
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
from dataclasses import dataclass
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
from selftime.advice.detectors.scattered_matrices import ScatteredProduct, scattered_products
from selftime.advice.detectors.source_lines import operators_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.models import RecordedTensor
from selftime.trace import Trace
from selftime.units import share_text, whole_percent_text

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

SPARSE_PRODUCT_FIX: Final = Fix(
    "Multiply by a sparse matrix of the same indices. It adds the values of equal pairs of "
    "indices: give each pair once. Means over rows are `F.embedding_bag(cols, x, offsets)`.",
    "a = torch.sparse_coo_tensor(torch.stack([rows, cols]), values, (m, n))\n"
    "y = a @ x  # for: zeros = torch.zeros(m, n); zeros[rows, cols] = values",
)
"""What replaces a product by zeros into which few elements were written."""


@rule(covers=("E15",), needs=("operators", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    operators, found = pattern_products(trace)
    known = operators["id"].gather([one.product for one in found]).to_list()
    scattered = [one for one in scattered_products(trace, operators) if one.product not in known]
    if step_stats is None or not (found or scattered):
        yield Checked(
            "no product takes a diagonal, an identity, one-hot rows or zeros with few other "
            "elements that were just made",
            is_absent=True,
        )
        return
    at = pl.Series([one.product for one in found], dtype=pl.UInt32)
    products = operators[at].with_columns(at=pl.int_range(at.len()))
    for where, of_line in operators_by_line(trace, products):
        same = [found[one] for one in of_line["at"].to_list()]
        multiplied = with_backward_operators(trace, _with_sums(operators, same, of_line))
        made = operators[sorted({row for one in same for row in (one.maker, *one.carriers)})]
        operands = _OperandsOfLine(
            f"{TITLES_BY_PATTERN[same[0].pattern]}, {_sizes_text(same[0].matrix)}",
            FIXES_BY_PATTERN[same[0].pattern],
            sum(moving_ns(trace, _needed_bytes(one)) for one in same),
            is_used_again=any(one.is_matrix_used_again for one in same),
        )
        yield _outcome(
            trace, step_stats, operands, _ProductsOfLine(of_line, multiplied, made, where)
        )
    products = operators.filter(pl.col("id").is_in([one.product for one in scattered]))
    for where, of_line in operators_by_line(trace, products):
        ids = set(of_line["id"].to_list())
        same_line = [one for one in scattered if one.product in ids]
        multiplied = with_backward_operators(trace, of_line)
        makers = [maker for one in same_line for maker in one.makers]
        made = operators.filter(pl.col("id").is_in(makers))
        operands = _operands_of_scattered(trace, same_line)
        yield _outcome(
            trace, step_stats, operands, _ProductsOfLine(of_line, multiplied, made, where)
        )


@dataclass(frozen=True, slots=True)
class _OperandsOfLine:
    """What is said of the matrices of zeros that products at a line take."""

    title: str
    fix: Fix
    needed_ns: float
    """About how long what replaces the products takes, without the gradients."""
    is_used_again: bool
    """Whether something else may take a matrix, so that it must be made all the same."""


@dataclass(frozen=True, slots=True)
class _ProductsOfLine:
    """The products at a line, with those of their gradients, and what made their matrices."""

    products: pl.DataFrame
    multiplied: pl.DataFrame
    made: pl.DataFrame
    where: Where


def _operands_of_scattered(trace: Trace, found: list[ScatteredProduct]) -> _OperandsOfLine:
    first = max(found, key=lambda one: one.matrix.elements)
    share = first.written / max(first.matrix.elements, 1)
    return _OperandsOfLine(
        f"A product multiplies by zeros with {share_text(share)} of other elements, "
        f"{_sizes_text(first.matrix)}",
        SPARSE_PRODUCT_FIX,
        sum(moving_ns(trace, _bytes_of_sparse_product(one)) for one in found),
        is_used_again=any(one.is_matrix_used_again for one in found),
    )


def _sizes_text(matrix: RecordedTensor) -> str:
    return " x ".join(map(str, matrix.shape))


def _outcome(
    trace: Trace, step_stats: StepStatistics, operands: _OperandsOfLine, of_line: _ProductsOfLine
) -> Outcome:
    columns = of_line.multiplied.columns
    both = pl.concat([of_line.multiplied, of_line.made.select(columns)]).unique("id").sort("start")
    spent = operator_ms_per_step(trace, both)
    if spent < MIN_PRODUCT_SHARE_OF_STEP * step_stats.step_ms:
        least = whole_percent_text(MIN_PRODUCT_SHARE_OF_STEP)
        text = f"products by matrices that are mostly zeros take less than {least} of the step"
        return Checked(text, spent, is_slowed=not trace.device_args.height)
    return _finding(trace, operands, of_line)


def _with_sums(
    operators: pl.DataFrame, found: list[PatternProduct], products: pl.DataFrame
) -> pl.DataFrame:
    """Returns the products, and the operators that add up those that only repeat the matrix."""
    sums = operators[sorted({one.sum for one in found if one.sum is not None})]
    return pl.concat([products.select(sums.columns), sums])


def _finding(trace: Trace, operands: _OperandsOfLine, of_line: _ProductsOfLine) -> Finding:
    products, multiplied, made = of_line.products, of_line.multiplied, of_line.made
    recorded_ns = operator_ms_per_step(trace, products) * counted_step_count(trace) * 1e6
    kept = float(np.clip(operands.needed_ns / max(recorded_ns, 1), 0, 1))
    slow = min(SLOW_ACCESS_FACTOR * kept, 1.0)
    all_made = change_shortening_operators(trace, made, 0.0)
    removed = () if operands.is_used_again else (all_made,)
    return Finding(
        title=operands.title,
        where=of_line.where,
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
                multiplied["id"].to_numpy(),
            ),
            Evidence(
                "time in making the matrices",
                operator_ms_per_step(trace, made),
                "ms",
                (),
                made["id"].to_numpy(),
            ),
            Evidence("share of the products' time that remains", kept, "ratio"),
        ),
        fix=operands.fix,
    )


def _bytes_of_sparse_product(product: ScatteredProduct) -> float:
    """Returns twice the bytes of the rows that a sparse product reads and of those it writes.

    Half of a copy's rate was measured, with the making of the sparse matrix.
    """
    other, matrix = product.other, product.matrix
    inner = next((size for size in matrix.shape if size in other.shape), 1)
    width = other.elements / max(inner, 1)
    rows = matrix.elements / max(inner, 1)
    element = names.DTYPE_SIZES_IN_BYTES.get(other.dtype or "", _DEFAULT_ELEMENT_BYTES)
    return 2 * (product.written + rows) * width * element


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
