"""Classifies kernels by name: kind of computation, use of tensor cores, change of tensor layout."""

import re
from typing import Final

from selftime.names.collective_kernels import is_collective_kernel
from selftime.names.kernel_symbols import short_kernel_name

_SCALAR_KERNEL_OF_MIXED_FAMILY: Final = re.compile(
    # of families that use both kinds of units, those that do not use tensor cores
    r"_ffma(?:_|$)|_simt_|OpClassSimt|_sm5[0-9](?!\d)"
    r"|flash_bwd_(?:dot_do_o|convert_dq|clear)|flash_fwd_splitkv_combine|combine_kernel"
    r"|FlashAttn(?:Bwd(?:Pre|Post)process|FwdCombine)|convert_dq_to"
)
"""Matches kernels without tensor cores whose family also has kernels with tensor cores."""
_TENSOR_CORE_KERNEL: Final = re.compile(
    # the shape of the matrix instruction: s884, h1688, bf16_s16816, i8816, d884, s161616
    r"(?<![\da-z])[dhsicz](?:884|1688|16816|16832|16864|8816|8832|161616)(?!\d)"
    # the instruction, or CUTLASS's name for it
    r"|(?:^|[\W_\d])[hiuqd]mma(?:[._]|\d|$)|tensorop(?!With)|tensor16x8x|_xmma_"
    r"|w?gmma|wmma|utcmma|tcgen05|umma"
    # cuBLASLt since Hopper, PyTorch's own
    r"|^nvjet_|(?:^|[\s:])tinygemm_m\d+n\d+k\d+"
    # fused attention, and products of serving engines
    r"|flash_(?:fwd|bwd|fprop|bprop)|FlashAttn(?:Fwd|Bwd)|fmha|flash_attn|flashinfer::.*Prefill"
    r"|marlin|machete|deep_?gemm|^(?:bmm|gemm)_\w+_t\d+x\d+x\d+"
    # AMD: Tensile with a matrix instruction, Composable Kernel, MIOpen's assembly
    r"|^Cijk_\w*_MI\d+x\d+x\d+|xdlops|_xdl(?:_|[A-Z]|$)|mfma|_gtcx\d?_",
    re.IGNORECASE,
)
"""Matches kernels that use tensor cores or matrix cores."""
_SCALAR_PRODUCT_KERNEL: Final = re.compile(
    r"(?:volta|turing|ampere|hopper|maxwell|pascal|gfx\w+|cudnn)_(?:[sdcz]gemm|gcgemm|scudnn)"
    r"|(?<![a-z])[sdcz]gemm|gemmSN_|gemmk1|gemv|(?:^|[\s:])dot_kernel|splitkreduce"
    r"|(?:d|w)grad(?:_alg0)?_engine|winograd|depthwise|^Cijk_|^triton_(?:poi|red|per|for)_",
    re.IGNORECASE,
)
"""Matches matrix products without tensor cores, and Inductor's generated kernels, which have no
products.
"""
_MATRIX_PRODUCT_KERNEL: Final = re.compile(
    r"(?<!fb)gemm|matmul|(?:^|_)(?:b?add)?b?mm(?:_|$)|conv(?!ert)|attention|attn|(?<![a-z])mha|sdpa"
    r"|fused_moe|fused_mlp|linear_kernel",
    re.IGNORECASE,
)
"""Matches matrix products whose name does not say whether they use tensor cores."""
_KERNEL_WITHOUT_PRODUCTS: Final = re.compile(
    r"at::native::|at_cuda_detail::|(?:^|[\s:])cub::|rocprim::|hipcub::|thrust::|nccl|rccl"
    r"|elementwise|reduce|softmax|norm|bn_(?:fw|bw)|nchwToNhwc|nhwcToNchw|transpose|fft|copy|fill"
    r"|memset|index|scatter|gather|embedding|multi_tensor_apply|adam|scan|sort|topk|dropout|rotary"
    r"|act_and_mul|silu|pool|im2col|col2im|random|philox"
    r"|permute|quantiz|offsets_?(?:range|kernel)|bounds_check|kv_?cache|and_cache|nll|scalePacked"
    r"|(?:Sub|Op)(?:\dd)?Tensor(?:Op|Fwd|Lite)|(?:^|[\s:])(?:scal|axpy|nrm2|asum)_kernel",
    re.IGNORECASE,
)
"""Matches kernels that move, map, sort or reduce data, which never use tensor cores."""

