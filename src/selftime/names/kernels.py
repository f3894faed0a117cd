"""Classify kernels by name: class of work, tensor cores, layout changes."""

import re
from typing import Final

from selftime.names.symbols import short_kernel_name

_SCALAR: Final = re.compile(
    # of families that use both kinds of units, those that do not use tensor cores
    r"_ffma(?:_|$)|_simt_|OpClassSimt|_sm5[0-9](?!\d)"
    r"|flash_bwd_(?:dot_do_o|convert_dq|clear)|flash_fwd_splitkv_combine|combine_kernel"
    r"|FlashAttn(?:Bwd(?:Pre|Post)process|FwdCombine)|convert_dq_to"
)
_MATRIX: Final = re.compile(
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
_SCALAR_PRODUCT: Final = re.compile(
    r"(?:volta|turing|ampere|hopper|maxwell|pascal|gfx\w+|cudnn)_(?:[sdcz]gemm|gcgemm|scudnn)"
    r"|(?<![a-z])[sdcz]gemm|gemmSN_|gemmk1|gemv|(?:^|[\s:])dot_kernel|splitkreduce"
    r"|(?:d|w)grad(?:_alg0)?_engine|winograd|depthwise|^Cijk_|^triton_(?:poi|red|per|for)_",
    re.IGNORECASE,
)
"""Matrix products on scalar units, and Inductor's generated kernels, which have no products."""
_PRODUCT: Final = re.compile(
    r"(?<!fb)gemm|matmul|(?:^|_)(?:b?add)?b?mm(?:_|$)|conv(?!ert)|attention|attn|(?<![a-z])mha|sdpa"
    r"|fused_moe|fused_mlp|linear_kernel",
    re.IGNORECASE,
)
"""Matrix products whose name does not say on which units they run."""
_PLAIN: Final = re.compile(
    r"at::native::|at_cuda_detail::|(?:^|[\s:])cub::|rocprim::|hipcub::|thrust::|nccl|rccl"
    r"|elementwise|reduce|softmax|norm|bn_(?:fw|bw)|nchwToNhwc|nhwcToNchw|transpose|fft|copy|fill"
    r"|memset|index|scatter|gather|embedding|multi_tensor_apply|adam|scan|sort|topk|dropout|rotary"
    r"|act_and_mul|silu|pool|im2col|col2im|random|philox"
    r"|permute|quantiz|offsets_?(?:range|kernel)|bounds_check|kv_?cache|and_cache|nll|scalePacked"
    r"|(?:Sub|Op)(?:\dd)?Tensor(?:Op|Fwd|Lite)|(?:^|[\s:])(?:scal|axpy|nrm2|asum)_kernel",
    re.IGNORECASE,
)
"""Kernels that move, map, sort or reduce data: they never use tensor cores."""

_CHANGES: Final = re.compile(
    r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|^batched_transpose_|^transpose_NCHW", re.IGNORECASE
)
_CONVOLUTION: Final = re.compile(r"aten::(?:convolution|convolution_overrideable)")
_ALIGN: Final = re.compile(r"_align(\d+)(?!\d)")
_COLLECTIVE: Final = re.compile(
    r"^(?:void )?(?:nccl|rccl|hccl|hcom_|xccl|ccl_|oneccl|mscclpp|nvshmem)"
    r"|nccl(?:Dev)?Kernel|mscclKernel|cross_device_reduce|(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)_kernel"
    r"|deep_ep::",
    re.IGNORECASE,
)
_CLASSES: Final = {
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
_CLASS: Final = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _CLASSES.items()}
KERNEL_CLASSES: Final = ("collective", *_CLASSES, "other")
"""The classes of kernels; `other` means that the name does not say."""
_REDUCTION: Final = re.compile(r"(?:^|::)reduce_kernel(?:<|$)")
"""PyTorch's own reduction kernel, for any function, including norms."""
_MANY: Final = {
    "multi_tensor_apply_kernel<CopyFunctor>": "copy",
    "multi_tensor_apply_kernel<LpNormFunctor>": "reduction",
}
"""Multi-tensor kernels that are not only used by optimizers, and their classes."""
_GENERATED: Final = re.compile(r"triton_(poi|red|per|for)_fused_(\w*?)_?\d*")
"""Inductor's kernel names: the kind of loop, and the fused operators."""
_MOVING: Final = re.compile(
    r"_*(?:to_copy|copy|clone|cat|stack|(?:unsafe_)?view|t|transpose|permute|expand|squeeze"
    r"|unsqueeze|slice|select|split|reshape|repeat|constant_pad_nd)_*"
)
_ELEMENTWISE: Final = re.compile(r"(?:vectorized_|unrolled_|legacy_)?elementwise_kernel")
_INSIDE: Final = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "index": r"index_|masked_fill|where_kernel|scatter_gather",
        "copy": r"copy_kernel|copy_device_to_device|conj_kernel",
        "fill": r"FillFunctor",
        "random": r"distribution_|bernoulli|dropout",
    }.items()
}
"""Classes of PyTorch's elementwise kernels, by the functor that they apply."""


