"""What the names of kernels say of the layout of images."""

import re
from typing import Final

_CHANGES: Final = re.compile(
    r"nchwToNhwc|nhwcToNchw|nchw2nhwc|nhwc2nchw|^batched_transpose_|^transpose_NCHW", re.IGNORECASE
)
_CONVOLUTION: Final = re.compile(r"aten::(?:convolution|convolution_overrideable)")


def changes_layout(name: str) -> bool:
    """Whether a kernel moves channels to the last place or back, as libraries do for themselves.

    >>> changes_layout("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)")
    True
    >>> changes_layout("batched_transpose_32x32_half"), changes_layout("ampere_sgemm_128x64_nn")
    (True, False)
    """
    return _CHANGES.search(name) is not None


def is_convolution(name: str) -> bool:
    """Whether an operator is the one through which every convolution goes, whoever computes it.

    >>> is_convolution("aten::convolution"), is_convolution("aten::cudnn_convolution")
    (True, False)
    """
    return _CONVOLUTION.fullmatch(name) is not None
