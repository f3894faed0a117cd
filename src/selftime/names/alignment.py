"""Which alignment of its operands a kernel's name tells that it was made for."""

import re
from typing import Final

_ALIGN: Final = re.compile(r"_align(\d+)(?!\d)")


def alignment_of(name: str) -> int | None:
    """Elements that CUTLASS loads at once from the operands; None where the name does not tell.

    Names are those of `cutlass/library`: the last word is the alignment of the operands.

    >>> alignment_of("cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_32x32_64x2_nn_align1")
    1
    >>> alignment_of("ampere_sgemm_128x64_nn") is None
    True
    """
    found = _ALIGN.search(name)
    return int(found[1]) if found else None
