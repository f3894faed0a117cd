"""Finds matrix products on the CPU by a matrix of zeros of which few elements were written.

A recording does not say at which indices `index_put_` writes. The operators within it do say how
many: it views the tensor in the sizes of its indices.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.pattern_matrices import (
    OPERATOR_ARGUMENTS,
    RecordedCall,
    multiplied_tensors,
    parsed_call,
    without_order,
)
from selftime.analysis.models import RecordedOperatorCall, RecordedTensor, UnknownOperatorArgument
from selftime.analysis.slice_filters import filter_by_name
from selftime.names.pattern_matrices import writes_at_indices
from selftime.trace import Trace

MAX_WRITTEN_SHARE: Final = 0.02
"""Largest share of a matrix's elements that are written for a sparse product to be faster: with 2 %
it took 0.6 of the time of a dense one, with 10 % 1.3 times."""

MAX_MATRIX_OPERATORS_UNTIL_PRODUCT: Final = 16
"""Largest number of operators on matrices from the one that writes to the product."""

_MATRIX_OPERATORS_BACK_TO_ZEROS: Final = 3
_HAS_MATRIX: Final = r"\[\d+,\d"
"""A pattern of recorded sizes in which a tensor has two dimensions or more."""


@dataclass(frozen=True, slots=True)
class ScatteredProduct:
    """A product by a matrix of zeros with few others: ids of operators, and what it multiplies."""

    written: int
    """The largest number of elements that are not zero."""
    makers: tuple[int, ...]
    """The operators that make, write and scale the matrix."""
    product: int
    matrix: RecordedTensor
    other: RecordedTensor
    is_matrix_used_again: bool


def scattered_products(trace: Trace, operators: pl.DataFrame) -> list[ScatteredProduct]:
    """Returns the products among the outermost operators, which are in order of thread and time."""
    if trace.device_args.height:
        return []
    called = operators["name"].to_list()
    if not any(map(writes_at_indices, called)):
        return []
    written = _written_elements(trace)
    is_zeros = pl.Series([names.makes_zeros(name) for name in called], dtype=pl.Boolean)
    has_matrix = operators["input_shapes"].str.contains(_HAS_MATRIX).fill_null(value=False)
    table = operators.filter(has_matrix | is_zeros)
    calls = [parsed_call(*row) for row in table.select("name", *OPERATOR_ARGUMENTS).iter_rows()]
    ids, tracks = table["id"].to_list(), table["track"].to_list()
    found: list[ScatteredProduct] = []
    for at in [one for one, call in enumerate(calls) if writes_at_indices(call.name)]:
        first = max(at - _MATRIX_OPERATORS_BACK_TO_ZEROS, 0)
        last = at + 1 + MAX_MATRIX_OPERATORS_UNTIL_PRODUCT
        near = [one for one in range(first, min(last, len(ids))) if tracks[one] == tracks[at]]
        around = [(ids[one], calls[one]) for one in near]
        found.extend(_product_by_written_zeros(around, near.index(at), written.get(ids[at])))
    return found


def _written_elements(trace: Trace) -> dict[int, int]:
    """Returns for each operator that writes at lists of indices how many elements it writes."""
    host = trace.slices.select("id", "name", "parent", "start")
    inner = filter_by_name(host, lambda name: name == "aten::_index_put_impl_")
    views = filter_by_name(host, lambda name: name == "aten::as_strided")
    views = views.join(inner.select(parent="id", outer="parent"), on="parent").sort("start")
    sizes = trace.op_args.select("id", pl.col("concrete_inputs").cast(pl.String))
    views = views.join(sizes, on="id").unique("outer", keep="first")
    rows = views.select("outer", "concrete_inputs").drop_nulls().iter_rows()
    return {outer: count for outer, text in rows if (count := _viewed_elements(text)) is not None}


def _viewed_elements(concrete_inputs: str) -> int | None:
    """Returns the number of elements of a view, whose second argument are its sizes.

    >>> _viewed_elements('["","[3626]","[0]",""]'), _viewed_elements("[]")
    (3626, None)
    """
    try:
        sizes = RecordedOperatorCall("[]", None, concrete_inputs).value(1)
    except (UnknownOperatorArgument, ValueError):
        return None
    is_known = isinstance(sizes, list) and all(type(size) is int for size in sizes)
    return prod(sizes) if is_known else None


def _product_by_written_zeros(
    around: list[tuple[int, RecordedCall]], at: int, written: int | None
) -> Iterator[ScatteredProduct]:
    """Yields the product that takes the matrix into which the operator at a position writes."""
    operator, call = around[at]
    sizes = call.tensors[0].shape if call.tensors else ()
    zeros = [one for one, before in around[:at] if _makes_zeros_of(before, sizes)]
    if names.writes_one_value(call.name):
        written = call.tensors[1].elements if len(call.tensors) > 1 else None
    if not zeros or written is None or written > MAX_WRITTEN_SHARE * prod(sizes):
        return
    makers, again = [zeros[-1], operator], False
    for one, later in around[at + 1 :]:
        taken = later.takes({without_order(sizes)})
        operands = multiplied_tensors(later)
        if not taken:
            continue
        matrix = next((t for t in operands if without_order(t.shape) == without_order(sizes)), None)
        if matrix is not None:
            other = next(t for t in operands if t is not matrix)
            yield ScatteredProduct(written, tuple(makers), one, matrix, other, again)
            return
        if _is_zero_where(later, taken[0]):
            makers.append(one)
        elif names.reduces_pairs(later.name):
            again = True
        else:
            return


def _makes_zeros_of(call: RecordedCall, sizes: tuple[int, ...]) -> bool:
    if not names.makes_zeros(call.name):
        return False
    if call.tensors:
        return bool(call.tensors[0].shape == sizes)
    try:
        return bool(call.arguments.value(0) == list(sizes))
    except UnknownOperatorArgument:
        return False


def _is_zero_where(call: RecordedCall, matrix: RecordedTensor) -> bool:
    """Returns whether a result is zero where the matrix is: it keeps or scales the elements."""
    if names.keeps_elements(call.name):
        return True
    if not call.name.startswith(("aten::mul", "aten::div")) or not names.is_arithmetic(call.name):
        return False
    others = [tensor for tensor in call.tensors if tensor is not matrix]
    is_scaled = all(tensor.elements < matrix.elements for tensor in others)
    return is_scaled and call.tensors[0] is matrix
