"""Operators on each number: as many operations as the formula of one number has.

A function such as `exp` or `tanh` is one operation. Flags and whole numbers are no floating point:
their operators move bytes and count none. What is broadcast or expanded is read once.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Final

from selftime.analysis.models.calls import (
    Call,
    Model,
    Tensor,
    Untold,
    Work,
    broadcast,
    elements,
    moved,
    wider,
)


def floating(dtype: str | None, operations: int) -> int:
    """Operations on numbers with a point; those on others are none."""
    return 0 if dtype is not None and dtype.startswith(("bool", "int", "uint")) else operations


@dataclass(frozen=True, slots=True)
class _Pointwise:
    """So many operations for each number of the result."""

    operations: int
    inputs: int
    """How many tensors it takes at most; one more is where the result shall go."""
    flags: bool = False
    """Whether the result is a flag."""
    in_place: bool = False

    def __call__(self, call: Call) -> Work:
        given = [a for a in call.arguments if isinstance(a, Tensor)][: self.inputs]
        if not given:
            raise Untold
        dtype = wider(*given)
        out = given[0] if self.in_place else _result(given, "bool" if self.flags else dtype)
        flops = floating(dtype, self.operations * out.elements)
        return Work("pointwise", flops, moved(*given, out), dtype)


def _result(given: list[Tensor], dtype: str | None) -> Tensor:
    return Tensor(reduce(broadcast, (t.shape for t in given)), dtype)


@dataclass(frozen=True, slots=True)
class _Lists:
    """The same for lists of tensors; the trace does not tell the dtypes in a list."""

    operations: int
    writes: bool = True
    """Whether it writes as many numbers as the first list has, beside those that it reads."""

    def __call__(self, call: Call) -> Work:
        first = elements(call.tensors(0))
        read = sum(elements(a) for a in call.arguments if isinstance(a, tuple))
        numbers = read + self.writes * first
        return Work("pointwise", self.operations * first, None, None, numbers)


@dataclass(frozen=True, slots=True)
class _Step:
    """An optimizer's step on lists of parameters, gradients and states."""

    operations: int
    read: int
    """How many lists it reads."""
    written: tuple[int, ...]
    """The places of those that it writes, too."""

    def __call__(self, call: Call) -> Work:
        read = sum(elements(call.tensors(place)) for place in range(self.read))
        written = sum(elements(call.tensors(place)) for place in self.written)
        flops = self.operations * elements(call.tensors(0))
        return Work("pointwise", flops, None, None, read + written)


def _dropout(call: Call) -> Work:
    """Draw, scale; the mask is written beside the result."""
    given = call.tensor(0)
    mask = given.like(*given.shape, dtype="bool")
    read = moved(given, given.like(*given.shape), mask)
    return Work("pointwise", 2 * given.elements, read, given.dtype)


_UNARY: Final = (
    "abs acos acosh asin asinh atan atanh ceil clamp clamp_max clamp_min cos cosh deg2rad digamma"
    " elu erf erfc erfinv exp exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish hardtanh"
    " leaky_relu lgamma log log10 log1p log2 log_sigmoid_forward logit mish nan_to_num neg"
    " rad2deg reciprocal relu relu6 round rsqrt sgn sigmoid sign silu sin sinc sinh softplus"
    " softshrink sqrt square tan tanh threshold trunc"
)
_BINARY: Final = (
    "add atan2 copysign div floor_divide fmax fmin fmod hypot maximum minimum mul pow remainder"
    " rsub sub true_divide xlogy"
)
_COMPARISONS: Final = (
    "eq ge gt isclose isfinite isinf isnan isneginf isposinf le logical_and logical_not logical_or"
    " logical_xor lt ne signbit"
)
_BITS: Final = (
    "bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor"
    " tril triu"
)
_MANY: Final = {  # operations, tensors
    "addcdiv": (3, 3),  # a + c * b / d
    "addcmul": (3, 3),  # a + c * b * d
    "lerp": (3, 3),  # a + w (b - a)
    "where": (0, 3),
    "masked_fill": (0, 3),
    "elu_backward": (1, 2),
    "gelu_backward": (1, 2),
    "hardsigmoid_backward": (1, 2),
    "hardswish_backward": (1, 2),
    "hardtanh_backward": (1, 2),
    "leaky_relu_backward": (1, 2),
    "log_sigmoid_backward": (1, 3),
    "mish_backward": (1, 2),
    "native_dropout_backward": (2, 2),  # gradient * mask * scale
    "sigmoid_backward": (3, 2),  # g y (1 - y)
    "silu_backward": (1, 2),
    "softplus_backward": (1, 2),
    "tanh_backward": (3, 2),  # g (1 - y y)
    "threshold_backward": (1, 2),
}
_LISTS: Final = (
    "abs add ceil clamp_max clamp_min cos div erf exp expm1 floor frac log log10 log1p log2"
    " maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sqrt sub tan tanh trunc"
)
_LISTS_OF_MANY: Final = {
    "addcdiv": _Lists(3),
    "addcmul": _Lists(3),
    "lerp": _Lists(3),
    "norm": _Lists(2, writes=False),
    "copy": _Lists(0, writes=False),
    "zero": _Lists(0, writes=False),
}


def _both(words: str, operations: int, inputs: int, *, flags: bool = False) -> dict[str, Model]:
    """Each of the operators, and the same in place."""
    return {
        f"{name}{end}": _Pointwise(operations, inputs, flags, in_place=bool(end))
        for name in words.split()
        for end in ("", "_")
    }


def _of_lists(words: str, model: Model) -> dict[str, Model]:
    return {f"_foreach_{name}{end}": model for name in words.split() for end in ("", "_")}


POINTWISE: Final[dict[str, Model]] = {
    **_both(_UNARY, 1, 1),
    **_both(_BINARY, 1, 2),
    **_both(_COMPARISONS, 1, 2, flags=True),
    **_both(_BITS, 0, 2),
    **{name: model for op, n in _MANY.items() for name, model in _both(op, *n).items()},
    **_of_lists(_LISTS, _Lists(1)),
    **{name: m for op, n in _LISTS_OF_MANY.items() for name, m in _of_lists(op, n).items()},
    **dict.fromkeys(("__and__", "__or__", "__xor__"), _Pointwise(0, 2)),
    "native_dropout": _dropout,
    "_fused_dropout": _dropout,
    # p (1 - lr w); 3 for the mean, 4 for the square; sqrt, scale, add; scale, divide, subtract
    **dict.fromkeys(("_fused_adam_", "_fused_adamw_"), _Step(14, 5, (0, 2, 3, 4))),
    # decay 2, momentum 2, step 2
    "_fused_sgd_": _Step(6, 3, (0, 2)),
    # decay 2, square and add 2, root and add 2, scale, divide, subtract
    "_fused_adagrad_": _Step(9, 3, (0, 2)),
}
