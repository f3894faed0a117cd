"""Whether a kernel's name says that it computes on tensor cores, or matrix cores on AMD."""

import re
from typing import Final

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
"""Products on scalar units; and what Inductor generates beside its templates, which has none."""
_PRODUCT: Final = re.compile(
    r"(?<!fb)gemm|matmul|(?:^|_)(?:b?add)?b?mm(?:_|$)|conv(?!ert)|attention|attn|(?<![a-z])mha|sdpa"
    r"|fused_moe|fused_mlp|linear_kernel",
    re.IGNORECASE,
)
"""Products, of which another word in the name does not tell the units."""
_PLAIN: Final = re.compile(
    r"at::native::|at_cuda_detail::|(?:^|[\s:])cub::|rocprim::|hipcub::|thrust::|nccl|rccl"
    r"|elementwise|reduce|softmax|norm|bn_(?:fw|bw)|nchwToNhwc|nhwcToNchw|transpose|fft|copy|fill"
    r"|memset|index|scatter|gather|embedding|multi_tensor_apply|adam|scan|sort|topk|dropout|rotary"
    r"|act_and_mul|silu|pool|im2col|col2im|random|philox"
    r"|permute|quantiz|offsets_?(?:range|kernel)|bounds_check|kv_?cache|and_cache|nll|scalePacked"
    r"|(?:Sub|Op)(?:\dd)?Tensor(?:Op|Fwd|Lite)|(?:^|[\s:])(?:scal|axpy|nrm2|asum)_kernel",
    re.IGNORECASE,
)
"""What moves, maps, sorts or reduces: there is nothing in it for a tensor core."""


def uses_tensor_cores(name: str) -> bool | None:
    """Whether a kernel runs on tensor cores, as far as its name says; None where it says nothing.

    Families from Volta to Blackwell and of AMD's matrix cores, as cuBLAS, cuDNN, CUTLASS, Tensile,
    Composable Kernel, MIOpen and the attention libraries name them. A product whose name does not
    tell its instruction, such as one that Triton compiled, is unknown.

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
    return False if _PLAIN.search(name) and not _PRODUCT.search(_function(name)) else None


def _function(name: str) -> str:
    """The name without parameters, which may be of any type."""
    return name.partition("(")[0] or name
