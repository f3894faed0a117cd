"""Parses recorded operator calls, and defines the type of FLOPs and bytes that models return."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import zip_longest
from math import prod
from typing import Any, Final, Literal, TypeAlias

from selftime import names

OperatorFamily: TypeAlias = Literal[
    "attention",
    "convolution",
    "recurrence",
    "product",
    "norm",
    "softmax",
    "reduction",
    "pointwise",
    "movement",
]
"""The kind of an operator's computation, such as product or norm."""

_BOOLEAN_BY_RECORDED_TEXT: Final = {"True": True, "False": False}


class UnknownOperatorArgument(ValueError):  # noqa: N818 - reads as what was found
    """Raised if the trace lacks an argument that a formula needs."""


@dataclass(frozen=True, slots=True)
class RecordedTensor:
    """The shape, dtype and strides of a tensor argument; None where the trace lacks them."""

    shape: tuple[int, ...]
    dtype: str | None
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def stored_elements(self) -> int:
        """Number of elements that the tensor has in memory; an expanded element counts once."""
        if self.strides is None or len(self.strides) != len(self.shape):
            return self.elements
        sizes = zip(self.shape, self.strides, strict=True)
        return prod(size if stride or not size else 1 for size, stride in sizes)

    @property
    def bytes(self) -> int | None:
        return (
            None
            if self.dtype is None
            else self.stored_elements * names.DTYPE_SIZES_IN_BYTES[self.dtype]
        )

    def like(self, *shape: int, dtype: str | None = None) -> "RecordedTensor":
        """Returns a tensor of the given shape, with the given dtype or else that of `self`."""
        return RecordedTensor(shape, dtype or self.dtype)


@dataclass(frozen=True, slots=True)
class OperatorWork:
    """The modelled FLOPs and bytes of one operator call."""

    family: OperatorFamily
    flops: int
    """Number of arithmetic operations; a multiply-add counts as two."""
    bytes: int | None
    """Bytes of inputs read and outputs written, each once; None if a dtype is unknown."""
    dtype: str | None
    """The dtype of the computation; None if unknown."""
    elements_of_unknown_dtype: int = 0
    """Number of elements moved in lists of tensors, whose dtype the trace does not record."""


@dataclass(frozen=True)
class RecordedOperatorCall:
    """The arguments of a recorded operator call by position, parsed from the trace's texts."""

    shapes: str
    types: str | None = None
    concrete: str | None = None
    strides: str | None = None

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """The argument at each position: a tensor, a tuple of tensors, or None."""
        shapes, types, strides = (
            _parse_json_list(t) for t in (self.shapes, self.types, self.strides)
        )
        return tuple(
            _parse_tensor_argument(shape, dtype, stride)
            for shape, dtype, stride in zip_longest(
                shapes, types[: len(shapes)], strides[: len(shapes)]
            )
        )

    def tensor_argument(self, position: int) -> RecordedTensor:
        """Returns the tensor at a position; raises UnknownOperatorArgument if there is none."""
        found = self.optional_tensor_argument(position)
        if found is None:
            raise UnknownOperatorArgument
        return found

    def optional_tensor_argument(self, position: int) -> RecordedTensor | None:
        """Returns the tensor argument at a position, or None if none was given."""
        found = self.arguments[position] if position < len(self.arguments) else None
        return found if isinstance(found, RecordedTensor) else None

    def tensor_list_argument(self, position: int) -> tuple[RecordedTensor, ...]:
        """Returns the list of tensors that is the argument at a position."""
        found = self.arguments[position] if position < len(self.arguments) else None
        if not isinstance(found, tuple):
            raise UnknownOperatorArgument
        return found

    def value(self, position: int) -> Any:
        """Returns the number, boolean, text or list at a position; None if nothing was passed."""
        values = _parse_json_list(self.concrete)
        if position >= len(values):
            raise UnknownOperatorArgument
        return _parse_recorded_value(values[position])

    def optional_value_argument(self, position: int) -> Any:
        """Returns the argument at a position, or None if the recorded call has fewer arguments."""
        return self.value(position) if position < len(_parse_json_list(self.concrete)) else None

    def flag(self, position: int) -> bool:
        """Returns the boolean at a position; raises UnknownOperatorArgument for another type."""
        value = self.value(position)
        if not isinstance(value, bool):
            raise UnknownOperatorArgument
        return value

    def flags(self, position: int) -> list[bool]:
        """Returns the list of booleans that is the argument at a position."""
        values = _parse_json_list(self.concrete)
        if position >= len(values):
            raise UnknownOperatorArgument
        words = str(values[position]).strip("[]").split(",")
        if not all(word.strip() in _BOOLEAN_BY_RECORDED_TEXT for word in words):
            raise UnknownOperatorArgument
        return [_BOOLEAN_BY_RECORDED_TEXT[word.strip()] for word in words]

    def number(self, position: int) -> int:
        """Returns the integer at a position; raises UnknownOperatorArgument for another type."""
        value = self.value(position)
        if isinstance(value, bool) or not isinstance(value, int):
            raise UnknownOperatorArgument
        return value

    def numbers(self, position: int, count: int) -> list[int]:
        """Returns `count` integers from the argument at a position; repeats a single integer."""
        value = self.value(position)
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(type(n) is int for n in listed):
            raise UnknownOperatorArgument
        return listed * count if len(listed) == 1 else listed[:count]


