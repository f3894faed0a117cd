"""FLOP models of elementwise operators: a fixed number of FLOPs for each result element.

A function such as `exp` or `tanh` is one operation. Booleans and integers are not floating point:
their operators move bytes and count no operations. Broadcast or expanded inputs are read once.
"""

from dataclasses import dataclass
from functools import reduce
from typing import Final

from selftime.analysis.models.recorded_operator_calls import (
    OperatorWork,
    OperatorWorkModel,
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
    broadcast_shape_of_two,
    common_dtype_of_tensors,
    total_element_count,
    total_tensor_bytes,
)


def floating_point_operation_count(dtype: str | None, operations: int) -> int:
    """Returns the number of operations if the dtype is floating point, else 0."""
    return 0 if dtype is not None and dtype.startswith(("bool", "int", "uint")) else operations


@dataclass(frozen=True, slots=True)
class _PointwiseModel:
    """The FLOP model of an elementwise operator: a fixed number of FLOPs per result element."""

    flops_per_element: int
    inputs: int
    """Largest number of tensors that the operator reads; a tensor argument after these receives the
    result.
    """
    is_boolean: bool = False
    """Whether the operator's result is boolean."""
    in_place: bool = False

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        given = [a for a in call.arguments if isinstance(a, RecordedTensor)][: self.inputs]
        if not given:
            raise UnknownOperatorArgument
        dtype = common_dtype_of_tensors(*given)
        out = (
            given[0]
            if self.in_place
            else _broadcast_result_tensor(given, "bool" if self.is_boolean else dtype)
        )
        flops = floating_point_operation_count(dtype, self.flops_per_element * out.elements)
        return OperatorWork("pointwise", flops, total_tensor_bytes(*given, out), dtype)


def _broadcast_result_tensor(inputs: list[RecordedTensor], dtype: str | None) -> RecordedTensor:
    return RecordedTensor(reduce(broadcast_shape_of_two, (t.shape for t in inputs)), dtype)


@dataclass(frozen=True, slots=True)
class _ForeachOperatorModel:
    """The FLOP model of an elementwise operator on lists of tensors of unknown dtypes."""

    flops_per_element: int
    writes: bool = True
    """Whether the operator writes as many elements as its first list of tensors has."""

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        first = total_element_count(call.tensor_list_argument(0))
        read = sum(total_element_count(a) for a in call.arguments if isinstance(a, tuple))
        elements = read + self.writes * first
        return OperatorWork("pointwise", self.flops_per_element * first, None, None, elements)


@dataclass(frozen=True, slots=True)
class _OptimizerStepModel:
    """The FLOP model of an optimizer's step on lists of parameters, gradients and states."""

    flops_per_element: int
    read: int
    """Number of tensor lists that the optimizer's step reads."""
    written: tuple[int, ...]
    """Positions of the tensor lists that the optimizer's step also writes."""

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        read = sum(
            total_element_count(call.tensor_list_argument(place)) for place in range(self.read)
        )
        written = sum(
            total_element_count(call.tensor_list_argument(place)) for place in self.written
        )
        flops = self.flops_per_element * total_element_count(call.tensor_list_argument(0))
        return OperatorWork("pointwise", flops, None, None, read + written)


def _dropout_work(call: RecordedOperatorCall) -> OperatorWork:
    """Returns the FLOPs and bytes of dropout, which writes a mask and the scaled input."""
    given = call.tensor_argument(0)
    mask = given.like(*given.shape, dtype="bool")
    read = total_tensor_bytes(given, given.like(*given.shape), mask)
    return OperatorWork("pointwise", 2 * given.elements, read, given.dtype)


