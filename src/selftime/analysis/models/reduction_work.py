"""FLOP models of normalisations, softmax, sums and pooling: textbook operations per element.

Operations that are done once per row, such as a root or a division by the count, are not counted.

    layer norm, group norm          mean 1; variance 3; scale 1; weight 1, bias 1
    batch norm, training            the same; else subtract 1, scale 1, weight 1, bias 1
    RMS norm                        square and add 2; scale 1; weight 1
    softmax, log-softmax            maximum 1, subtract 1, exp 1, add 1, divide or subtract 1
    sum, mean, maximum, product     1
    norm                            2
    variance, deviation             4
    pooling                         the number of elements of a window
"""

from dataclasses import dataclass
from math import prod
from typing import Final

from selftime.analysis.models.pointwise_work import floating_point_operation_count
from selftime.analysis.models.recorded_operator_calls import (
    OperatorFamily,
    OperatorWork,
    OperatorWorkModel,
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
    common_dtype_of_tensors,
    total_tensor_bytes,
)


def _normalisation_work(
    call: RecordedOperatorCall, layer_input: RecordedTensor, operations: int
) -> OperatorWork:
    """Returns FLOPs and bytes of a normalisation, whose result has the shape of its input."""
    read = total_tensor_bytes(
        *_tensor_arguments_of_call(call), layer_input.like(*layer_input.shape)
    )
    return OperatorWork("norm", operations * layer_input.elements, read, layer_input.dtype)


def _tensor_arguments_of_call(call: RecordedOperatorCall) -> list[RecordedTensor]:
    return [a for a in call.arguments if isinstance(a, RecordedTensor)]


def _affine_parameter_count(call: RecordedOperatorCall, *positions: int) -> int:
    """Returns how many of the parameters weight and bias a normalisation call passes (0 to 2)."""
    return sum(call.optional_tensor_argument(position) is not None for position in positions)


def _layer_norm_work(call: RecordedOperatorCall) -> OperatorWork:
    return _normalisation_work(
        call, call.tensor_argument(0), 5 + _affine_parameter_count(call, 2, 3)
    )


def _group_norm_work(call: RecordedOperatorCall) -> OperatorWork:
    return _normalisation_work(
        call, call.tensor_argument(0), 5 + _affine_parameter_count(call, 1, 2)
    )


def _rms_norm_work(call: RecordedOperatorCall) -> OperatorWork:
    return _normalisation_work(call, call.tensor_argument(0), 3 + _affine_parameter_count(call, 2))


def _batch_norm_work(call: RecordedOperatorCall) -> OperatorWork:
    training = call.optional_value_argument(5)
    if not isinstance(training, bool):
        raise UnknownOperatorArgument
    return _normalisation_work(
        call, call.tensor_argument(0), (5 if training else 2) + _affine_parameter_count(call, 1, 2)
    )


def _training_batch_norm_work(call: RecordedOperatorCall) -> OperatorWork:
    return _normalisation_work(
        call, call.tensor_argument(0), 5 + _affine_parameter_count(call, 1, 2)
    )


@dataclass(frozen=True, slots=True)
class _NormBackwardModel:
    """The FLOP model of a normalisation's backward pass: gradients of input, weight and bias.

    With x the normalised input and g the gradient, times the weight where it varies within a
    normalised group: x 2, sums of g and g x 3, and r (g - m - x n) 4.
    """

    flops_per_element: int
    given: int
    weight: int | None
    weight_operations: int = 0
    """Additional operations per element if the norm has a weight."""

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        given = call.tensor_argument(self.given)
        weight = None if self.weight is None else call.optional_tensor_argument(self.weight)
        operations = self.flops_per_element + (self.weight_operations if weight else 0)
        gradients = (weight.like(*weight.shape), weight.like(*weight.shape)) if weight else ()
        read = total_tensor_bytes(
            *_tensor_arguments_of_call(call), given.like(*given.shape), *gradients
        )
        return OperatorWork("norm", operations * given.elements, read, given.dtype)


