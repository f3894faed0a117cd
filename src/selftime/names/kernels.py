"""What the names of kernels mean: which class of work they do."""

import re
from typing import Final

from selftime.names.symbols import short_kernel_name

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
_CLASS: Final = {name: re.compile(told, re.IGNORECASE) for name, told in _CLASSES.items()}

KERNEL_CLASSES: Final = ("collective", *_CLASSES, "other")
"""What kernels are sorted into; `other` says that the name tells nothing."""

_REDUCTION: Final = re.compile(r"(?:^|::)reduce_kernel(?:<|$)")
"""PyTorch's own, whatever it reduces with: also the norm of a tensor is a reduction."""
_MANY: Final = {
    "multi_tensor_apply_kernel<CopyFunctor>": "copy",
    "multi_tensor_apply_kernel<LpNormFunctor>": "reduction",
}
"""Kernels of many tensors at once that are not at home in optimizers alone."""
_GENERATED: Final = re.compile(r"triton_(poi|red|per|for)_fused_(\w*?)_?\d*")
"""Inductor's names: the kind of loop, and the operators that were fused."""
_MOVING: Final = re.compile(
    r"_*(?:to_copy|copy|clone|cat|stack|(?:unsafe_)?view|t|transpose|permute|expand|squeeze"
    r"|unsqueeze|slice|select|split|reshape|repeat|constant_pad_nd)_*"
)
_ELEMENTWISE: Final = re.compile(r"(?:vectorized_|unrolled_|legacy_)?elementwise_kernel")
_INSIDE: Final = {
    name: re.compile(told, re.IGNORECASE)
    for name, told in {
        "index": r"index_|masked_fill|where_kernel|scatter_gather",
        "copy": r"copy_kernel|copy_device_to_device|conj_kernel",
        "fill": r"FillFunctor",
        "random": r"distribution_|bernoulli|dropout",
    }.items()
}
"""What PyTorch's elementwise kernels do, by the functor that they apply."""


def is_collective_kernel(name: str) -> bool:
    """Whether a kernel's name is that of a collective.

    >>> is_collective_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)")
    True
    """
    return _COLLECTIVE.search(name) is not None


def kernel_class(name: str) -> str:
    """The class of work that a kernel's name tells, one of `KERNEL_CLASSES`.

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
        return _generated(*generated.groups())
    if _ELEMENTWISE.search(name):
        inside = (kind for kind, told in _INSIDE.items() if told.search(name))
        return next(inside, "elementwise")
    plain = short_kernel_name(name)
    if plain in _MANY:
        return _MANY[plain]
    if _REDUCTION.search(plain):
        return "reduction"
    return next((kind for kind, told in _CLASS.items() if told.search(plain)), "other")


def _generated(loop: str, operators: str) -> str:
    """The class of what Inductor generated: of a reduction what it ends in, of a map what it does.

    What it fuses into a map may be named after a product or an attention, none of which is in it.
    """
    if loop in {"poi", "for"}:
        rest = _MOVING.sub("", operators)
        return "copy" if operators and not rest.strip("_") else "elementwise"
    if "softmax" in operators:
        return "softmax"
    return "normalization" if "norm" in operators or "rsqrt" in operators else "reduction"
