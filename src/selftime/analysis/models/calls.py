"""One call of an operator as the trace tells it, and what a model says that it has to do."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import zip_longest
from math import prod
from typing import Any, Final, Literal, TypeAlias

from selftime import names

Family: TypeAlias = Literal[
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

_WORDS_OF_TRUTH: Final = {"True": True, "False": False}


class Untold(ValueError):  # noqa: N818 - reads as what was found
    """The trace does not tell what a formula needs."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor's sizes, its dtype in Python's words, and its strides if they are told."""

    shape: tuple[int, ...]
    dtype: str | None
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def held(self) -> int:
        """Elements that lie in memory: what is expanded is held once."""
        if self.strides is None or len(self.strides) != len(self.shape):
            return self.elements
        sizes = zip(self.shape, self.strides, strict=True)
        return prod(size if stride or not size else 1 for size, stride in sizes)

    @property
    def bytes(self) -> int | None:
        return None if self.dtype is None else self.held * names.DTYPE_SIZES[self.dtype]

    def like(self, *shape: int, dtype: str | None = None) -> "Tensor":
        """A new tensor of that shape, of this or the given dtype."""
        return Tensor(shape, dtype or self.dtype)


@dataclass(frozen=True, slots=True)
class Work:
    """What a call has to do, whoever does it: a lower bound of time on any device."""

    family: Family
    flops: int
    """Operations on numbers; a multiply-add is two."""
    bytes: int | None
    """Inputs read and outputs written, each once; None if a dtype is not told."""
    dtype: str | None
    """What it computes in."""
    numbers: int = 0
    """Numbers moved, where only their dtype is not told: those in lists of tensors."""


@dataclass(frozen=True)
class Call:
    """An operator's arguments by place, from texts as the trace writes them."""

    shapes: str
    types: str | None = None
    concrete: str | None = None
    strides: str | None = None

    @cached_property
    def arguments(self) -> tuple[Any, ...]:
        """At each place a tensor, a tuple of tensors, or None."""
        shapes, types, strides = (_listed(t) for t in (self.shapes, self.types, self.strides))
        return tuple(
            _argument(shape, dtype, stride)
            for shape, dtype, stride in zip_longest(
                shapes, types[: len(shapes)], strides[: len(shapes)]
            )
        )

    def tensor(self, place: int) -> Tensor:
        found = self.optional(place)
        if found is None:
            raise Untold
        return found

    def optional(self, place: int) -> Tensor | None:
        """The tensor at a place, or None if none was given."""
        found = self.arguments[place] if place < len(self.arguments) else None
        return found if isinstance(found, Tensor) else None

    def tensors(self, place: int) -> tuple[Tensor, ...]:
        """A list of tensors."""
        found = self.arguments[place] if place < len(self.arguments) else None
        if not isinstance(found, tuple):
            raise Untold
        return found

    def value(self, place: int) -> Any:
        """The value of a number, flag, text or list; None if nothing was given."""
        values = _listed(self.concrete)
        if place >= len(values):
            raise Untold
        return _value(values[place])

    def given(self, place: int) -> Any:
        """The value at a place that an older operator may not have."""
        return self.value(place) if place < len(_listed(self.concrete)) else None

    def flag(self, place: int) -> bool:
        value = self.value(place)
        if not isinstance(value, bool):
            raise Untold
        return value

    def flags(self, place: int) -> list[bool]:
        values = _listed(self.concrete)
        if place >= len(values):
            raise Untold
        words = str(values[place]).strip("[]").split(",")
        if not all(word.strip() in _WORDS_OF_TRUTH for word in words):
            raise Untold
        return [_WORDS_OF_TRUTH[word.strip()] for word in words]

    def number(self, place: int) -> int:
        value = self.value(place)
        if isinstance(value, bool) or not isinstance(value, int):
            raise Untold
        return value

    def numbers(self, place: int, many: int) -> list[int]:
        """Whole numbers for `many` dimensions; one stands for all."""
        value = self.value(place)
        listed = value if isinstance(value, list) else [value]
        if not listed or not all(type(n) is int for n in listed):
            raise Untold
        return listed * many if len(listed) == 1 else listed[:many]


Model: TypeAlias = Callable[[Call], Work]


@lru_cache(maxsize=4096)
def _listed(text: str | None) -> list[Any]:
    found = json.loads(text) if text else []
    if not isinstance(found, list):
        raise Untold
    return found


def _argument(shape: Any, dtype: Any, strides: Any) -> Tensor | tuple[Tensor, ...] | None:
    if not isinstance(shape, list):
        return None
    written = dtype if isinstance(dtype, str) else None
    if written == "TensorList" or (shape and isinstance(shape[0], list)):
        own = strides if isinstance(strides, list) else []
        return tuple(_tensor(s, None, t) for s, t in zip_longest(shape, own[: len(shape)]))
    known = None if written is None else names.dtype_name(written)
    if written is not None and known is None and not _may_be_tensor(written):
        return None
    if written is None and not shape:
        return None  # nothing given, a number, or a tensor of one element
    return _tensor(shape, known, strides)


def _may_be_tensor(written: str) -> bool:
    """Whether a dtype that is not known is that of a tensor."""
    return written.startswith("c10::")


def _tensor(shape: Any, dtype: str | None, strides: Any) -> Tensor:
    steps = tuple(strides) if isinstance(strides, list) else None
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise Untold
    return Tensor(tuple(shape), dtype, steps)


def _value(written: Any) -> Any:
    """The value of an argument, which is written as text."""
    if not isinstance(written, str):
        return written
    if not written:
        return None
    if written in _WORDS_OF_TRUTH:
        return _WORDS_OF_TRUTH[written]
    try:
        return json.loads(written)
    except ValueError:
        return written


def elements(tensors: Iterable[Tensor]) -> int:
    """Numbers in all tensors of a list."""
    return sum(tensor.elements for tensor in tensors)


def moved(*tensors: Tensor | None) -> int | None:
    """Bytes of all tensors given; None if a dtype is not told."""
    sizes = [tensor.bytes for tensor in tensors if tensor is not None]
    return None if None in sizes else sum(size for size in sizes if size is not None)


def broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of two tensors taken together; sizes of 1 stretch."""
    many = max(len(first), len(second))
    left, right = ((1,) * (many - len(sizes)) + sizes for sizes in (first, second))
    pairs = list(zip(left, right, strict=True))
    if any(a != b and 1 not in (a, b) for a, b in pairs):
        raise Untold
    return tuple(b if a == 1 else a for a, b in pairs)


def wider(*tensors: Tensor | None) -> str | None:
    """The dtype in which these are computed together; numbers and single elements follow others.

    The rules are those of torch.result_type, but that mixed 16-bit floats are float32.
    """
    given = [tensor for tensor in tensors if tensor is not None]
    if not given or any(tensor.dtype is None for tensor in given):
        return None
    full = [tensor for tensor in given if tensor.shape] or given
    kinds = {str(tensor.dtype): tensor for tensor in full}
    if {"float16", "bfloat16"} <= kinds.keys():
        return "float32" if "float64" not in kinds else "float64"
    return max(kinds, key=lambda dtype: (_rank(dtype), names.DTYPE_SIZES[dtype]))


def _rank(dtype: str) -> int:
    kind = dtype.rstrip("0123456789")
    return {"bool": 0, "uint": 1, "int": 1, "bfloat": 2, "float": 2, "complex": 3}[kind]
