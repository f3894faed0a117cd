"""Classifies operators by the kind of their work: layers, arithmetic, matrix products."""

import re
from typing import Final

_LAYER_WITH_BIAS: Final = re.compile(
    r"aten::(?:conv[123]d|conv_transpose[123]d|convolution|linear|addmm)"
)

_PRODUCT_OPERATOR: Final = (
    r"(?:addmm|addmv|addbmm|baddbmm|bmm|mm|mv|addr|matmul|linear|multi_dot|chain_matmul|einsum)"
)
_MATRIX_OPERATOR: Final = re.compile(
    rf"(?:\w*_)?{_PRODUCT_OPERATOR}(?:_|_backward|_activation|_pointwise)?"
    r"|\w*conv(?:olution)?(?:[123]d|_tbc)?(?:_\w+)?"
    r"|\w*(?:scaled_dot_product|flash_attn|flash_attention|efficient_attention|cudnn_attention"
    r"|unified_attention|paged_attention|flex_attention|mha_(?:fwd|bwd))\w*"
    r"|(?:\w*_)?(?:lstm|gru|rnn)(?:_\w+)?"
    r"|\w*(?:gemm|moe_forward|fused_moe|fused_experts)\w*"
)
_MATRIX_BACKWARD_NODE: Final = re.compile(
    r"(?:\w*Convolution\w*|Conv\w*|Addmm|Addmv|Addbmm|Baddbmm|Bmm|Mm|Mv|Addr|Linear|Matmul"
    r"|\w*ScaledDotProduct\w*|\w*FlashAttention\w*|\w*EfficientAttention\w*|FlashAttn\w*"
    r"|\w*(?:Rnn|Lstm|Gru)\w*|\w*ScaledMm|\w*GroupedMm)Backward\d*"
)
_ARITHMETIC_OPERATOR: Final = re.compile(
    r"aten::(?:add|sub|rsub|mul|div|true_divide|square|sqrt|rsqrt|reciprocal|lerp|addcmul|addcdiv)_?"
)

_SPARSE_OPERATOR: Final = re.compile(
    r"aten::(?:_?sparse_(?!semi_structured)\w+|_?coalesce|_coalesced_|is_coalesced|_?nnz|_?indices"
    r"|_?values|dense_dim|\w+_sparse_backward)"
)

_OPERATOR_WITH_OVERLOAD: Final = re.compile(r"(\w+::\w+)\.(\w+)")

_FORWARD_CONVOLUTION: Final = re.compile(r"aten::(?:conv[23]d|convolution)")
_CONVOLUTION_LAYER: Final = re.compile(r"nn\.Module: (?:Lazy)?Conv(?:Transpose)?[123]d_\d+")
_GROUPS_ARGUMENT_OF_CONVOLUTION: Final = 8
_GROUPS_ARGUMENT_OF_CONVOLUTION_BY_DIMENSIONS: Final = 6


def is_forward_convolution(operator: str) -> bool:
    """Returns whether an operator is a convolution of a forward pass in two dimensions or three.

    >>> is_forward_convolution("aten::conv2d"), is_forward_convolution("aten::conv_transpose2d")
    (True, False)
    """
    return _FORWARD_CONVOLUTION.fullmatch(operator) is not None


def convolution_groups_argument(operator: str) -> int:
    """Returns the index of the argument `groups` of a convolution of a forward pass.

    >>> [convolution_groups_argument(name) for name in ("aten::conv2d", "aten::convolution")]
    [6, 8]
    """
    if operator == "aten::convolution":
        return _GROUPS_ARGUMENT_OF_CONVOLUTION
    return _GROUPS_ARGUMENT_OF_CONVOLUTION_BY_DIMENSIONS


def is_backward_convolution(operator: str) -> bool:
    """Returns whether an operator computes the gradients of a convolution.

    >>> is_backward_convolution("aten::convolution_backward")
    True
    """
    return operator == "aten::convolution_backward"


def is_convolution_layer(frame_name: str) -> bool:
    """Returns whether a frame is the call of a layer of `torch.nn` with a filter of its own.

    >>> is_convolution_layer("nn.Module: Conv2d_3"), is_convolution_layer("nn.Module: Blur_0")
    (True, False)
    """
    return _CONVOLUTION_LAYER.fullmatch(frame_name) is not None


def may_have_bias(operator: str) -> bool:
    """Returns whether an operator is a layer that can have a bias.

    >>> may_have_bias("aten::conv1d"), may_have_bias("aten::mm")
    (True, False)
    """
    return _LAYER_WITH_BIAS.fullmatch(operator) is not None


def takes_bias_first(operator: str) -> bool:
    """Returns whether the bias of a layer's operator is its first argument instead of its third.

    >>> takes_bias_first("aten::addmm"), takes_bias_first("aten::linear")
    (True, False)
    """
    return operator == "aten::addmm"


def is_bias_operator(operator: str) -> bool:
    """Returns whether an operator called by a layer adds the bias, or sums the bias's gradient.

    >>> is_bias_operator("aten::add_"), is_bias_operator("aten::sum"), is_bias_operator("aten::mm")
    (True, True, False)
    """
    return operator in {"aten::add_", "aten::sum"}


def operator_and_overload(operator: str) -> tuple[str, str | None]:
    """Returns an operator's name and its overload, or None if the overload is not recorded.

    >>> operator_and_overload("aten::select.int"), operator_and_overload("aten::relu")
    (('aten::select', 'int'), ('aten::relu', None))
    >>> operator_and_overload("torch.distributed.ddp.reducer::copy_bucket_to_grad")
    ('torch.distributed.ddp.reducer::copy_bucket_to_grad', None)
    """
    found = _OPERATOR_WITH_OVERLOAD.fullmatch(operator)
    return (found[1], found[2]) if found else (operator, None)


def is_arithmetic(operator: str) -> bool:
    """Returns whether an operator executes one or two arithmetic instructions per element.

    >>> is_arithmetic("aten::mul_"), is_arithmetic("aten::addcdiv_"), is_arithmetic("aten::tanh")
    (True, True, False)
    """
    return _ARITHMETIC_OPERATOR.fullmatch(operator) is not None


def is_matrix_operator(operator: str) -> bool:
    """Returns whether an operator computes matrix products, which tensor cores can do.

    Products, convolutions, attention and recurrent cells, forward and backward, of any library.

    >>> is_matrix_operator("aten::addmm_"), is_matrix_operator("ConvolutionBackward0")
    (True, True)
    >>> is_matrix_operator("aten::_scaled_mm"), is_matrix_operator("aten::_thnn_fused_lstm_cell")
    (True, True)
    >>> is_matrix_operator("aten::add"), is_matrix_operator("aten::mm_like_name")
    (False, False)
    """
    if "::" not in operator:
        return _MATRIX_BACKWARD_NODE.fullmatch(operator) is not None
    return _MATRIX_OPERATOR.fullmatch(operator.rpartition("::")[2].partition(".")[0]) is not None


def is_sparse_operator(operator: str) -> bool:
    """Returns whether an operator works on sparse tensors.

    >>> is_sparse_operator("aten::_nnz"), is_sparse_operator("aten::embedding_sparse_backward")
    (True, True)
    >>> is_sparse_operator("aten::_sparse_coo_tensor_unsafe"), is_sparse_operator("aten::add_")
    (True, False)
    """
    return _SPARSE_OPERATOR.fullmatch(operator_and_overload(operator)[0]) is not None