@dataclass(frozen=True, slots=True)
class _RowwiseOperatorModel:
    """The FLOP model of softmax and the like: fixed FLOPs per element, result shaped as input."""

    family: OperatorFamily
    flops_per_element: int

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        given = call.tensor_argument(0)
        flops = floating_point_operation_count(given.dtype, self.flops_per_element * given.elements)
        return OperatorWork(
            self.family,
            flops,
            total_tensor_bytes(*_tensor_arguments_of_call(call), given.like(*given.shape)),
            given.dtype,
        )


@dataclass(frozen=True, slots=True)
class _ReductionModel:
    """The FLOP model of a reduction, such as a sum: a fixed number of FLOPs per input element."""

    flops_per_element: int
    dim: int = 1
    indices: bool = False
    """Whether the operator returns indexes, as argmax does."""

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        given = call.tensor_argument(0)
        flops = floating_point_operation_count(given.dtype, self.flops_per_element * given.elements)
        dtype = "int64" if self.indices else None
        out = given.like(
            *_sizes_after_reduction(given, call.optional_value_argument(self.dim)), dtype=dtype
        )
        return OperatorWork("reduction", flops, total_tensor_bytes(given, out), given.dtype)


def _sizes_after_reduction(input_tensor: RecordedTensor, dims: object) -> tuple[int, ...]:
    """Returns the result's sizes after reducing the given dimensions; () if none is given."""
    listed = dims if isinstance(dims, list) else [dims]
    many = len(input_tensor.shape)
    gone = {d % many for d in listed if type(d) is int and -many <= d < many} if many else set()
    return tuple(s for d, s in enumerate(input_tensor.shape) if d not in gone) if gone else ()


@dataclass(frozen=True, slots=True)
class _PoolingModel:
    """The FLOP model of max pooling (with indexes) or average pooling over image windows."""

    dimensions: int
    dilation: int | None
    ceil: int
    has_indices: bool = False

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        given = call.tensor_argument(0)
        many = self.dimensions
        image = given.shape[-many:]
        kernel = call.numbers(1, many)
        stride = call.numbers(2, many) if call.value(2) else kernel
        padding = call.numbers(3, many)
        dilation = [1] * many if self.dilation is None else call.numbers(self.dilation, many)
        up = call.flag(self.ceil)
        sizes = [
            _pooling_window_count(
                image[i] + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1, stride[i], up
            )
            for i in range(many)
        ]
        out = given.like(*given.shape[: len(given.shape) - many], *sizes)
        places = out.like(*out.shape, dtype="int64") if self.has_indices else None
        flops = floating_point_operation_count(given.dtype, out.elements * prod(kernel))
        return OperatorWork("reduction", flops, total_tensor_bytes(given, out, places), given.dtype)


