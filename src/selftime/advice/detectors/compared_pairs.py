"""Finds comparisons of all pairs of rows that are written out: a tensor of pairs, then its sum."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from typing import Final, Literal, TypeAlias

import polars as pl

from selftime import names
from selftime.advice.detectors.elementwise_operators import (
    MIN_ELEMENTWISE_PASS_BYTES,
    forward_operators,
)
from selftime.analysis.models import (
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
)
from selftime.analysis.models.recorded_operator_calls import broadcast_shape_of_two
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.trace import Trace

MIN_PAIRS_PER_ROW: Final = 4
"""Smallest ratio of the tensor of pairs to the larger of the two that it is made of."""

MAX_OPERATORS_AFTER_PAIRS: Final = 12
"""Number of operators after one that makes a tensor of pairs among which its users are looked for.
"""

ComparisonKind: TypeAlias = Literal["distance", "product", "cosine"]

_ARGUMENTS: Final = ("input_shapes", "input_types", "concrete_inputs")
_ELEMENT_BYTES: Final = 4


@dataclass(frozen=True, slots=True)
class ComparedPairs:
    """A tensor with a row for each pair, and the operators from it to one number for each pair."""

    kind: ComparisonKind
    operators: tuple[int, ...]
    """Rows of `forward_operators`."""
    rows: tuple[RecordedTensor, RecordedTensor]
    pairs: tuple[int, ...]
    """Sizes of the tensor of pairs."""
    length: int
    """Number of elements that are compared of each pair."""

    @property
    def elements(self) -> int:
        return prod(self.pairs)


@cached_per_trace
def compared_pairs(trace: Trace) -> tuple[ComparedPairs, ...]:
    """Returns the comparisons of all pairs that the forward passes write out, in order of time."""
    table = forward_operators(trace)
    named = table["name"].cast(pl.String).to_list()
    asked = [
        at
        for at, name in enumerate(named)
        if names.is_difference(name)
        or names.is_elementwise_product(name)
        or names.compares_rows(name)
    ]
    return tuple(found for at in asked for found in _comparison_begun_at(table, at))


def _comparison_begun_at(table: pl.DataFrame, at: int) -> Iterator[ComparedPairs]:
    name, call = _call(table, at)
    made = _pair_sizes(call)
    if made is None:
        return
    first, second, pairs = made
    if names.compares_rows(name):
        dim = -1 if len(call.arguments) < 3 else _reduced_dimension(name, call)
        if dim is not None and _is_compared_along(dim, first, second):
            yield ComparedPairs("cosine", (at,), (first, second), pairs, pairs[dim])
        return
    is_difference = names.is_difference(name)
    used = _operators_to_number_of_pair(table, at, pairs, is_difference=is_difference)
    if used is None or not _is_compared_along(used[1], first, second):
        return
    kind: ComparisonKind = "distance" if is_difference else "product"
    yield ComparedPairs(kind, (at, *used[0]), (first, second), pairs, pairs[used[1]])


def _call(table: pl.DataFrame, at: int) -> tuple[str, RecordedOperatorCall]:
    name, shapes, types, concrete_inputs = (
        None if value is None else str(value) for value in table.select("name", *_ARGUMENTS).row(at)
    )
    return name or "", RecordedOperatorCall(shapes or "[]", types, concrete_inputs)


def _pair_sizes(
    call: RecordedOperatorCall,
) -> tuple[RecordedTensor, RecordedTensor, tuple[int, ...]] | None:
    """Returns two tensors, each of which is repeated along another's dimension, and both's sizes.

    None if an operator does not combine each row of one with each of the other.
    """
    try:
        first, second = call.tensor_argument(0), call.tensor_argument(1)
        pairs = broadcast_shape_of_two(first.shape, second.shape)
    except UnknownOperatorArgument:
        return None
    many = max(first.elements, second.elements)
    large = prod(pairs) * _ELEMENT_BYTES >= MIN_ELEMENTWISE_PASS_BYTES
    repeated = [_repeated_dimensions(tensor, pairs) for tensor in (first, second)]
    if not large or prod(pairs) < MIN_PAIRS_PER_ROW * many or not all(repeated):
        return None
    return first, second, pairs


def _repeated_dimensions(tensor: RecordedTensor, pairs: tuple[int, ...]) -> list[int]:
    missing = len(pairs) - len(tensor.shape)
    sizes = (1,) * missing + tensor.shape
    return [at for at, (own, size) in enumerate(zip(sizes, pairs, strict=True)) if own < size]


def _is_compared_along(dim: int, first: RecordedTensor, second: RecordedTensor) -> bool:
    """Returns whether both tensors have the elements of a dimension, counted from the end."""
    sizes = [tensor.shape[dim] if -dim <= len(tensor.shape) else 1 for tensor in (first, second)]
    return sizes[0] == sizes[1] > 1


def _operators_to_number_of_pair(
    table: pl.DataFrame, at: int, pairs: tuple[int, ...], *, is_difference: bool
) -> tuple[tuple[int, ...], int] | None:
    """Returns the operators that make one number of each pair, and along which dimension.

    The dimension is counted from the end. None if others take the tensor of pairs too.
    """
    used: list[int] = []
    along: int | None = None
    last = min(at + 1 + MAX_OPERATORS_AFTER_PAIRS, table.height)
    for place in range(at + 1, last):
        name, call = _call(table, place)
        made = _pair_sizes(call)
        if made is not None and made[2] == pairs:
            break
        if table["track"][place] != table["track"][at] or not _takes(call, pairs):
            continue
        if along is None and names.reduces_pairs(name):
            along = _reduced_dimension(name, call)
            if along is None:
                return None
        elif along is not None or not is_difference or not names.is_step_of_distance(name):
            return None
        used.append(place)
    return None if along is None else (tuple(used), along)


def _takes(call: RecordedOperatorCall, sizes: tuple[int, ...]) -> bool:
    return any(
        isinstance(tensor, RecordedTensor) and tensor.shape == sizes for tensor in call.arguments
    )


def _reduced_dimension(name: str, call: RecordedOperatorCall) -> int | None:
    """Returns the one dimension that an operator reduces, counted from the end; else None."""
    place = 2 if names.takes_norm(name) or names.compares_rows(name) else 1
    try:
        dims = call.numbers(place, 1)
        rank = max(len(one.shape) for one in call.arguments if isinstance(one, RecordedTensor))
    except (UnknownOperatorArgument, ValueError):
        return None
    given = call.optional_value_argument(place)
    if isinstance(given, list) and len(given) != 1:
        return None
    return dims[0] if dims[0] < 0 else dims[0] - rank
