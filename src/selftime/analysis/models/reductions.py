"""Normalisations, softmax, sums and pooling: operations of the textbook's formula on each number.

What is done once a row, such as a root or a division by the count, is not counted.

    layer norm, group norm          mean 1; variance 3; scale 1; weight 1, bias 1
    batch norm, training            the same; else subtract 1, scale 1, weight 1, bias 1
    RMS norm                        square and add 2; scale 1; weight 1
    softmax, log-softmax            greatest 1, subtract 1, exp 1, add 1, divide or subtract 1
    sum, mean, greatest, product    1
    norm                            2
    variance, deviation             4
    pooling                         as many as the window has places
"""

from dataclasses import dataclass
from math import prod
from typing import Final

from selftime.analysis.models.calls import Call, Family, Model, Tensor, Untold, Work, moved, wider
from selftime.analysis.models.pointwise import floating


def _normalise(call: Call, given: Tensor, operations: int) -> Work:
    """Reads all tensors given and writes one like the input."""
    read = moved(*_all(call), given.like(*given.shape))
    return Work("norm", operations * given.elements, read, given.dtype)


def _all(call: Call) -> list[Tensor]:
    return [a for a in call.arguments if isinstance(a, Tensor)]


def _affine(call: Call, *places: int) -> int:
    return sum(call.optional(place) is not None for place in places)


def _layer_norm(call: Call) -> Work:
    return _normalise(call, call.tensor(0), 5 + _affine(call, 2, 3))


def _group_norm(call: Call) -> Work:
    return _normalise(call, call.tensor(0), 5 + _affine(call, 1, 2))


def _rms_norm(call: Call) -> Work:
    return _normalise(call, call.tensor(0), 3 + _affine(call, 2))


def _batch_norm(call: Call) -> Work:
    training = call.given(5)
    if not isinstance(training, bool):
        raise Untold
    return _normalise(call, call.tensor(0), (5 if training else 2) + _affine(call, 1, 2))


def _batch_norm_training(call: Call) -> Work:
    return _normalise(call, call.tensor(0), 5 + _affine(call, 1, 2))


@dataclass(frozen=True, slots=True)
class _NormBackward:
    """The gradient of the input, and those of weight and bias, as large as these.

    With x the normalised input and g the gradient, times the weight where it differs within what is
    normalised: x 2, sums of g and g x 3, and r (g - m - x n) 4.
    """

    operations: int
    given: int
    weight: int | None
    of_weight: int = 0
    """More operations for each number if there is a weight."""

    def __call__(self, call: Call) -> Work:
        given = call.tensor(self.given)
        weight = None if self.weight is None else call.optional(self.weight)
        operations = self.operations + (self.of_weight if weight else 0)
        gradients = (weight.like(*weight.shape), weight.like(*weight.shape)) if weight else ()
        read = moved(*_all(call), given.like(*given.shape), *gradients)
        return Work("norm", operations * given.elements, read, given.dtype)


@dataclass(frozen=True, slots=True)
class _Rows:
    """As many operations for each number; the result is like the first tensor."""

    family: Family
    operations: int

    def __call__(self, call: Call) -> Work:
        given = call.tensor(0)
        flops = floating(given.dtype, self.operations * given.elements)
        return Work(self.family, flops, moved(*_all(call), given.like(*given.shape)), given.dtype)


@dataclass(frozen=True, slots=True)
class _Reduction:
    """As many operations for each number; the result is smaller, where it is told how much."""

    operations: int
    dim: int = 1
    indices: bool = False
    """Whether the result is places."""

    def __call__(self, call: Call) -> Work:
        given = call.tensor(0)
        flops = floating(given.dtype, self.operations * given.elements)
        dtype = "int64" if self.indices else None
        out = given.like(*_left(given, call.given(self.dim)), dtype=dtype)
        return Work("reduction", flops, moved(given, out), given.dtype)


def _left(given: Tensor, dims: object) -> tuple[int, ...]:
    """The sizes that are left; none where no dimensions are told."""
    listed = dims if isinstance(dims, list) else [dims]
    many = len(given.shape)
    gone = {d % many for d in listed if type(d) is int and -many <= d < many} if many else set()
    return tuple(s for d, s in enumerate(given.shape) if d not in gone) if gone else ()


