"""Find sequences of operators that spell out a layer or loss available as one operator."""

import re
from collections.abc import Sequence
from typing import Final

_VIEWS: Final = re.compile(
    r"aten::(?:view|reshape|t|transpose|swapaxes|permute|movedim|expand|expand_as|unsqueeze|squeeze"
    r"|select|slice|narrow|detach|alias|flatten|unflatten|chunk|split|unbind|as_strided|numpy_T"
    r"|view_as|reshape_as|broadcast_to|broadcast_tensors|real|imag|diagonal|split_with_sizes"
    r"|tensor_split|to|type_as|contiguous|result_type|size|numel|resolve_conj|lift_fresh"
    r"|empty\w*|new_empty\w*|zeros|ones|full|arange|scalar_tensor|_unsafe_view|_reshape_alias)"
)
_FEW: Final = r"(?:\w+ ){0,2}?"
_MORE: Final = r"(?:\w+ ){0,3}?"
_SQUARE: Final = r"(?:pow|square|mul) "
_SCALE: Final = r"(?:div|mul) "
_SPREAD: Final = r"(?:var|std|var_mean|std_mean) "

_RUNS: Final = {
    "log_softmax": rf"(?:amax |max )?(?:sub )?exp {_FEW}sum {_FEW}(?:div {_FEW}log|log {_FEW}sub) "
    rf"|logsumexp {_FEW}sub ",
    "log_of_softmax": rf"softmax {_FEW}log ",
    "softmax": rf"(?:amax |max )?(?:sub )?exp {_FEW}sum {_FEW}div ",
    "layer_norm": rf"mean {_MORE}sub {_FEW}{_SQUARE}{_FEW}mean {_MORE}{_SCALE}"
    rf"|(?:mean {_MORE}{_SPREAD}|var_mean |std_mean ){_MORE}sub {_MORE}{_SCALE}"
    rf"|mean sub {_FEW}{_SPREAD}{_MORE}{_SCALE}",
    "rms_norm": rf"{_SQUARE}{_FEW}mean {_FEW}(?:rsqrt {_FEW}mul|sqrt {_FEW}div) ",
    "gelu": rf"(?:div|mul) erf {_FEW}mul |pow {_MORE}(?:\w+ )?tanh {_FEW}mul ",
}
_KINDS: Final = {kind: re.compile(rf"(?<!\S)(?:{told})") for kind, told in _RUNS.items()}
"""Patterns by kind, over operator names with a few others between; longer patterns come first."""


def is_view(name: str) -> bool:
    """Whether an operator normally only makes a view or allocates, without computing values.

    >>> is_view("aten::transpose"), is_view("aten::add")
    (True, False)
    """
    return _VIEWS.fullmatch(name) is not None


def is_in_place(name: str) -> bool:
    """Whether an operator writes its result into its input.

    >>> is_in_place("aten::mul_"), is_in_place("aten::mul")
    (True, False)
    """
    return name.endswith("_") and not name.endswith("__")


def find_handwritten(operators: Sequence[str]) -> list[tuple[str, int, int]]:
    """Returns (kind, first, end) of each sequence that spells out one operator.

    >>> run = ["pow", "mean", "add", "rsqrt", "mul", "mul"]
    >>> find_handwritten([f"aten::{name}" for name in run])
    [('rms_norm', 0, 5)]
    >>> find_handwritten(["aten::mul", "aten::add", "aten::relu"])
    []
    """
    text = "".join(f"{name.removeprefix('aten::').strip('_')} " for name in operators)
    matches: list[tuple[str, int, int]] = []
    for kind, pattern in _KINDS.items():
        for found in pattern.finditer(text):
            first = text.count(" ", 0, found.start())
            last = first + found[0].count(" ")
            if all(last <= begin or end <= first for _, begin, end in matches):
                matches.append((kind, first, last))
    return matches