OperatorWorkModel: TypeAlias = Callable[[RecordedOperatorCall], OperatorWork]
"""A function that returns the operations and bytes of an operator call."""


@lru_cache(maxsize=4096)
def _parse_json_list(json_text: str | None) -> list[Any]:
    found = json.loads(json_text) if json_text else []
    if not isinstance(found, list):
        raise UnknownOperatorArgument
    return found


def _parse_tensor_argument(
    shape: Any, dtype: Any, strides: Any
) -> RecordedTensor | tuple[RecordedTensor, ...] | None:
    if not isinstance(shape, list):
        return None
    written = dtype if isinstance(dtype, str) else None
    if written == "TensorList" or (shape and isinstance(shape[0], list)):
        own = strides if isinstance(strides, list) else []
        return tuple(
            _parse_recorded_tensor(s, None, t) for s, t in zip_longest(shape, own[: len(shape)])
        )
    known = None if written is None else names.dtype_name(written)
    if written is not None and known is None and not _may_be_tensor_dtype(written):
        return None
    if written is None and not shape:
        return None  # nothing given, a number, or a tensor of one element
    return _parse_recorded_tensor(shape, known, strides)


def _may_be_tensor_dtype(dtype_text: str) -> bool:
    """Returns whether an unknown type name, such as a `c10::` name, may be a tensor's dtype."""
    return dtype_text.startswith("c10::")


def _parse_recorded_tensor(shape: Any, dtype: str | None, strides: Any) -> RecordedTensor:
    steps = tuple(strides) if isinstance(strides, list) else None
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise UnknownOperatorArgument
    return RecordedTensor(tuple(shape), dtype, steps)


def _parse_recorded_value(recorded: Any) -> Any:
    """Returns an operator argument's value, parsed from the text that the trace records."""
    if not isinstance(recorded, str):
        return recorded
    if not recorded:
        return None
    if recorded in _BOOLEAN_BY_RECORDED_TEXT:
        return _BOOLEAN_BY_RECORDED_TEXT[recorded]
    try:
        return json.loads(recorded)
    except ValueError:
        return recorded


def total_element_count(tensors: Iterable[RecordedTensor]) -> int:
    """Returns the number of elements in a list of tensors."""
    return sum(tensor.elements for tensor in tensors)


def total_tensor_bytes(*tensors: RecordedTensor | None) -> int | None:
    """Returns the total bytes of all given tensors; None if a dtype is unknown."""
    sizes = [tensor.bytes for tensor in tensors if tensor is not None]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def broadcast_shape_of_two(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """Returns the shape to which two tensors broadcast; dimensions of size 1 expand."""
    many = max(len(first), len(second))
    left, right = ((1,) * (many - len(sizes)) + sizes for sizes in (first, second))
    pairs = list(zip(left, right, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise UnknownOperatorArgument
    return tuple(b if a == 1 else a for a, b in pairs)


def common_dtype_of_tensors(*tensors: RecordedTensor | None) -> str | None:
    """Returns the dtype to which tensors are promoted; scalars count only if all are scalars.

    The rules are those of torch.result_type, except that mixed 16-bit floats give float32.
    """
    given = [tensor for tensor in tensors if tensor is not None]
    if not given or any(tensor.dtype is None for tensor in given):
        return None
    full = [tensor for tensor in given if tensor.shape] or given
    kinds = {str(tensor.dtype): tensor for tensor in full}
    if {"float16", "bfloat16"} <= kinds.keys():
        return "float32" if "float64" not in kinds else "float64"
    return max(
        kinds, key=lambda dtype: (_dtype_promotion_rank(dtype), names.DTYPE_SIZES_IN_BYTES[dtype])
    )


def _dtype_promotion_rank(dtype: str) -> int:
    kind = dtype.rstrip("0123456789")
    return {"bool": 0, "uint": 1, "int": 1, "bfloat": 2, "float": 2, "complex": 3}[kind]
