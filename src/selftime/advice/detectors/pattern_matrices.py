"""Finds matrix products with a matrix of zeros that an operator just made, such as one-hot rows.

A recording names no tensors. That the product takes the matrix is known by its sizes: the first
operator after the one that made it that takes a tensor of these sizes, but for those that convert,
transpose or scale it, is the product.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators
from selftime.analysis.models import (
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
)
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.trace import Trace

MAX_OPERATORS_UNTIL_PRODUCT: Final = 16
"""Largest number of operators from one that makes a matrix to the product that takes it; with more
between, another tensor of the same sizes becomes likely."""

OPERATOR_ARGUMENTS: Final = ("input_shapes", "input_types", "concrete_inputs")
"""The columns of the table of operators that hold their arguments, as text."""

MatrixPattern: TypeAlias = Literal["diagonal", "identity", "one_hot"]
"""Where a matrix that is mostly zeros has its other elements."""

TensorSizes: TypeAlias = tuple[int, ...]

_ONES: Final = ("1", "1.", "1.0", "True")
_OPERATORS_BACK_TO_ZEROS: Final = 3


class RecordedCall(NamedTuple):
    """A recorded operator: the sizes of its tensors, and how to read its other arguments."""

    name: str
    tensors: tuple[RecordedTensor, ...]
    arguments: RecordedOperatorCall

    def takes(self, sizes: set[TensorSizes]) -> list[RecordedTensor]:
        """Returns the tensors that have one of the sizes."""
        return [tensor for tensor in self.tensors if without_order(tensor.shape) in sizes]


@dataclass(frozen=True, slots=True)
class PatternProduct:
    """A product with a matrix of zeros: rows of the table of operators, and what it multiplies."""

    pattern: MatrixPattern
    last_size: int
    """Length of the matrix's last dimension when it was made: of one-hot rows, the classes."""
    maker: int
    carriers: tuple[int, ...]
    """Operators that convert the matrix before it is multiplied."""
    product: int
    matrix: RecordedTensor
    other: RecordedTensor
    is_matrix_used_again: bool
    sum: int | None
    """The next operator, if it takes all products of elements that the product did not add up."""


def without_order(sizes: TensorSizes) -> TensorSizes:
    """Returns sizes that stay as they are when a tensor is transposed or unsqueezed.

    >>> without_order((8, 1, 4))
    (4, 8)
    """
    return tuple(sorted(size for size in sizes if size != 1))


@cached_per_trace
def pattern_products(trace: Trace) -> tuple[pl.DataFrame, list[PatternProduct]]:
    """Returns the outermost operators, in order of thread and time, and the products among them."""
    table = outermost_operators(trace).sort("track", "start", "id")
    table = slices_with_arguments(trace, "op_args", table, *OPERATOR_ARGUMENTS)
    table = table.with_columns(pl.col("name", *OPERATOR_ARGUMENTS).cast(pl.String))
    table = table.with_columns(end=pl.col("start") + pl.col("duration"))
    makers = [
        names.makes_diagonal_matrix(name)
        or names.makes_identity_matrix(name)
        or names.makes_one_hot_rows(name)
        or names.writes_one_value(name)
        for name in table["name"].to_list()
    ]
    return table, [
        product
        for at in np.flatnonzero(makers).tolist()
        for product in _products_with_matrix_made_at(table, at)
    ]


def _products_with_matrix_made_at(table: pl.DataFrame, at: int) -> Iterator[PatternProduct]:
    track = table["track"][at]
    first = max(at - _OPERATORS_BACK_TO_ZEROS, 0)
    near = table[first : at + MAX_OPERATORS_UNTIL_PRODUCT].filter(pl.col("track") == track)
    calls = [parsed_call(*row) for row in near.select("name", *OPERATOR_ARGUMENTS).iter_rows()]
    place = near["id"].index_of(table["id"][at])
    made = None if place is None else made_matrix(calls[: place + 1])
    if made is None or place is None:
        return
    pattern, sizes = made
    found, again = _first_product(calls[place + 1 :], sizes)
    if found is None:
        return
    carriers, product, matrix, other = found
    yield PatternProduct(
        pattern,
        sizes[-1],
        at,
        tuple(at + 1 + carrier for carrier in carriers),
        at + 1 + product,
        matrix,
        other,
        again,
        at + 2 + product if _takes_unsummed(calls[place + 2 + product :], matrix) else None,
    )


def _takes_unsummed(calls: list[RecordedCall], matrix: RecordedTensor) -> bool:
    """Returns whether the first operator takes the matrix with one more dimension."""
    return bool(calls and calls[0].tensors) and (calls[0].tensors[0].shape[:-1] == matrix.shape)


_Found: TypeAlias = tuple[tuple[int, ...], int, RecordedTensor, RecordedTensor]