@dataclass(frozen=True, slots=True)
class _Pool:
    """Windows of an image; the greatest with its place, or the mean."""

    dimensions: int
    dilation: int | None
    ceil: int
    places: bool = False

    def __call__(self, call: Call) -> Work:
        given = call.tensor(0)
        many = self.dimensions
        image = given.shape[-many:]
        kernel = call.numbers(1, many)
        stride = call.numbers(2, many) if call.value(2) else kernel
        padding = call.numbers(3, many)
        dilation = [1] * many if self.dilation is None else call.numbers(self.dilation, many)
        up = call.flag(self.ceil)
        sizes = [
            _windows(image[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1, stride[i], up)
            for i in range(many)
        ]
        out = given.like(*given.shape[: len(given.shape) - many], *sizes)
        places = out.like(*out.shape, dtype="int64") if self.places else None
        flops = floating(given.dtype, out.elements * prod(kernel))
        return Work("reduction", flops, moved(given, out, places), given.dtype)


def _windows(reach: int, stride: int, up: bool) -> int:
    return (-(-reach // stride) if up else reach // stride) + 1


def _pool_backward(call: Call) -> Work:
    """Each gradient is added to one place, or spread over a window: at least one addition each."""
    gradient, given = call.tensor(0), call.tensor(1)
    read = moved(*_read_by_pool(call), given.like(*given.shape))
    return Work("reduction", gradient.elements, read, wider(gradient))


def _read_by_pool(call: Call) -> list[Tensor]:
    """The gradient, and the places of the greatest; the input's values are not needed."""
    return [call.tensor(0), *(t for t in _all(call)[2:] if t.dtype == "int64")]


@dataclass(frozen=True, slots=True)
class _AdaptivePool:
    """Windows that together cover the image, for a result of a given size."""

    dimensions: int

    def __call__(self, call: Call) -> Work:
        given, many = call.tensor(0), self.dimensions
        out = given.like(*given.shape[:-many], *call.numbers(1, many))
        return Work("reduction", given.elements, moved(given, out), given.dtype)


_SUMS: Final = {
    "sum": 1, "nansum": 1, "mean": 1, "prod": 1, "amax": 1, "amin": 1, "max": 1, "min": 1,
    "all": 1, "any": 1, "std": 4, "var": 4, "std_mean": 4, "var_mean": 4, "logsumexp": 4,
    "count_nonzero": 1, "frobenius_norm": 2,
}  # fmt: skip
_LAYER: Final = _NormBackward(operations=9, given=1, weight=5, of_weight=4)
_GROUP: Final = _NormBackward(operations=9, given=1, weight=4, of_weight=4)
_BATCH: Final = _NormBackward(operations=9, given=1, weight=2)

REDUCTIONS: Final[dict[str, Model]] = {
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "_fused_rms_norm": _rms_norm,
    **dict.fromkeys(
        (
            "native_batch_norm",
            "cudnn_batch_norm",
            "miopen_batch_norm",
            "_native_batch_norm_legit",
            "_native_batch_norm_legit_functional",
        ),
        _batch_norm,
    ),
    "_batch_norm_with_update": _batch_norm_training,
    "native_layer_norm_backward": _LAYER,
    "native_group_norm_backward": _GROUP,
    "_fused_rms_norm_backward": _NormBackward(operations=6, given=1, weight=4, of_weight=3),
    "native_batch_norm_backward": _BATCH,
    "batch_norm_backward": _BATCH,
    "cudnn_batch_norm_backward": _NormBackward(operations=9, given=0, weight=2),
    "miopen_batch_norm_backward": _NormBackward(operations=9, given=0, weight=2),
    "_softmax": _Rows("softmax", 5),
    "_log_softmax": _Rows("softmax", 5),
    "_softmax_backward_data": _Rows("softmax", 4),
    "_log_softmax_backward_data": _Rows("softmax", 4),
    "cumsum": _Rows("reduction", 1),
    "cumprod": _Rows("reduction", 1),
    **{name: _Reduction(operations) for name, operations in _SUMS.items()},
    "argmax": _Reduction(1, indices=True),
    "argmin": _Reduction(1, indices=True),
    "norm": _Reduction(2, dim=2),
    "linalg_vector_norm": _Reduction(2, dim=2),
    "max_pool2d_with_indices": _Pool(2, dilation=4, ceil=5, places=True),
    "max_pool3d_with_indices": _Pool(3, dilation=4, ceil=5, places=True),
    "avg_pool2d": _Pool(2, dilation=None, ceil=4),
    "avg_pool3d": _Pool(3, dilation=None, ceil=4),
    "_adaptive_avg_pool2d": _AdaptivePool(2),
    "_adaptive_avg_pool3d": _AdaptivePool(3),
    **dict.fromkeys(
        (
            "max_pool2d_with_indices_backward",
            "max_pool3d_with_indices_backward",
            "avg_pool2d_backward",
            "avg_pool3d_backward",
            "_adaptive_avg_pool2d_backward",
            "_adaptive_avg_pool3d_backward",
        ),
        _pool_backward,
    ),
}