def uses_tensor_cores(name: str) -> bool | None:
    """Whether a kernel runs on tensor cores; None if its name does not show it.

    Covers NVIDIA's families from Volta to Blackwell and AMD's matrix cores, as cuBLAS, cuDNN,
    CUTLASS, Tensile, Composable Kernel, MIOpen and the attention libraries name them. A product
    whose name does not show its instruction, such as one compiled by Triton, is unknown.

    >>> uses_tensor_cores("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn")
    True
    >>> uses_tensor_cores("ampere_sgemm_128x64_nn"), uses_tensor_cores("_attn_fwd")
    (False, None)
    """
    if _SCALAR.search(name):
        return False
    if _MATRIX.search(name):
        return True
    if _SCALAR_PRODUCT.search(name):
        return False
    return False if _PLAIN.search(name) and not _PRODUCT.search(_without_parameters(name)) else None


def _without_parameters(name: str) -> str:
    """Returns the name without its parameter list."""
    return name.partition("(")[0] or name


def changes_layout(name: str) -> bool:
    """Whether a kernel converts between channels-first and channels-last layouts.

    >>> changes_layout("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)")
    True
    >>> changes_layout("batched_transpose_32x32_half"), changes_layout("ampere_sgemm_128x64_nn")
    (True, False)
    """
    return _CHANGES.search(name) is not None


def is_convolution(name: str) -> bool:
    """Whether an operator is the generic convolution that calls every backend's own.

    >>> is_convolution("aten::convolution"), is_convolution("aten::cudnn_convolution")
    (True, False)
    """
    return _CONVOLUTION.fullmatch(name) is not None


def alignment_of(name: str) -> int | None:
    """Returns the elements per load of a CUTLASS kernel's operands; None if not named.

    Names follow `cutlass/library`: the last word is the alignment of the operands.

    >>> alignment_of("cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_64x2_nn_align1")
    1
    >>> alignment_of("ampere_sgemm_128x64_nn") is None
    True
    """
    found = _ALIGN.search(name)
    return int(found[1]) if found else None


def is_collective_kernel(name: str) -> bool:
    """Whether a kernel's name is that of a collective.

    >>> is_collective_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")
    True
    """
    return _COLLECTIVE.search(name) is not None


def kernel_class(name: str) -> str:
    """Returns the class of a kernel's work, one of `KERNEL_CLASSES`, from its name.

    >>> kernel_class("ampere_sgemm_128x64_nn"), kernel_class("nvjet_tst_64x64_64x16_2x1_v_bz_TNT")
    ('gemm', 'gemm')
    >>> kernel_class("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512>(float)")
    'normalization'
    >>> kernel_class("mystery")
    'other'
    """
    if is_collective_kernel(name):
        return "collective"
    if generated := _GENERATED.fullmatch(name):
        return _inductor_class(*generated.groups())
    if _ELEMENTWISE.search(name):
        inside = (kind for kind, pattern in _INSIDE.items() if pattern.search(name))
        return next(inside, "elementwise")
    plain = short_kernel_name(name)
    if plain in _MANY:
        return _MANY[plain]
    if _REDUCTION.search(plain):
        return "reduction"
    return next((kind for kind, pattern in _CLASS.items() if pattern.search(plain)), "other")


def _inductor_class(loop: str, operators: str) -> str:
    """Returns the class of an Inductor kernel, from its loop kind and fused operators.

    A pointwise kernel may have a product or an attention in its name that it does not compute.
    """
    if loop in {"poi", "for"}:
        rest = _MOVING.sub("", operators)
        return "copy" if operators and not rest.strip("_") else "elementwise"
    if "softmax" in operators:
        return "softmax"
    return "normalization" if "norm" in operators or "rsqrt" in operators else "reduction"
