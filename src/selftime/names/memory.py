"""What names say of memory: who allocates for another, and what a block is allocated for."""

import re
from typing import Final

__all__ = ["accumulates_gradient", "builds_module", "is_bare_allocation"]

_BARE: Final = re.compile(r"aten::empty(?:$|[_.])")
_ACCUMULATION: Final = re.compile(
    r"(?:autograd::engine::evaluate_function: )?torch::autograd::AccumulateGrad"
)
_BUILDING: Final = re.compile(
    r"(?:.*/)?torch/nn/(?:init\.py\(\d+\): \w+_"
    r"|(?:modules/[^:]*|parameter\.py\(\d+\))"
    r": (?:__init__|__new__|_apply|convert|reset_parameters))$"
)


def is_bare_allocation(name: str) -> bool:
    """Whether an operator only allocates, for the operator that called it.

    >>> is_bare_allocation("aten::empty_strided"), is_bare_allocation("aten::zeros")
    (True, False)
    """
    return _BARE.match(name) is not None


def accumulates_gradient(name: str) -> bool:
    """Whether an operator is autograd's node that adds to a parameter's gradient.

    >>> accumulates_gradient("torch::autograd::AccumulateGrad")
    True
    """
    return _ACCUMULATION.match(name) is not None


def builds_module(frame: str) -> bool:
    """Whether a Python frame makes or moves the parameters of a module.

    >>> builds_module("torch/nn/modules/module.py(927): _apply")
    True
    >>> builds_module("torch/nn/modules/module.py(1518): __call__")
    False
    """
    return _BUILDING.match(frame) is not None