_UNARY_POINTWISE_OPERATORS: Final = (
    "abs acos acosh asin asinh atan atanh ceil clamp clamp_max clamp_min cos cosh deg2rad digamma"
    " elu erf erfc erfinv exp exp2 expm1 floor frac gelu hardshrink hardsigmoid hardswish hardtanh"
    " leaky_relu lgamma log log10 log1p log2 log_sigmoid_forward logit mish nan_to_num neg"
    " rad2deg reciprocal relu relu6 round rsqrt sgn sigmoid sign silu sin sinc sinh softplus"
    " softshrink sqrt square tan tanh threshold trunc"
)
_BINARY_POINTWISE_OPERATORS: Final = (
    "add atan2 copysign div floor_divide fmax fmin fmod hypot maximum minimum mul pow remainder"
    " rsub sub true_divide xlogy"
)
_COMPARISON_POINTWISE_OPERATORS: Final = (
    "eq ge gt isclose isfinite isinf isnan isneginf isposinf le logical_and logical_not logical_or"
    " logical_xor lt ne signbit"
)
_BITWISE_POINTWISE_OPERATORS: Final = (
    "bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor"
    " tril triu"
)
_OPERATIONS_AND_INPUTS_BY_OPERATOR: Final = {  # operations, tensors
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
_FOREACH_OPERATORS: Final = (
    "abs add ceil clamp_max clamp_min cos div erf exp expm1 floor frac log log10 log1p log2"
    " maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sqrt sub tan tanh trunc"
)
_MODEL_BY_OTHER_FOREACH_OPERATOR: Final = {
    "addcdiv": _ForeachOperatorModel(3),
    "addcmul": _ForeachOperatorModel(3),
    "lerp": _ForeachOperatorModel(3),
    "norm": _ForeachOperatorModel(2, writes=False),
    "copy": _ForeachOperatorModel(0, writes=False),
    "zero": _ForeachOperatorModel(0, writes=False),
}


def _pointwise_models_by_operator(
    operator_names: str, operations: int, inputs: int, *, is_boolean: bool = False
) -> dict[str, OperatorWorkModel]:
    """Returns the FLOP model of each elementwise operator name and of its in-place variant."""
    return {
        f"{name}{end}": _PointwiseModel(operations, inputs, is_boolean, in_place=bool(end))
        for name in operator_names.split()
        for end in ("", "_")
    }


def _foreach_models_by_operator(
    operator_names: str, model: OperatorWorkModel
) -> dict[str, OperatorWorkModel]:
    return {f"_foreach_{name}{end}": model for name in operator_names.split() for end in ("", "_")}


POINTWISE_MODELS: Final[dict[str, OperatorWorkModel]] = {
    **_pointwise_models_by_operator(_UNARY_POINTWISE_OPERATORS, 1, 1),
    **_pointwise_models_by_operator(_BINARY_POINTWISE_OPERATORS, 1, 2),
    **_pointwise_models_by_operator(_COMPARISON_POINTWISE_OPERATORS, 1, 2, is_boolean=True),
    **_pointwise_models_by_operator(_BITWISE_POINTWISE_OPERATORS, 0, 2),
    **{
        name: model
        for op, n in _OPERATIONS_AND_INPUTS_BY_OPERATOR.items()
        for name, model in _pointwise_models_by_operator(op, *n).items()
    },
    **_foreach_models_by_operator(_FOREACH_OPERATORS, _ForeachOperatorModel(1)),
    **{
        name: m
        for op, n in _MODEL_BY_OTHER_FOREACH_OPERATOR.items()
        for name, m in _foreach_models_by_operator(op, n).items()
    },
    **dict.fromkeys(("__and__", "__or__", "__xor__"), _PointwiseModel(0, 2)),
    "native_dropout": _dropout_work,
    "_fused_dropout": _dropout_work,
    # p (1 - lr w); 3 for the mean, 4 for the square; sqrt, scale, add; scale, divide, subtract
    **dict.fromkeys(("_fused_adam_", "_fused_adamw_"), _OptimizerStepModel(14, 5, (0, 2, 3, 4))),
    # decay 2, momentum 2, step 2
    "_fused_sgd_": _OptimizerStepModel(6, 3, (0, 2)),
    # decay 2, square and add 2, root and add 2, scale, divide, subtract
    "_fused_adagrad_": _OptimizerStepModel(9, 3, (0, 2)),
}
"""Maps an elementwise operator's name, without `aten::`, to the model of its FLOPs and bytes."""
