"""Finds operator sequences that compute a layer or loss that PyTorch also has as one operator."""

import re
from collections.abc import Sequence
from typing import Final

_VIEW_OR_ALLOCATION_OPERATOR: Final = re.compile(
    r"aten::(?:view|reshape|t|transpose|swapaxes|permute|movedim|expand|expand_as|unsqueeze|squeeze"
    r"|select|slice|narrow|detach|alias|flatten|unflatten|chunk|split|unbind|as_strided|numpy_T"
    r"|view_as|reshape_as|broadcast_to|broadcast_tensors|real|imag|diagonal|split_with_sizes"
    r"|tensor_split|to|type_as|contiguous|result_type|size|numel|resolve_conj|lift_fresh"
    r"|empty\w*|new_empty\w*|zeros|ones|full|arange|scalar_tensor|_unsafe_view|_reshape_alias)"
)
_UP_TO_2_OPERATORS: Final = r"(?:\w+ ){0,2}?"
"""Matches up to two operators of any name."""
_UP_TO_3_OPERATORS: Final = r"(?:\w+ ){0,3}?"
"""Matches up to three operators of any name."""
_SQUARING_OPERATOR: Final = r"(?:pow|square|mul) "
_SCALING_OPERATOR: Final = r"(?:div|mul) "
_VARIANCE_OPERATOR: Final = r"(?:var|std|var_mean|std_mean) "

_PATTERN_BY_LAYER: Final = {
    "log_softmax": rf"(?:amax |max )?(?:sub )?exp {_UP_TO_2_OPERATORS}sum {_UP_TO_2_OPERATORS}"
    rf"(?:div {_UP_TO_2_OPERATORS}log|log {_UP_TO_2_OPERATORS}sub) "
    rf"|logsumexp {_UP_TO_2_OPERATORS}sub ",
    "log_of_softmax": rf"softmax {_UP_TO_2_OPERATORS}log ",
    "softmax": rf"(?:amax |max )?(?:sub )?exp {_UP_TO_2_OPERATORS}sum {_UP_TO_2_OPERATORS}div ",
    "layer_norm": rf"mean {_UP_TO_3_OPERATORS}sub {_UP_TO_2_OPERATORS}{_SQUARING_OPERATOR}"
    rf"{_UP_TO_2_OPERATORS}mean {_UP_TO_3_OPERATORS}{_SCALING_OPERATOR}"
    rf"|(?:mean {_UP_TO_3_OPERATORS}{_VARIANCE_OPERATOR}|var_mean |std_mean )"
    rf"{_UP_TO_3_OPERATORS}sub {_UP_TO_3_OPERATORS}{_SCALING_OPERATOR}"
    rf"|mean sub {_UP_TO_2_OPERATORS}{_VARIANCE_OPERATOR}{_UP_TO_3_OPERATORS}{_SCALING_OPERATOR}",
    "rms_norm": rf"{_SQUARING_OPERATOR}{_UP_TO_2_OPERATORS}mean "
    rf"{_UP_TO_2_OPERATORS}(?:rsqrt {_UP_TO_2_OPERATORS}mul|sqrt {_UP_TO_2_OPERATORS}div) ",
    "gelu": rf"(?:div|mul) erf {_UP_TO_2_OPERATORS}mul "
    rf"|pow {_UP_TO_3_OPERATORS}(?:\w+ )?tanh {_UP_TO_2_OPERATORS}mul ",
}
"""Maps a layer to a pattern over the names of the operators that compute it; longer patterns come
first.
"""
_COMPILED_PATTERN_BY_LAYER: Final = {
    kind: re.compile(rf"(?<!\S)(?:{told})") for kind, told in _PATTERN_BY_LAYER.items()
}
"""Maps a layer to its compiled pattern over operator names; longer patterns come first."""


def is_view(operator: str) -> bool:
    """Returns whether an operator usually only makes a view or allocates, and computes nothing.

    >>> is_view("aten::transpose"), is_view("aten::add")
    (True, False)
    """
    return _VIEW_OR_ALLOCATION_OPERATOR.fullmatch(operator) is not None


def is_in_place(operator: str) -> bool:
    """Returns whether an operator writes its result into its input.

    >>> is_in_place("aten::mul_"), is_in_place("aten::mul")
    (True, False)
    """
    return operator.endswith("_") and not operator.endswith("__")


def find_handwritten_layers(operators: Sequence[str]) -> list[tuple[str, int, int]]:
    """Returns (layer, first index, end index) of each operator sequence that one layer replaces.

    >>> run = ["pow", "mean", "add", "rsqrt", "mul", "mul"]
    >>> find_handwritten_layers([f"aten::{name}" for name in run])
    [('rms_norm', 0, 5)]
    >>> find_handwritten_layers(["aten::mul", "aten::add", "aten::relu"])
    []
    """
    text = "".join(f"{name.removeprefix('aten::').strip('_')} " for name in operators)
    matches: list[tuple[str, int, int]] = []
    for kind, pattern in _COMPILED_PATTERN_BY_LAYER.items():
        for found in pattern.finditer(text):
            first = text.count(" ", 0, found.start())
            last = first + found[0].count(" ")
            if all(last <= begin or end <= first for _, begin, end in matches):
                matches.append((kind, first, last))
    return matches
