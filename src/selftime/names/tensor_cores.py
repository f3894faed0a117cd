"""Whether a kernel's name says that it computes on tensor cores, or matrix cores on AMD."""

import re
from typing import Final

__all__ = ["uses_tensor_cores"]

_SCALAR: Final = re.compile(
    r"_ffma(?:_|$)|_simt_|_sm5[0-9](?!\d)|flash_bwd_(?:dot_do_o|convert_dq|clear)|combine_kernel"
)
"""Of families that use both kinds of units, those that do not use tensor cores."""
_MATRIX: Final = re.compile(
    # the shape of the matrix instruction: s884, h1688, bf16_s16816, i8816, d884, s161616
    r"(?<![\da-z])[dhsicz](?:884|1688|16816|16832|16864|8816|8832|161616)(?!\d)"
    r"|[hi]mma(?:[._]|\d|$)|tensorop|tensor16x8x|_xmma_|wgmma|utcmma|tcgen05|umma"
    r"|^nvjet_|(?:^|[\s:])tinygemm_m\d+n\d+k\d+"
    # fused attention, mixed-precision GEMM of serving engines
    r"|flash_(?:fwd|bwd)|fmha|flash_attn|flashinfer::.*(?:Prefill|MMA)|marlin|machete|deep_gemm"
    r"|^(?:bmm|gemm)_\w+_t\d+x\d+x\d+"
    # AMD: Tensile with a matrix instruction, Composable Kernel, MIOpen's assembly
    r"|^Cijk_\w*_MI\d+x\d+x\d+|xdlops|_xdl(?:_|[A-Z]|$)|mfma|_gtcx\d?_",
    re.IGNORECASE,
)
_NONE: Final = re.compile(
    r"at::native::|at_cuda_detail::|(?:^|[\s:])cub::|rocprim::|hipcub::|thrust::|nccl|rccl"
    # GEMM and convolution on scalar units
    r"|(?:volta|turing|ampere|hopper|maxwell|pascal|gfx\w+|cudnn)_(?:[sdcz]gemm|gcgemm|scudnn)"
    r"|(?<![a-z])[sdcz]gemm|dgrad_engine|wgrad_alg0_engine|gemv|gemmk1|dot_kernel|splitkreduce"
    r"|^Cijk_"
    # what moves, maps or reduces
    r"|elementwise|reduce|softmax|norm|bn_(?:fw|bw)|nchwToNhwc|nhwcToNchw|transpose|fft|copy|fill"
    r"|memset|index|scatter|gather|embedding|multi_tensor_apply|adam|scan|sort|topk|dropout|rotary"
    r"|act_and_mul|silu|pool|winograd|im2col|col2im|random|philox"
    r"|permute|quantiz|offsets_?(?:range|kernel)|bounds_check|kv_?cache|and_cache|nll|scalePacked"
    r"|^triton_(?:poi|red|per)_",
    re.IGNORECASE,
)


def uses_tensor_cores(name: str) -> bool | None:
    """Whether a kernel runs on tensor cores, as far as its name says; None where it says nothing.

    Families from Volta to Blackwell and of AMD's matrix cores, as cuBLAS, cuDNN, CUTLASS, Tensile,
    Composable Kernel, MIOpen and the attention libraries name them.

    >>> uses_tensor_cores("volta_fp16_s884gemm_fp16_128x64_ldg8_f2f_nn")
    True
    >>> uses_tensor_cores("ampere_sgemm_128x64_nn"), uses_tensor_cores("_attn_fwd")
    (False, None)
    """
    if _MATRIX.search(name):
        return not _SCALAR.search(name)
    return False if _NONE.search(name) or _SCALAR.search(name) else None