_LAYOUT_CHANGE_KERNEL: Final = re.compile(
    r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|^batched_transpose_|^transpose_NCHW", re.IGNORECASE
)
_CONVOLUTION_OPERATOR: Final = re.compile(r"aten::(?:convolution|convolution_overrideable)")
_CUTLASS_ALIGNMENT: Final = re.compile(r"_align(\d+)(?!\d)")
_WORDS_OF_KERNEL_CLASS: Final = {
    "attention": r"attention|attn|fmha|flash_(?:fwd|bwd)|flashinfer|sdpa|(?<![a-z])mha(?![a-z])",
    "optimizer": r"adam|sgd_|lamb|adagrad|multi_tensor_apply|fused_optim|FusedOptimizer",
    "embedding": r"(?<!rotary_)embedding|embs_kernel",
    "convolution": r"conv(?!ert)|fprop|dgrad|wgrad|winograd|scudnn|igemm_(?:fwd|bwd|wrw)|fft2d"
    r"|miopen.*(?:gcn|asm)|cask_cudnn",
    "gemm": r"(?<!fb)gemm|gemv|nvjet|^Cijk_|matmul|^(?:bmm|mm)_|splitk|marlin|machete|_mm_kernel"
    r"|dot_kernel|fused_moe|(?:^|_)(?:b?add)?b?mm(?:_|$)",
    "normalization": r"(?<!re)norm|bn_(?:fw|bw)|GammaBeta|RowwiseMoments|Welford",
    "softmax": r"softmax|cross_?entropy|nll_|NLLCriterion",
    "sort": r"sort|topk|bitonic|unique|scan|cumsum|searchsorted|histogram|compact|select_?if",
    "random": r"random|philox|dropout|curand|distribution|bernoulli|multinomial",
    "pooling": r"pool",
    "index": r"index|scatter|gather|masked_fill|take_|put_",
    "copy": r"copy|cat_?array|transpose|permute|nchwToNhwc|nhwcToNchw|im2col|col2im|memcpy|recat"
    r"|and_cache|kv_?cache",
    "quantization": r"quantiz|quant(?:_|$)|fp8rowwise|hfp8|qparam",
    "fill": r"fill|memset",
    "reduction": r"reduce|reduction",
    "elementwise": r"elementwise|act_and_mul|rotary|silu|gelu|relu|add_|mul_|clamp|pointwise"
    r"|(?:Sub|Op)(?:\dd)?Tensor(?:Op|Fwd|Lite)|(?:^|[\s:])(?:scal|axpy)_kernel",
    "compiled": r"^triton_",
}
"""Maps a kind of computation to a pattern of words in the names of its kernels."""
_PATTERN_OF_KERNEL_CLASS: Final = {
    name: re.compile(pattern, re.IGNORECASE) for name, pattern in _WORDS_OF_KERNEL_CLASS.items()
}
KERNEL_CLASSES: Final = ("collective", *_WORDS_OF_KERNEL_CLASS, "other")
"""The kinds of computation of kernels; `other` means that the name does not show the kind."""
_PYTORCH_REDUCTION_KERNEL: Final = re.compile(r"(?:^|::)reduce_kernel(?:<|$)")
"""Matches PyTorch's own reduction kernel, which computes sums, norms and other reductions."""
_CLASS_OF_MULTI_TENSOR_KERNEL: Final = {
    "multi_tensor_apply_kernel<CopyFunctor>": "copy",
    "multi_tensor_apply_kernel<LpNormFunctor>": "reduction",
}
"""Maps multi-tensor kernels that are not only used by optimizers to their kind of computation."""
_COMPILER_GENERATED_NAME: Final = re.compile(r"triton_(poi|red|per|for)_fused_(\w*?)_?\d*")
"""Matches the names of Inductor's kernels: the kind of loop, and the fused operators."""
_FUSED_MOVING_OPERATORS: Final = re.compile(
    r"_*(?:to_copy|copy|clone|cat|stack|(?:unsafe_)?view|t|transpose|permute|expand|squeeze"
    r"|unsqueeze|slice|select|split|reshape|repeat|constant_pad_nd)_*"
)
"""Matches a list of fused operators that only move data."""
_ELEMENTWISE_KERNEL: Final = re.compile(r"(?:vectorized_|unrolled_|legacy_)?elementwise_kernel")
_FUNCTORS_OF_KERNEL_CLASS: Final = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "index": r"index_|masked_fill|where_kernel|scatter_gather",
        "copy": r"copy_kernel|copy_device_to_device|conj_kernel",
        "fill": r"FillFunctor",
        "random": r"distribution_|bernoulli|dropout",
    }.items()
}
"""Maps a kind of computation to a pattern of the functors that PyTorch's elementwise kernels apply.
"""


