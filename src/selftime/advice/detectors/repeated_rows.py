"""Finds products of rows that an operator repeated, alone or beside others in a concatenation.

A recording names no tensors. That a concatenation or a product takes the repeated tensor is known
by its sizes and strides: it is the first operator after the one that repeats, but for views, that
takes a tensor of them. Rows that a view repeats have a stride of zero.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Final, TypeAlias

import polars as pl

from selftime import names
from selftime.advice.detectors.elementwise_operators import forward_operators
from selftime.advice.detectors.pattern_matrices import RecordedCall, multiplied_tensors
from selftime.advice.detectors.position_needs import order_of_dimensions
from selftime.analysis.models import RecordedOperatorCall, RecordedTensor, UnknownOperatorArgument
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.names.position_operators import (
    changes_sizes_only,
    convolves_positions,
    copies_in_order,
    permutes_dimensions,
    reads_no_values,
    repeats_by_view,
    repeats_tensor,
)
from selftime.trace import Trace

MAX_OPERATORS_UNTIL_PRODUCT: Final = 24
"""Largest number of operators from one that makes a tensor to the one that takes it: with more
between, another tensor of the same sizes and strides becomes likely."""

TensorSizes: TypeAlias = tuple[int, ...]
_Layout: TypeAlias = tuple[TensorSizes, TensorSizes]
"""Sizes and strides of a tensor."""

_ARGUMENTS: Final = ("input_shapes", "input_types", "concrete_inputs", "input_strides")


@dataclass(frozen=True, slots=True)
class MultipliedPart:
    """Columns that a product multiplies, and how often each of their rows is there."""

    width: int
    repeats: int


@dataclass(frozen=True, slots=True)
class RepeatedProduct:
    """A product of repeated rows: rows of `forward_operators`, and what it multiplies."""

    row: int
    makers: tuple[int, ...]
    """The operators that wrote repeated rows, and those that put them beside others."""
    parts: tuple[MultipliedPart, ...]
    rows: int
    columns: int
    """Number of columns of the result."""
    are_makers_needed: bool = False
    """Whether another operator takes what they made as well."""

    @property
    def kept_share(self) -> float:
        """The share of the operations that remains if each row is multiplied once."""
        needed = sum(part.width / part.repeats for part in self.parts)
        return needed / sum(part.width for part in self.parts)


@dataclass(frozen=True, slots=True)
class _HeldTensor:
    """A tensor with repeated rows: the parts of its features, and who made it."""

    layout: _Layout
    parts: tuple[MultipliedPart, ...]
    repeated: TensorSizes
    """How often each element is there along each dimension; () of a concatenation."""
    features: int | None
    """The dimension along which a concatenation was made; None of another tensor."""
    makers: tuple[int, ...]
    last: int
    """The last operator that made it, or a view of it."""


@cached_per_trace
def repeated_products(trace: Trace) -> tuple[RepeatedProduct, ...]:
    """Returns the products of repeated rows in forward passes, in order of thread and time."""
    table = forward_operators(trace)
    named = table["name"].cast(pl.String).to_list()
    if not any(repeats_tensor(name) or repeats_by_view(name) for name in named):
        return ()
    texts = table.select(pl.col("name", *_ARGUMENTS).cast(pl.String)).iter_rows()
    held: list[_HeldTensor] = []
    found: list[RepeatedProduct] = []
    for at, (row, track) in enumerate(zip(texts, table["track"].to_list(), strict=True)):
        if at and track != table["track"][at - 1]:
            held = []
        held = [one for one in held if at - one.last <= MAX_OPERATORS_UNTIL_PRODUCT]
        call = _call_with_strides(*row)
        if reads_no_values(call.name):
            continue
        product = _product_of_held(at, call, held)
        if product is not None:
            found.append(product)
            continue
        made = _tensor_made_by(at, call, held)
        taken = [one for one in held if one.layout in set(map(_layout, call.tensors))]
        if made is None:
            found = _with_needed_makers(found, {one.makers for one in taken})
        # A view of a concatenation does not end it: others may take it, too.
        ended = [one for one in taken if made is None or one.features is None]
        held = [one for one in held if one not in ended] + ([] if made is None else [made])
    return tuple(found)


def _with_needed_makers(
    found: list[RepeatedProduct], makers: set[tuple[int, ...]]
) -> list[RepeatedProduct]:
    """Returns the products; of those whose tensor was taken by another operator, this is noted."""
    if not makers:
        return found
    return [replace(one, are_makers_needed=True) if one.makers in makers else one for one in found]


@lru_cache(maxsize=4096)
def _call_with_strides(
    name: str,
    shapes: str | None,
    types: str | None,
    concrete_inputs: str | None,
    strides: str | None,
) -> RecordedCall:
    call = RecordedOperatorCall(shapes or "[]", types, concrete_inputs, strides)
    given = (one if isinstance(one, tuple) else (one,) for one in call.arguments)
    tensors = tuple(tensor for group in given for tensor in group if tensor is not None)
    return RecordedCall(name, tensors, call)


def _layout(tensor: RecordedTensor) -> _Layout | None:
    known = tensor.strides is not None and len(tensor.strides) == len(tensor.shape)
    return (tensor.shape, tensor.strides) if known and tensor.strides is not None else None


def _layout_in_order(sizes: TensorSizes) -> _Layout:
    """Returns the layout of a new tensor, whose elements lie one after another."""
    return sizes, tuple(prod(sizes[dim + 1 :]) for dim in range(len(sizes)))


def _held_tensor(tensor: RecordedTensor, held: list[_HeldTensor]) -> _HeldTensor | None:
    """Returns what is known of a tensor with repeated rows; None of another one.

    That of a view is known by its strides.
    """
    layout = _layout(tensor)
    if layout is None:
        return None
    known = next((one for one in reversed(held) if one.layout == layout), None)
    sizes, strides = layout
    repeated = tuple(
        size if not stride and size > 1 else 1 for size, stride in zip(sizes, strides, strict=True)
    )
    if known is not None or prod(repeated) == 1 or not sizes:
        return known
    return _HeldTensor(layout, (), repeated, None, (), 0)


def _product_of_held(
    at: int, call: RecordedCall, held: list[_HeldTensor]
) -> RepeatedProduct | None:
    """Returns the product that an operator is, if it multiplies repeated rows; else None."""
    convolves = convolves_positions(call.name)
    if not convolves and not names.multiplies_weights(call.name):
        return None
    operands = call.tensors[:2] if convolves else multiplied_tensors(call)
    tensor = _held_tensor(operands[0], held) if len(operands) == 2 else None
    if tensor is None:
        return None
    weight, sizes = operands[1].shape, operands[0].shape
    is_matrix = prod(weight[2:]) == 1 if convolves else len(weight) == 2
    features = 1 if convolves else len(sizes) - 1
    parts = _parts_along(tensor, features)
    if not is_matrix or len(sizes) < 2 or not parts:
        return None
    is_first = convolves or call.name == "aten::linear"
    columns = weight[0] if is_first else weight[1]
    rows = prod(sizes) // max(sizes[features], 1)
    return RepeatedProduct(at, tensor.makers, parts, rows, columns)


def _parts_along(tensor: _HeldTensor, features: int) -> tuple[MultipliedPart, ...]:
    """Returns the parts of a tensor's features along a dimension; () if they repeat themselves."""
    if tensor.features is not None:
        return tensor.parts if tensor.features == features else ()
    if tensor.repeated[features] != 1:
        return ()
    return (MultipliedPart(tensor.layout[0][features], prod(tensor.repeated)),)


