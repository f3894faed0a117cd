"""Classify operators by the kind of their work: layers, arithmetic, matrix products."""

import re
from typing import Final

_LAYER: Final = re.compile(r"aten::(?:conv[123]d|conv_transpose[123]d|convolution|linear|addmm)")

_PRODUCT: Final = (
    r"(?:addmm|addmv|addbmm|baddbmm|bmm|mm|mv|addr|matmul|linear|multi_dot|chain_matmul|einsum)"
)
_MATRIX: Final = re.compile(
    rf"(?:\w*_)?{_PRODUCT}(?:_|_backward|_activation|_pointwise)?"
    r"|\w*conv(?:olution)?(?:[123]d|_tbc)?(?:_\w+)?"
    r"|\w*(?:scaled_dot_product|flash_attn|flash_attention|efficient_attention|cudnn_attention"
    r"|unified_attention|paged_attention|flex_attention|mha_(?:fwd|bwd))\w*"
    r"|(?:\w*_)?(?:lstm|gru|rnn)(?:_\w+)?"
    r"|\w*(?:gemm|moe_forward|fused_moe|fused_experts)\w*"
)
_NODE: Final = re.compile(
    r"(?:\w*Convolution\w*|Conv\w*|Addmm|Addmv|Addbmm|Baddbmm|Bmm|Mm|Mv|Addr|Linear|Matmul"
    r"|\w*ScaledDotProduct\w*|\w*FlashAttention\w*|\w*EfficientAttention\w*|FlashAttn\w*"
    r"|\w*(?:Rnn|Lstm|Gru)\w*|\w*ScaledMm|\w*GroupedMm)Backward\d*"
)
_ARITHMETIC: Final = re.compile(
    r"aten::(?:add|sub|rsub|mul|div|true_divide|square|sqrt|rsqrt|reciprocal|lerp|addcmul|addcdiv)_?"
)

_SPARSE: Final = re.compile(
    r"aten::(?:_?sparse_(?!semi_structured)\w+|_?coalesce|_coalesced_|is_coalesced|_?nnz|_?indices"
    r"|_?values|dense_dim|\w+_sparse_backward)"
)

_OVERLOADED: Final = re.compile(r"(\w+::\w+)\.(\w+)")


def may_have_bias(name: str) -> bool:
    """Whether an operator is a layer that can have a bias.

    >>> may_have_bias("aten::conv1d"), may_have_bias("aten::mm")
    (True, False)
    """
    return _LAYER.fullmatch(name) is not None


def is_bias_first(name: str) -> bool:
    """Whether the operator's bias is its first argument instead of its third.

    >>> is_bias_first("aten::addmm"), is_bias_first("aten::linear")
    (True, False)
    """
    return name == "aten::addmm"


def is_bias_operator(name: str) -> bool:
    """Whether an operator within a layer adds the bias, or sums its gradient.

    >>> is_bias_operator("aten::add_"), is_bias_operator("aten::sum"), is_bias_operator("aten::mm")
    (True, True, False)
    """
    return name in {"aten::add_", "aten::sum"}


def operator_and_overload(name: str) -> tuple[str, str | None]:
    """Returns an operator's name and its overload, which is None if not recorded.

    >>> operator_and_overload("aten::select.int"), operator_and_overload("aten::relu")
    (('aten::select', 'int'), ('aten::relu', None))
    >>> operator_and_overload("torch.distributed.ddp.reducer::copy_bucket_to_grad")
    ('torch.distributed.ddp.reducer::copy_bucket_to_grad', None)
    """
    found = _OVERLOADED.fullmatch(name)
    return (found[1], found[2]) if found else (name, None)


def is_arithmetic(name: str) -> bool:
    """Whether an operator executes one or two arithmetic instructions per element.

    >>> is_arithmetic("aten::mul_"), is_arithmetic("aten::addcdiv_"), is_arithmetic("aten::tanh")
    (True, True, False)
    """
    return _ARITHMETIC.fullmatch(name) is not None


def is_matrix_operator(name: str) -> bool:
    """Whether an operator computes matrix products, which tensor cores can do.

    Products, convolutions, attention and recurrent cells, forward and backward, of any library.

    >>> is_matrix_operator("aten::addmm_"), is_matrix_operator("ConvolutionBackward0")
    (True, True)
    >>> is_matrix_operator("aten::_scaled_mm"), is_matrix_operator("aten::_thnn_fused_lstm_cell")
    (True, True)
    >>> is_matrix_operator("aten::add"), is_matrix_operator("aten::mm_like_name")
    (False, False)
    """
    if "::" not in name:
        return _NODE.fullmatch(name) is not None
    return _MATRIX.fullmatch(name.rpartition("::")[2].partition(".")[0]) is not None


def is_sparse_operator(name: str) -> bool:
    """Whether an operator works on tensors that hold only the places that are not zero.

    >>> is_sparse_operator("aten::_nnz"), is_sparse_operator("aten::embedding_sparse_backward")
    (True, True)
    >>> is_sparse_operator("aten::_sparse_coo_tensor_unsafe"), is_sparse_operator("aten::add_")
    (True, False)
    """
    return _SPARSE.fullmatch(operator_and_overload(name)[0]) is not None