def _pooling_window_count(reach: int, stride: int, rounds_up: bool) -> int:
    return (-(-reach // stride) if rounds_up else reach // stride) + 1


def _pooling_backward_work(call: RecordedOperatorCall) -> OperatorWork:
    """Returns FLOPs and bytes of pooling's backward pass: one addition per gradient element."""
    gradient, given = call.tensor_argument(0), call.tensor_argument(1)
    read = total_tensor_bytes(*_tensors_read_by_pooling_backward(call), given.like(*given.shape))
    return OperatorWork("reduction", gradient.elements, read, common_dtype_of_tensors(gradient))


def _tensors_read_by_pooling_backward(call: RecordedOperatorCall) -> list[RecordedTensor]:
    """Returns the tensors that pooling's backward pass reads: the gradient and indexes."""
    return [
        call.tensor_argument(0),
        *(t for t in _tensor_arguments_of_call(call)[2:] if t.dtype == "int64"),
    ]


@dataclass(frozen=True, slots=True)
class _AdaptivePoolingModel:
    """The FLOP model of pooling to a requested result size: one FLOP per input element."""

    dimensions: int

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        given, many = call.tensor_argument(0), self.dimensions
        out = given.like(*given.shape[:-many], *call.numbers(1, many))
        return OperatorWork(
            "reduction", given.elements, total_tensor_bytes(given, out), given.dtype
        )


_REDUCTION_OPERATIONS_PER_ELEMENT: Final = {
    "sum": 1, "nansum": 1, "mean": 1, "prod": 1, "amax": 1, "amin": 1, "max": 1, "min": 1,
    "all": 1, "any": 1, "std": 4, "var": 4, "std_mean": 4, "var_mean": 4, "logsumexp": 4,
    "count_nonzero": 1, "frobenius_norm": 2,
}  # fmt: skip
_LAYER_NORM_BACKWARD_MODEL: Final = _NormBackwardModel(
    flops_per_element=9, given=1, weight=5, weight_operations=4
)
_GROUP_NORM_BACKWARD_MODEL: Final = _NormBackwardModel(
    flops_per_element=9, given=1, weight=4, weight_operations=4
)
_BATCH_NORM_BACKWARD_MODEL: Final = _NormBackwardModel(flops_per_element=9, given=1, weight=2)

REDUCTION_MODELS: Final[dict[str, OperatorWorkModel]] = {
    "native_layer_norm": _layer_norm_work,
    "native_group_norm": _group_norm_work,
    "_fused_rms_norm": _rms_norm_work,
    **dict.fromkeys(
        (
            "native_batch_norm",
            "cudnn_batch_norm",
            "miopen_batch_norm",
            "_native_batch_norm_legit",
            "_native_batch_norm_legit_functional",
        ),
        _batch_norm_work,
    ),
    "_batch_norm_with_update": _training_batch_norm_work,
    "native_layer_norm_backward": _LAYER_NORM_BACKWARD_MODEL,
    "native_group_norm_backward": _GROUP_NORM_BACKWARD_MODEL,
    "_fused_rms_norm_backward": _NormBackwardModel(
        flops_per_element=6, given=1, weight=4, weight_operations=3
    ),
    "native_batch_norm_backward": _BATCH_NORM_BACKWARD_MODEL,
    "batch_norm_backward": _BATCH_NORM_BACKWARD_MODEL,
    "cudnn_batch_norm_backward": _NormBackwardModel(flops_per_element=9, given=0, weight=2),
    "miopen_batch_norm_backward": _NormBackwardModel(flops_per_element=9, given=0, weight=2),
    "_softmax": _RowwiseOperatorModel("softmax", 5),
    "_log_softmax": _RowwiseOperatorModel("softmax", 5),
    "_softmax_backward_data": _RowwiseOperatorModel("softmax", 4),
    "_log_softmax_backward_data": _RowwiseOperatorModel("softmax", 4),
    "cumsum": _RowwiseOperatorModel("reduction", 1),
    "cumprod": _RowwiseOperatorModel("reduction", 1),
    **{
        name: _ReductionModel(operations)
        for name, operations in _REDUCTION_OPERATIONS_PER_ELEMENT.items()
    },
    "argmax": _ReductionModel(1, indices=True),
    "argmin": _ReductionModel(1, indices=True),
    "norm": _ReductionModel(2, dim=2),
    "linalg_vector_norm": _ReductionModel(2, dim=2),
    "max_pool2d_with_indices": _PoolingModel(2, dilation=4, ceil=5, has_indices=True),
    "max_pool3d_with_indices": _PoolingModel(3, dilation=4, ceil=5, has_indices=True),
    "avg_pool2d": _PoolingModel(2, dilation=None, ceil=4),
    "avg_pool3d": _PoolingModel(3, dilation=None, ceil=4),
    "_adaptive_avg_pool2d": _AdaptivePoolingModel(2),
    "_adaptive_avg_pool3d": _AdaptivePoolingModel(3),
    **dict.fromkeys(
        (
            "max_pool2d_with_indices_backward",
            "max_pool3d_with_indices_backward",
            "avg_pool2d_backward",
            "avg_pool3d_backward",
            "_adaptive_avg_pool2d_backward",
            "_adaptive_avg_pool3d_backward",
        ),
        _pooling_backward_work,
    ),
}
"""Maps a reduction or normalisation operator's name, without `aten::`, to the model of its FLOPs
and bytes.
"""
