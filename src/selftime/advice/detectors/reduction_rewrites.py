"""Tells what computes the same as a reduction that PyTorch does slowly on the CPU, and how fast.

On a CPU some reductions vectorise over neither the results nor the elements, so that each result,
or each element, costs the time of a call or a chain of dependent instructions. The same numbers
come faster from elementwise operators and a plain sum.

Each rewrite's time is given in passes: how many times as long it takes as a copy of the input's
bytes. They were measured on one thread of a server's CPU with AVX-512, on a million elements of
float32, for 2 to 4,096 elements a result.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, prod
from typing import Final

from selftime.analysis.models import (
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
)
from selftime.names.reductions import ReductionKind, dimensions_argument, reduction_kind

SHORT_ROW_ELEMENTS: Final = 16
"""Number of elements in a row below which softmax over contiguous rows does not vectorise."""

MIN_REDUCED_ELEMENTS: Final = 2
"""Smallest number of elements a result for a reduction to compute anything."""

MAX_ADDED_COMPONENTS: Final = 3
"""Largest number of elements a result that are added faster one by one than by `sum`."""

_ROWWISE_KINDS: Final = frozenset({"softmax", "log_softmax"})
_EUCLIDEAN: Final = 2.0
"""The exponent of the usual norm."""


@dataclass(frozen=True, slots=True)
class Reduction:
    """A recorded reduction: what it computes, and along which elements."""

    kind: ReductionKind
    tensor: RecordedTensor
    dimensions: tuple[int, ...]
    """The dimensions that it reduces, counted from 0."""
    order: float
    """Of a norm the exponent, else 0."""
    correction: int
    """Of a variance what is taken from the number of elements, else 0."""

    @property
    def length(self) -> int:
        """Number of elements that each result, or each row of a softmax, is made of."""
        return prod(self.tensor.shape[at] for at in self.dimensions)

    @property
    def reads_rows_in_order(self) -> bool:
        """Whether the elements of one result lie beside each other in memory."""
        strides = self.tensor.strides
        if strides is None or len(strides) != len(self.tensor.shape):
            return len(self.tensor.shape) - 1 in self.dimensions
        return any(strides[at] == 1 and self.tensor.shape[at] > 1 for at in self.dimensions)

    @property
    def keeps_size(self) -> bool:
        """Whether the result has the size of the input: each row is normalised by its sum."""
        return self.kind in _ROWWISE_KINDS

    @property
    def results(self) -> int:
        return self.tensor.elements // max(self.length, 1)

    @property
    def moved_bytes(self) -> int | None:
        """Bytes that it must read and write; None if the dtype is unknown."""
        read = self.tensor.bytes
        if read is None:
            return None
        return 2 * read if self.keeps_size else read + read // max(self.length, 1)


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What computes the same: code, and how long it takes."""

    code: str
    passes: Callable[[int], float]
    """How many times as long it takes as a copy of the input, by the elements of a result."""


_ROOT_OF_SQUARES: Final = Rewrite("(x * x).sum({dim}).clamp_min(1e-30).sqrt()", lambda _: 6.0)
_SUM_OF_MAGNITUDES: Final = Rewrite("x.abs().sum({dim})", lambda n: 3 + 18 / n)
_LARGEST_MAGNITUDE: Final = Rewrite("x.abs().amax({dim})", lambda n: 3 + 18 / n)
_MEAN_SQUARED_DEVIATION: Final = Rewrite(
    "(x - x.mean({dim}, keepdim=True)).square().sum({dim}) / {divisor}", lambda n: 7 + 60 / n
)
_ROOT_OF_DEVIATION: Final = Rewrite(
    "((x - x.mean({dim}, keepdim=True)).square().sum({dim}) / {divisor}).clamp_min(1e-30).sqrt()",
    lambda n: 8 + 60 / n,
)
_SOFTMAX_OF_COLUMNS: Final = Rewrite(
    "x.movedim({dim}, 0).contiguous().{kind}(0).movedim(0, {dim})", lambda n: 11 + 18 / n
)
_SUM_OF_COMPONENTS: Final = Rewrite("sum(x.unbind({dim}))", lambda _: 4.5)
_MEAN_OF_COMPONENTS: Final = Rewrite("sum(x.unbind({dim})) / {divisor}", lambda _: 6.0)

_REWRITES_OF_DEVIATIONS: Final = {
    "variance": _MEAN_SQUARED_DEVIATION,
    "deviation": _ROOT_OF_DEVIATION,
}


def recorded_reduction(
    operator: str, shapes: str, types: str | None, strides: str | None, concrete: str | None
) -> Reduction | None:
    """Returns a recorded operator as a reduction of some elements to each result, else None."""
    kind = reduction_kind(operator)
    if kind is None:
        return None
    call = RecordedOperatorCall(shapes, types, concrete, strides)
    try:
        tensor = call.tensor_argument(0)
        given = call.value(dimensions_argument(kind))
        order = _exponent(call.value(1)) if kind == "norm" else 0.0
        correction = _correction(call.value(2)) if kind in {"variance", "deviation"} else 0
    except (UnknownOperatorArgument, ValueError):
        return None
    listed = [given] if kind in _ROWWISE_KINDS else given
    ndim = len(tensor.shape)
    if (
        not isinstance(listed, list)
        or not listed
        or not all(type(at) is int and -ndim <= at < ndim for at in listed)
    ):
        return None
    return Reduction(kind, tensor, tuple(sorted(at % ndim for at in listed)), order, correction)


def _exponent(recorded: object) -> float:
    if recorded is None:
        return 2.0
    return float(recorded) if isinstance(recorded, int | float | str) else 0.0


def _correction(recorded: object) -> int:
    """Returns the correction of a variance, which older releases record as `unbiased`."""
    return int(recorded) if isinstance(recorded, int | float) else 1


def rewrite_of(reduction: Reduction) -> Rewrite | None:
    """Returns what computes the same in elementwise operators; None if nothing is faster."""
    if reduction.length < MIN_REDUCED_ELEMENTS:
        return None
    if reduction.kind == "norm":
        return _rewrite_of_norm(reduction)
    if reduction.kind in _REWRITES_OF_DEVIATIONS:
        return _REWRITES_OF_DEVIATIONS[reduction.kind]
    return _rewrite_of_short_rows(reduction)


def _rewrite_of_short_rows(reduction: Reduction) -> Rewrite | None:
    if len(reduction.dimensions) > 1 or not reduction.reads_rows_in_order:
        return None
    if reduction.keeps_size:
        return _SOFTMAX_OF_COLUMNS if reduction.length < SHORT_ROW_ELEMENTS else None
    if reduction.length > MAX_ADDED_COMPONENTS:
        return None
    return _SUM_OF_COMPONENTS if reduction.kind == "sum" else _MEAN_OF_COMPONENTS


def _rewrite_of_norm(norm: Reduction) -> Rewrite | None:
    if norm.order == 1.0:
        return _SUM_OF_MAGNITUDES
    if norm.order == inf:
        return _LARGEST_MAGNITUDE
    is_fast = norm.order != _EUCLIDEAN or norm.reads_rows_in_order
    return None if is_fast else _ROOT_OF_SQUARES


def code_of(rewrite: Rewrite, reduction: Reduction) -> str:
    """Returns the code of a rewrite, with the dimension and the number of elements filled in."""
    dims = reduction.dimensions
    last = len(reduction.tensor.shape) - 1
    one = -1 if dims == (last,) and last else dims[0]
    return rewrite.code.format(
        dim=one if len(dims) == 1 else dims,
        kind=reduction.kind,
        divisor=reduction.length - reduction.correction,
    )