def uses_tensor_cores(kernel_name: str) -> bool | None:
    """Returns whether a kernel runs on tensor cores; None if its name does not say.

    Covers NVIDIA's families from Volta to Blackwell and AMD's matrix cores, as cuBLAS, cuDNN,
    CUTLASS, Tensile, Composable Kernel, MIOpen and the attention libraries name them. A product
    whose name does not show its instruction, such as one compiled by Triton, is unknown.

    >>> uses_tensor_cores("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn")
    True
    >>> uses_tensor_cores("ampere_sgemm_128x64_nn"), uses_tensor_cores("_attn_fwd")
    (False, None)
    """
    if _SCALAR_KERNEL_OF_MIXED_FAMILY.search(kernel_name):
        return False
    if _TENSOR_CORE_KERNEL.search(kernel_name):
        return True
    if _SCALAR_PRODUCT_KERNEL.search(kernel_name):
        return False
    return (
        False
        if _KERNEL_WITHOUT_PRODUCTS.search(kernel_name)
        and not _MATRIX_PRODUCT_KERNEL.search(_kernel_name_without_parameters(kernel_name))
        else None
    )


def _kernel_name_without_parameters(kernel_name: str) -> str:
    """Returns a kernel's name without its parameter list."""
    return kernel_name.partition("(")[0] or kernel_name


def changes_layout(kernel_name: str) -> bool:
    """Returns whether a kernel converts between channels-first and channels-last layouts.

    >>> changes_layout("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)")
    True
    >>> changes_layout("batched_transpose_32x32_half"), changes_layout("ampere_sgemm_128x64_nn")
    (True, False)
    """
    return _LAYOUT_CHANGE_KERNEL.search(kernel_name) is not None


def is_generic_convolution(operator: str) -> bool:
    """Returns whether an operator is the generic `aten::convolution`, not a backend's operator.

    >>> is_generic_convolution("aten::convolution")
    True
    >>> is_generic_convolution("aten::cudnn_convolution")
    False
    """
    return _CONVOLUTION_OPERATOR.fullmatch(operator) is not None


def cutlass_operand_alignment(kernel_name: str) -> int | None:
    """Returns a CUTLASS kernel's operand alignment in elements; None if its name does not say.

    Names follow `cutlass/library`: the last word is the alignment of the operands.

    >>> kernel_name = "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_64x2_nn_align1"
    >>> cutlass_operand_alignment(kernel_name)
    1
    >>> cutlass_operand_alignment("ampere_sgemm_128x64_nn") is None
    True
    """
    found = _CUTLASS_ALIGNMENT.search(kernel_name)
    return int(found[1]) if found else None


def kernel_class(kernel_name: str) -> str:
    """Returns the kind of computation of a kernel, one of `KERNEL_CLASSES`, from its name.

    >>> kernel_class("ampere_sgemm_128x64_nn"), kernel_class("nvjet_tst_64x64_64x16_2x1_v_bz_TNT")
    ('gemm', 'gemm')
    >>> kernel_class("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512>(float)")
    'normalization'
    >>> kernel_class("mystery")
    'other'
    """
    if is_collective_kernel(kernel_name):
        return "collective"
    if generated := _COMPILER_GENERATED_NAME.fullmatch(kernel_name):
        return _inductor_kernel_class(*generated.groups())
    if _ELEMENTWISE_KERNEL.search(kernel_name):
        inside = (
            kind
            for kind, pattern in _FUNCTORS_OF_KERNEL_CLASS.items()
            if pattern.search(kernel_name)
        )
        return next(inside, "elementwise")
    plain = short_kernel_name(kernel_name)
    if plain in _CLASS_OF_MULTI_TENSOR_KERNEL:
        return _CLASS_OF_MULTI_TENSOR_KERNEL[plain]
    if _PYTORCH_REDUCTION_KERNEL.search(plain):
        return "reduction"
    return next(
        (kind for kind, pattern in _PATTERN_OF_KERNEL_CLASS.items() if pattern.search(plain)),
        "other",
    )


def _inductor_kernel_class(loop_kind: str, fused_operators: str) -> str:
    """Returns the kind of computation of an Inductor kernel, from its loop and fused operators.

    A pointwise kernel may have a product or an attention in its name that it does not compute.
    """
    if loop_kind in {"poi", "for"}:
        rest = _FUSED_MOVING_OPERATORS.sub("", fused_operators)
        return "copy" if fused_operators and not rest.strip("_") else "elementwise"
    if "softmax" in fused_operators:
        return "softmax"
    return (
        "normalization" if "norm" in fused_operators or "rsqrt" in fused_operators else "reduction"
    )
