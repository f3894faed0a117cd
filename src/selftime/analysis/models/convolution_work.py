"""FLOP models of convolutions: two FLOPs for each product of an input element and a weight.

forward                         2 b out_places k c_in/groups c_out
    transposed, forward             2 b in_places k c_in c_out/groups
    gradients of input and weight   as many operations as forward, each

The gradient of the bias is a sum, and is not counted, as in torch.utils.flop_counter.
"""

from dataclasses import dataclass
from math import prod
from typing import Final

from selftime.analysis.models.recorded_operator_calls import (
    OperatorWork,
    OperatorWorkModel,
    RecordedOperatorCall,
    RecordedTensor,
    UnknownOperatorArgument,
    common_dtype_of_tensors,
    total_tensor_bytes,
)


@dataclass(frozen=True, slots=True)
class _ForwardConvolutionModel:
    """Computes a convolution's FLOPs and bytes; fields are argument positions, None if absent."""

    stride: int | None
    padding: int | None
    dilation: int | None
    bias: int | None = 2
    transposed: int | bool = False
    output_padding: int | None = None
    groups: int | None = None

    def __call__(self, call: RecordedOperatorCall) -> OperatorWork:
        given, weight = call.tensor_argument(0), call.tensor_argument(1)
        if len(given.shape) != len(weight.shape):
            raise UnknownOperatorArgument
        out = self._result_tensor(call, given, weight)
        per_weight = given.elements if self._is_transposed(call) else out.elements
        bias = None if self.bias is None else call.optional_tensor_argument(self.bias)
        flops = 2 * per_weight * prod(weight.shape[1:])
        return OperatorWork(
            "convolution",
            flops,
            total_tensor_bytes(given, weight, bias, out),
            common_dtype_of_tensors(given, weight),
        )

    def _is_transposed(self, call: RecordedOperatorCall) -> bool:
        own = self.transposed
        return own if isinstance(own, bool) else call.flag(own)

    def _result_tensor(
        self, call: RecordedOperatorCall, input_tensor: RecordedTensor, weight: RecordedTensor
    ) -> RecordedTensor:
        batch, _, *places = input_tensor.shape
        kernel, many = weight.shape[2:], len(places)
        stride, dilation = (
            _integer_arguments_or_default(call, p, many, 1) for p in (self.stride, self.dilation)
        )
        padding = _convolution_padding(call, self.padding, places, many)
        reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        if self._is_transposed(call):
            more = _integer_arguments_or_default(call, self.output_padding, many, 0)
            groups = 1 if self.groups is None else call.number(self.groups)
            sizes = [
                (places[i] - 1) * stride[i] - 2 * padding[i] + reach[i] + more[i]
                for i in range(many)
            ]
            return input_tensor.like(batch, weight.shape[1] * groups, *sizes)
        if self.padding is not None and call.value(self.padding) == "same":
            return input_tensor.like(batch, weight.shape[0], *places)
        sizes = [(places[i] + 2 * padding[i] - reach[i]) // stride[i] + 1 for i in range(many)]
        if any(size < 0 for size in sizes):
            raise UnknownOperatorArgument
        return input_tensor.like(batch, weight.shape[0], *sizes)


def _integer_arguments_or_default(
    call: RecordedOperatorCall, position: int | None, count: int, default: int
) -> list[int]:
    return [default] * count if position is None else call.numbers(position, count)


def _convolution_padding(
    call: RecordedOperatorCall, position: int | None, image_sizes: list[int], dimensions: int
) -> list[int]:
    if position is None or call.value(position) in ("same", "valid"):
        return [0] * len(image_sizes)
    return call.numbers(position, dimensions)


def _convolution_backward_work(call: RecordedOperatorCall) -> OperatorWork:
    """Returns the FLOPs and bytes of a convolution's requested gradients."""
    return _convolution_gradient_work(call, is_transposed=call.flag(7), output_mask=call.flags(10))


def _convolution_gradient_work(
    call: RecordedOperatorCall, *, is_transposed: bool, output_mask: list[bool]
) -> OperatorWork:
    gradient, given, weight = (call.tensor_argument(place) for place in range(3))
    of_input, of_weight, *_ = output_mask
    per_weight = given.elements if is_transposed else gradient.elements
    flops = 2 * per_weight * prod(weight.shape[1:]) * (of_input + of_weight)
    read = (gradient, weight if of_input else None, given if of_weight else None)
    written = (
        given.like(*given.shape) if of_input else None,
        weight.like(*weight.shape) if of_weight else None,
    )
    return OperatorWork(
        "convolution",
        flops,
        total_tensor_bytes(*read, *written),
        common_dtype_of_tensors(gradient, given),
    )


def _convolution_overrideable_backward_work(call: RecordedOperatorCall) -> OperatorWork:
    return _convolution_gradient_work(call, is_transposed=call.flag(6), output_mask=call.flags(9))


def _slow_convolution_backward_work(call: RecordedOperatorCall) -> OperatorWork:
    return _convolution_gradient_work(call, is_transposed=False, output_mask=call.flags(6))


def _convolution_input_gradient_work(call: RecordedOperatorCall) -> OperatorWork:
    """Returns the FLOPs of the input gradient operator that PyTorch had before September 2021.

    The input's size is not recorded as a tensor there. Transposed convolutions have other
    operators.
    """
    gradient, weight = call.tensor_argument(1), call.tensor_argument(2)
    flops = 2 * gradient.elements * prod(weight.shape[1:])
    return OperatorWork("convolution", flops, None, common_dtype_of_tensors(gradient, weight))


_CUDNN_CONVOLUTION_MODEL = _ForwardConvolutionModel(
    padding=2, stride=3, dilation=4, bias=None, groups=5
)
_MIOPEN_CONVOLUTION_MODEL = _ForwardConvolutionModel(padding=3, stride=4, dilation=5, groups=6)
_CONV_FUNCTION_MODEL = _ForwardConvolutionModel(stride=3, padding=4, dilation=5, groups=6)
_CONVOLUTION_MODEL = _ForwardConvolutionModel(
    stride=3, padding=4, dilation=5, transposed=6, output_padding=7, groups=8
)
_CONV_TRANSPOSE_MODEL = _ForwardConvolutionModel(
    stride=3, padding=4, output_padding=5, groups=6, dilation=7, transposed=True
)
_CUDNN_CONV_TRANSPOSE_MODEL = _ForwardConvolutionModel(
    padding=2, output_padding=3, stride=4, dilation=5, groups=6, bias=None, transposed=True
)
_SLOW_CONV_MODEL = _ForwardConvolutionModel(bias=3, stride=4, padding=5, dilation=None)
_SLOW_DILATED_CONV_MODEL = _ForwardConvolutionModel(bias=3, stride=4, padding=5, dilation=6)
_SLOW_CONV_TRANSPOSE_MODEL = _ForwardConvolutionModel(
    bias=3, stride=4, padding=5, output_padding=6, dilation=7, transposed=True
)

CONVOLUTION_MODELS: Final[dict[str, OperatorWorkModel]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _CONV_FUNCTION_MODEL),
    **dict.fromkeys(
        ("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _CONV_TRANSPOSE_MODEL
    ),
    **dict.fromkeys(
        ("convolution", "_convolution", "convolution_overrideable"), _CONVOLUTION_MODEL
    ),
    "cudnn_convolution": _CUDNN_CONVOLUTION_MODEL,
    "cudnn_convolution_transpose": _CUDNN_CONV_TRANSPOSE_MODEL,
    "_mps_convolution_transpose": _CUDNN_CONV_TRANSPOSE_MODEL,
    "cudnn_convolution_relu": _CONV_FUNCTION_MODEL,
    "miopen_convolution_relu": _CONV_FUNCTION_MODEL,
    "cudnn_convolution_add_relu": _ForwardConvolutionModel(
        bias=4, stride=5, padding=6, dilation=7, groups=8
    ),
    "miopen_convolution_add_relu": _ForwardConvolutionModel(
        bias=4, stride=5, padding=6, dilation=7, groups=8
    ),
    "miopen_convolution": _MIOPEN_CONVOLUTION_MODEL,
    "miopen_depthwise_convolution": _MIOPEN_CONVOLUTION_MODEL,
    "mkldnn_convolution": _MIOPEN_CONVOLUTION_MODEL,
    "_mps_convolution": _MIOPEN_CONVOLUTION_MODEL,
    "miopen_convolution_transpose": _ForwardConvolutionModel(
        padding=3, output_padding=4, stride=5, dilation=6, groups=7, transposed=True
    ),
    "_nnpack_spatial_convolution": _ForwardConvolutionModel(padding=3, stride=4, dilation=None),
    **dict.fromkeys(
        ("thnn_conv2d", "_slow_conv2d_forward", "slow_conv3d", "slow_conv3d_forward"),
        _SLOW_CONV_MODEL,
    ),
    **dict.fromkeys(
        ("slow_conv_dilated2d", "slow_conv_dilated3d", "_conv_depthwise2d", "conv_depthwise3d"),
        _SLOW_DILATED_CONV_MODEL,
    ),
    **dict.fromkeys(("slow_conv_transpose2d", "slow_conv_transpose3d"), _SLOW_CONV_TRANSPOSE_MODEL),
    "convolution_backward": _convolution_backward_work,
    "convolution_backward_overrideable": _convolution_overrideable_backward_work,
    "_slow_conv2d_backward": _slow_convolution_backward_work,
    **dict.fromkeys(
        (
            "cudnn_convolution_backward_input",
            "miopen_convolution_backward_input",
            "mkldnn_convolution_backward_input",
        ),
        _convolution_input_gradient_work,
    ),
}
"""Maps a convolution operator's name, without `aten::`, to the model of its FLOPs and bytes."""