def _tensor_made_by(at: int, call: RecordedCall, held: list[_HeldTensor]) -> _HeldTensor | None:
    """Returns the tensor with repeated rows that an operator makes; None if it makes none."""
    try:
        return _tensor_by_model(at, call, held)
    except (UnknownOperatorArgument, IndexError, ValueError):
        return None


def _tensor_by_model(at: int, call: RecordedCall, held: list[_HeldTensor]) -> _HeldTensor | None:
    if names.is_concatenation(call.name):
        return _concatenation(at, call, held)
    if repeats_tensor(call.name):
        repeated, sizes = _repeats_of(call)
        return _HeldTensor(_layout_in_order(sizes), (), repeated, None, (at,), at)
    tensor = _held_tensor(call.tensors[0], held) if call.tensors else None
    if tensor is None:
        return None
    sizes, strides = tensor.layout
    if permutes_dimensions(call.name) and tensor.features is None:
        order = order_of_dimensions(call, len(sizes))
        layout = tuple(sizes[dim] for dim in order), tuple(strides[dim] for dim in order)
        repeated = tuple(tensor.repeated[dim] for dim in order)
        return replace(tensor, layout=layout, repeated=repeated, last=at)
    if copies_in_order(call.name):
        makers = tensor.makers if tensor.layout == _layout_in_order(sizes) else (*tensor.makers, at)
        return replace(tensor, layout=_layout_in_order(sizes), makers=makers, last=at)
    return _view_of_rows(at, call, tensor) if changes_sizes_only(call.name) else None


def _view_of_rows(at: int, call: RecordedCall, tensor: _HeldTensor) -> _HeldTensor | None:
    """Returns a view that has a tensor's last dimension, and its other ones in other sizes."""
    sizes = tensor.layout[0]
    asked = call.arguments.value(1)
    if not isinstance(asked, list) or len(asked) < 2 or tensor.layout != _layout_in_order(sizes):
        return None
    known = prod(size for size in asked if size > 0)
    viewed = tuple(size if size > 0 else prod(sizes) // max(known, 1) for size in asked)
    if viewed[-1] != sizes[-1] or tensor.features not in {None, len(sizes) - 1}:
        return None
    parts = tensor.parts or _parts_along(tensor, len(sizes) - 1)
    return _HeldTensor(_layout_in_order(viewed), parts, (), len(viewed) - 1, tensor.makers, at)


def _repeats_of(call: RecordedCall) -> tuple[TensorSizes, TensorSizes]:
    """Returns how often `repeat` writes a tensor along each dimension, and its result's sizes."""
    asked = call.arguments.value(1)
    given = call.tensors[0].shape
    if not isinstance(asked, list) or not all(isinstance(times, int) for times in asked):
        raise UnknownOperatorArgument
    sizes = (1,) * (len(asked) - len(given)) + given
    return tuple(asked), tuple(a * b for a, b in zip(asked, sizes, strict=True))


def _concatenation(at: int, call: RecordedCall, held: list[_HeldTensor]) -> _HeldTensor | None:
    """Returns a concatenation of repeated rows with others; None if none of them is repeated."""
    tensors = call.arguments.tensor_list_argument(0)
    rank = len(tensors[0].shape)
    features = call.arguments.number(1) % rank
    left, makers = list(held), [at]
    parts: list[MultipliedPart] = []
    for tensor in tensors:
        known = _held_tensor(tensor, left)
        own = () if known is None else _parts_along(known, features)
        parts += own or (MultipliedPart(tensor.shape[features], 1),)
        makers += known.makers if known is not None and own else ()
        left = [one for one in left if one is not known]
    if all(part.repeats == 1 for part in parts):
        return None
    sizes = tuple(
        sum(part.width for part in parts) if dim == features else tensors[0].shape[dim]
        for dim in range(rank)
    )
    return _HeldTensor(_layout_in_order(sizes), tuple(parts), (), features, tuple(makers), at)
