"""What the names of operators say of the kind of their work."""

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


def has_bias_place(name: str) -> bool:
    """Whether an operator is a layer that may have a bias.

    >>> has_bias_place("aten::conv1d"), has_bias_place("aten::mm")
    (True, False)
    """
    return _LAYER.fullmatch(name) is not None


def begins_with_bias(name: str) -> bool:
    """Whether the bias is the first argument of such an operator, not the third.

    >>> begins_with_bias("aten::addmm"), begins_with_bias("aten::linear")
    (True, False)
    """
    return name == "aten::addmm"


def handles_bias(name: str) -> bool:
    """Whether an operator within a layer, or its gradient, is the bias's: the sum, or its gradient.

    >>> handles_bias("aten::add_"), handles_bias("aten::sum"), handles_bias("aten::mm")
    (True, True, False)
    """
    return name in {"aten::add_", "aten::sum"}


def operator_and_overload(name: str) -> tuple[str, str | None]:
    """An operator's name, and the overload that recorders write behind it when they are asked.

    >>> operator_and_overload("aten::select.int"), operator_and_overload("aten::relu")
    (('aten::select', 'int'), ('aten::relu', None))
    >>> operator_and_overload("torch.distributed.ddp.reducer::copy_bucket_to_grad")
    ('torch.distributed.ddp.reducer::copy_bucket_to_grad', None)
    """
    found = _OVERLOADED.fullmatch(name)
    return (found[1], found[2]) if found else (name, None)


def is_arithmetic(name: str) -> bool:
    """Whether an operator does an instruction or two of arithmetic with each number.

    >>> is_arithmetic("aten::mul_"), is_arithmetic("aten::addcdiv_"), is_arithmetic("aten::tanh")
    (True, True, False)
    """
    return _ARITHMETIC.fullmatch(name) is not None


def is_matrix_operator(name: str) -> bool:
    """Whether an operator's work is products of matrices, which tensor or matrix cores can do.

    Products, convolutions, attention and recurrent cells, forward and backward, whoever wrote them.

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
