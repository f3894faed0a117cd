"""Map operators and frames to the Python expressions that run them."""

import re
from typing import Final

from selftime.names.frames import frame

_BUILT_IN: Final = re.compile(r"<built-in (?:method|function) (\w+)(?: of .*)?>")
_METHOD: Final = re.compile(r"<(?:method|slot wrapper) '(\w+)' of .*>")
_COPIES: Final = frozenset({"to", "_to_copy", "copy_"})

_SYNTAX: Final[dict[str, str]] = {
    "index": "x[i]",
    "select": "x[n]",
    "slice": "x[a:b]",
    "index_put": "x[i] =",
    "_index_put_impl": "x[i] =",
    "is_nonzero": "truth",
    "add": "+",
    "sub": "-",
    "rsub": "-",
    "mul": "*",
    "div": "/",
    "floor_divide": "//",
    "remainder": "%",
    "pow": "**",
    "matmul": "@",
    "neg": "-x",
    "bitwise_not": "~x",
    "eq": "==",
    "ne": "!=",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "bitwise_and": "&",
    "__and__": "&",
    "bitwise_or": "|",
    "__or__": "|",
    "bitwise_xor": "^",
}
"""Python syntax of operators that can run without a recorded function call."""

_CONVERSIONS: Final[dict[str, tuple[str, ...]]] = {
    "item": ("item", "int", "float", "bool", "tolist"),
    "_local_scalar_dense": ("item", "int", "float", "bool", "tolist"),
    "is_nonzero": ("bool",),
    "to": ("to", "cpu", "cuda", "float", "half", "double", "bfloat16", "int", "long", "bool"),
    "_to_copy": ("to", "cpu", "cuda", "float", "half", "double", "bfloat16", "int", "long"),
}
"""Functions that run an operator under another name, by operator."""
_WRAPPER: Final = re.compile(
    r"(?:.*/)?torch/(?:_compile\.py\(\d+\): inner|_dynamo/eval_frame\.py\(\d+\): _fn"
    r"|utils/_contextlib\.py\(\d+\): decorate_context)$"
)


def syntax_of(operator: str) -> tuple[str | None, frozenset[str]]:
    """Returns an operator's Python syntax, or None, and the functions that run it.

    >>> syntax_of("aten::index")[0], sorted(syntax_of("aten::item")[1])[:2]
    ('x[i]', ['bool', 'float'])
    >>> syntax_of("aten::_unique2") == (None, frozenset({"unique", "_unique2"}))
    True
    """
    name = operator.rpartition("::")[2].partition(".")[0]
    plain = name if name in _COPIES or name.endswith("__") else name.removesuffix("_")
    public = plain.lstrip("_").rstrip("0123456789") or plain
    functions = frozenset(_CONVERSIONS.get(plain, (plain, name, public)))
    return _SYNTAX.get(plain), functions


def function_called(text: str) -> str | None:
    """Returns the function's name in a Python frame; None for a module's call.

    >>> function_called("<built-in method nonzero of type object at 0x7f0>")
    'nonzero'
    >>> function_called("torch/nn/functional.py(99): relu"), function_called("nn.Module: Net_0")
    ('relu', None)
    """
    for pattern in (_BUILT_IN, _METHOD):
        found = pattern.fullmatch(text)
        if found is not None:
            return found[1]
    known = frame(text)
    return None if known is None else known.function


def wraps_call(text: str) -> bool:
    """Whether a frame is a PyTorch decorator around the function that the program called.

    >>> wraps_call("torch/_compile.py(42): inner"), wraps_call("torch/functional.py(9): unique")
    (True, False)
    """
    return _WRAPPER.match(text.replace("\\", "/")) is not None
