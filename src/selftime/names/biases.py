"""Which operators take a bias, and which handle it."""

import re
from typing import Final

_LAYER: Final = re.compile(r"aten::(?:conv[123]d|conv_transpose[123]d|convolution|linear|addmm)")


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
