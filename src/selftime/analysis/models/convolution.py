"""Convolutions: two operations for each number of the result and each weight that it takes.

    forward                         2 b out_places k c_in/groups c_out
    transposed, forward             2 b in_places k c_in c_out/groups
    gradients of input and weight   as many operations as forward, each

The gradient of the bias is a sum, and is not counted, as torch.utils.flop_counter has it.
"""

from dataclasses import dataclass
from math import prod
from typing import Final

from selftime.analysis.models.calls import Call, Model, Tensor, Untold, Work, moved, wider


@dataclass(frozen=True, slots=True)
class _Forward:
    """At which places an operator takes what; None if it takes no such argument."""

    stride: int | None
    padding: int | None
    dilation: int | None
    bias: int | None = 2
    transposed: int | bool = False
    output_padding: int | None = None
    groups: int | None = None

    def __call__(self, call: Call) -> Work:
        given, weight = call.tensor(0), call.tensor(1)
        if len(given.shape) != len(weight.shape):
            raise Untold
        out = self._result(call, given, weight)
        per_weight = given.elements if self._is_transposed(call) else out.elements
        bias = None if self.bias is None else call.optional(self.bias)
        flops = 2 * per_weight * prod(weight.shape[1:])
        return Work("convolution", flops, moved(given, weight, bias, out), wider(given, weight))

    def _is_transposed(self, call: Call) -> bool:
        own = self.transposed
        return own if isinstance(own, bool) else call.flag(own)

    def _result(self, call: Call, given: Tensor, weight: Tensor) -> Tensor:
        batch, _, *places = given.shape
        kernel, many = weight.shape[2:], len(places)
        stride, dilation = (_numbers(call, p, many, 1) for p in (self.stride, self.dilation))
        padding = _padding(call, self.padding, places, many)
        reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
        if self._is_transposed(call):
            more = _numbers(call, self.output_padding, many, 0)
            groups = 1 if self.groups is None else call.number(self.groups)
            sizes = [
                (places[i] - 1) * stride[i] - 2 * padding[i] + reach[i] + more[i]
                for i in range(many)
            ]
            return given.like(batch, weight.shape[1] * groups, *sizes)
        if self.padding is not None and call.value(self.padding) == "same":
            return given.like(batch, weight.shape[0], *places)
        sizes = [(places[i] + 2 * padding[i] - reach[i]) // stride[i] + 1 for i in range(many)]
        if any(size < 0 for size in sizes):
            raise Untold
        return given.like(batch, weight.shape[0], *sizes)


def _numbers(call: Call, place: int | None, many: int, default: int) -> list[int]:
    return [default] * many if place is None else call.numbers(place, many)


def _padding(call: Call, place: int | None, places: list[int], many: int) -> list[int]:
    if place is None or call.value(place) in ("same", "valid"):
        return [0] * len(places)
    return call.numbers(place, many)


def _backward(call: Call) -> Work:
    """Gradients as asked for, from the gradient of the result, the input and the weight."""
    return _gradients(call, transposed=call.flag(7), mask=call.flags(10))


def _gradients(call: Call, *, transposed: bool, mask: list[bool]) -> Work:
    gradient, given, weight = (call.tensor(place) for place in range(3))
    of_input, of_weight, *_ = mask
    per_weight = given.elements if transposed else gradient.elements
    flops = 2 * per_weight * prod(weight.shape[1:]) * (of_input + of_weight)
    read = (gradient, weight if of_input else None, given if of_weight else None)
    written = (
        given.like(*given.shape) if of_input else None,
        weight.like(*weight.shape) if of_weight else None,
    )
    return Work("convolution", flops, moved(*read, *written), wider(gradient, given))


def _backward_overridden(call: Call) -> Work:
    return _gradients(call, transposed=call.flag(6), mask=call.flags(9))


def _slow_backward(call: Call) -> Work:
    return _gradients(call, transposed=False, mask=call.flags(6))


def _input_gradient(call: Call) -> Work:
    """The gradient of the input alone, as recorders before 2021-10 have it: its size is no tensor.

    Nor is it recorded for transposed convolutions, which have other operators.
    """
    gradient, weight = call.tensor(1), call.tensor(2)
    flops = 2 * gradient.elements * prod(weight.shape[1:])
    return Work("convolution", flops, None, wider(gradient, weight))


_CUDNN = _Forward(padding=2, stride=3, dilation=4, bias=None, groups=5)
_LIBRARY = _Forward(padding=3, stride=4, dilation=5, groups=6)
_PUBLIC = _Forward(stride=3, padding=4, dilation=5, groups=6)
_WHOLE = _Forward(stride=3, padding=4, dilation=5, transposed=6, output_padding=7, groups=8)
_TRANSPOSED = _Forward(stride=3, padding=4, output_padding=5, groups=6, dilation=7, transposed=True)
_CUDNN_TRANSPOSED = _Forward(
    padding=2, output_padding=3, stride=4, dilation=5, groups=6, bias=None, transposed=True
)
_SLOW = _Forward(bias=3, stride=4, padding=5, dilation=None)
_DILATED = _Forward(bias=3, stride=4, padding=5, dilation=6)
_SLOW_TRANSPOSED = _Forward(
    bias=3, stride=4, padding=5, output_padding=6, dilation=7, transposed=True
)

CONVOLUTIONS: Final[dict[str, Model]] = {
    **dict.fromkeys(("conv1d", "conv2d", "conv3d"), _PUBLIC),
    **dict.fromkeys(("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"), _TRANSPOSED),
    **dict.fromkeys(("convolution", "_convolution", "convolution_overrideable"), _WHOLE),
    "cudnn_convolution": _CUDNN,
    "cudnn_convolution_transpose": _CUDNN_TRANSPOSED,
    "_mps_convolution_transpose": _CUDNN_TRANSPOSED,
    "cudnn_convolution_relu": _PUBLIC,
    "miopen_convolution_relu": _PUBLIC,
    "cudnn_convolution_add_relu": _Forward(bias=4, stride=5, padding=6, dilation=7, groups=8),
    "miopen_convolution_add_relu": _Forward(bias=4, stride=5, padding=6, dilation=7, groups=8),
    "miopen_convolution": _LIBRARY,
    "miopen_depthwise_convolution": _LIBRARY,
    "mkldnn_convolution": _LIBRARY,
    "_mps_convolution": _LIBRARY,
    "miopen_convolution_transpose": _Forward(
        padding=3, output_padding=4, stride=5, dilation=6, groups=7, transposed=True
    ),
    "_nnpack_spatial_convolution": _Forward(padding=3, stride=4, dilation=None),
    **dict.fromkeys(
        ("thnn_conv2d", "_slow_conv2d_forward", "slow_conv3d", "slow_conv3d_forward"), _SLOW
    ),
    **dict.fromkeys(
        ("slow_conv_dilated2d", "slow_conv_dilated3d", "_conv_depthwise2d", "conv_depthwise3d"),
        _DILATED,
    ),
    **dict.fromkeys(("slow_conv_transpose2d", "slow_conv_transpose3d"), _SLOW_TRANSPOSED),
    "convolution_backward": _backward,
    "convolution_backward_overrideable": _backward_overridden,
    "_slow_conv2d_backward": _slow_backward,
    **dict.fromkeys(
        (
            "cudnn_convolution_backward_input",
            "miopen_convolution_backward_input",
            "mkldnn_convolution_backward_input",
        ),
        _input_gradient,
    ),
}