def _first_product(calls: list[RecordedCall], sizes: TensorSizes) -> tuple[_Found | None, bool]:
    """Returns the product that takes the made matrix first, and whether others take it later.

    None if another operator does so. Where both matrices of the product have the sizes, and the
    next operator adds two tensors of them, the made matrix may be one of those.
    """
    alive, carriers, found = {without_order(sizes)}, [], None
    for at, call in enumerate(calls):
        taken = call.takes(alive)
        if not taken:
            continue
        if _keeps_pattern(call):
            alive |= {without_order(size) for size in _result_sizes(call, taken[0])}
            if found is None:
                carriers.append(at)
            continue
        if found is not None:
            is_other = names.is_arithmetic(call.name) and len(taken) > 1
            both = without_order(found[3].shape) in alive
            return (None if is_other and both else found), True
        operands = multiplied_tensors(call)
        matrix = next((one for one in operands if without_order(one.shape) in alive), None)
        if matrix is None:
            return None, False
        other = next(one for one in operands if one is not matrix)
        found = (tuple(carriers), at, matrix, other)
    return found, False


def _keeps_pattern(call: RecordedCall) -> bool:
    """Returns whether an operator's result is zero where the matrix is."""
    scales = names.is_arithmetic(call.name) and call.name.startswith(("aten::mul", "aten::div"))
    return names.keeps_elements(call.name) or (
        scales and sum(bool(tensor.shape) for tensor in call.tensors) == 1
    )


def _result_sizes(call: RecordedCall, taken: RecordedTensor) -> tuple[TensorSizes, ...]:
    """Returns the sizes that a view is asked for; () if its elements keep their order or sizes."""
    try:
        asked = call.arguments.optional_value_argument(1)
    except UnknownOperatorArgument:
        return ()
    if not isinstance(asked, list) or not all(isinstance(size, int) for size in asked):
        return ()
    known = prod(size for size in asked if size > 0)
    sizes = tuple(size if size > 0 else taken.elements // max(known, 1) for size in asked)
    return (sizes,) if prod(sizes) == taken.elements else ()


def multiplied_tensors(call: RecordedCall) -> tuple[RecordedTensor, ...]:
    """Returns the two tensors that a product multiplies; () of an operator that is none."""
    if not names.multiplies_two_matrices(call.name):
        return ()
    skipped = 1 if names.adds_first_input(call.name) else 0
    operands = call.tensors[skipped : skipped + 2]
    return operands if len(operands) == 2 else ()


def made_matrix(calls: list[RecordedCall]) -> tuple[MatrixPattern, TensorSizes] | None:
    """Returns pattern and sizes of the matrix that the last operator made; None if it made none."""
    call = calls[-1]
    try:
        if names.makes_identity_matrix(call.name):
            return "identity", _identity_sizes(call.arguments)
        given = call.tensors[0].shape if call.tensors else ()
        if names.makes_one_hot_rows(call.name):
            classes = call.arguments.number(1)
            return ("one_hot", (*given, classes)) if classes > 0 else None
        if names.makes_diagonal_matrix(call.name):
            is_vector = call.name == "aten::diag_embed" or len(given) == 1
            is_main = call.arguments.optional_value_argument(1) == 0
            return ("diagonal", (*given, given[-1])) if given and is_vector and is_main else None
        return _scattered_one_hot(calls)
    except UnknownOperatorArgument:
        return None


def _identity_sizes(arguments: RecordedOperatorCall) -> TensorSizes:
    """Returns the sizes of `eye`, whose arguments are one or two sizes, and four others."""
    rows = arguments.number(0)
    has_columns = len(arguments.arguments) > 5
    return rows, arguments.number(1) if has_columns else rows


def _scattered_one_hot(calls: list[RecordedCall]) -> tuple[MatrixPattern, TensorSizes] | None:
    """Returns sizes of zeros into each row of which the last operator wrote one 1; else None."""
    call = calls[-1]
    given, dim, indices = (
        call.arguments.tensor_argument(0),
        call.arguments.number(1),
        call.arguments.tensor_argument(2),
    )
    is_one = str(call.arguments.value(3)) in _ONES
    is_zero = any(names.makes_zeros(one.name) for one in calls[:-1])
    if not is_one or not is_zero or not -len(given.shape) <= dim < len(given.shape):
        return None
    each = [1 if at == dim % len(given.shape) else size for at, size in enumerate(given.shape)]
    return ("one_hot", given.shape) if list(indices.shape) == each else None


@lru_cache(maxsize=4096)
def parsed_call(
    name: str, shapes: str | None, types: str | None, concrete_inputs: str | None
) -> RecordedCall:
    """Returns a recorded operator with the sizes of its tensors, those of lists among them."""
    call = RecordedOperatorCall(shapes or "[]", types, concrete_inputs)
    tensors: list[RecordedTensor] = []
    for argument in call.arguments:
        if isinstance(argument, RecordedTensor):
            tensors.append(argument)
        elif argument is not None:
            tensors.extend(argument)
    return RecordedCall(name, tuple(tensors), call)
