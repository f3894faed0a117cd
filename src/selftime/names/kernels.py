"""What the names of kernels mean: which class of work they do."""

import re
from typing import Final

from selftime.names.symbols import short_kernel_name

__all__ = ["KERNEL_CLASSES", "is_collective_kernel", "kernel_class"]

_COLLECTIVE: Final = re.compile(
    r"^(?:void )?(?:nccl|rccl|hccl|oneccl|mscclpp|nvshmem)|nccl(?:Dev)?Kernel|mscclKernel"
    r"|cross_device_reduce|(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all)_kernel"
    r"|deep_ep::",
    re.IGNORECASE,
)

_CLASSES: Final = {
    "attention": r"attention|attn|fmha|flash_(?:fwd|bwd)|flashinfer|sdpa|\bmha\b",
    "optimizer": r"adam|sgd_|lamb|adagrad|multi_tensor_apply|fused_optim|FusedOptimizer",
    "embedding": r"(?<!rotary_)embedding|embs_kernel",
    "convolution": r"conv(?!ert)|fprop|dgrad|wgrad|winograd|scudnn|igemm_(?:fwd|bwd|wrw)|fft2d"
    r"|miopen.*(?:gcn|asm)",
    "gemm": r"(?<!fb)gemm|gemv|nvjet|^Cijk_|matmul|^(?:bmm|mm)_|splitk|marlin|machete|_mm_kernel"
    r"|dot_kernel",
    "normalization": r"norm|bn_(?:fw|bw)|\bbatchnorm|rmsnorm|GammaBeta|RowwiseMoments|Welford",
    "softmax": r"softmax|cross_?entropy|nll_|NLLCriterion",
    "sort": r"sort|topk|bitonic|unique|scan|cumsum|searchsorted|histogram|compact|select_?if",
    "random": r"random|philox|dropout|curand|distribution|bernoulli|multinomial",
    "pooling": r"pool",
    "index": r"index|scatter|gather|masked_fill|take_|put_",
    "copy": r"copy|cat_?array|transpose|permute|nchwToNhwc|nhwcToNchw|im2col|col2im|memcpy|recat"
    r"|and_cache|kv_?cache",
    "quantization": r"quantiz|fp8rowwise|hfp8|qparam",
    "fill": r"fill|memset",
    "reduction": r"reduce|reduction",
    "elementwise": r"elementwise|^triton_poi_|act_and_mul|rotary|silu|gelu|relu|add_|mul_|clamp"
    r"|pointwise",
    "compiled": r"^triton_",
}
_CLASS: Final = {name: re.compile(told, re.IGNORECASE) for name, told in _CLASSES.items()}

KERNEL_CLASSES: Final = ("collective", *_CLASSES, "other")
"""What kernels are sorted into; `other` says that the name tells nothing."""

_ELEMENTWISE: Final = re.compile(r"(?:vectorized_|unrolled_|legacy_)?elementwise_kernel")
_INSIDE: Final = {
    name: re.compile(told, re.IGNORECASE)
    for name, told in {
        "copy": r"direct_copy_kernel|bfloat16_copy|float8_copy|conj_kernel",
        "fill": r"FillFunctor",
        "random": r"distribution_|bernoulli|dropout",
        "index": r"index_|masked_fill|where_kernel",
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
    if _ELEMENTWISE.search(name):
        inside = (kind for kind, told in _INSIDE.items() if told.search(name))
        return next(inside, "elementwise")
    plain = short_kernel_name(name)
    return next((kind for kind, told in _CLASS.items() if told.search(plain)), "other")
