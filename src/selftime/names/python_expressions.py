"""Maps operators and Python frames to the Python expressions that run them."""

import re
from typing import Final

from selftime.names.python_frames import parse_frame

_BUILT_IN_FRAME: Final = re.compile(r"<built-in (?:method|function) (\w+)(?: of .*)?>")
_METHOD_FRAME: Final = re.compile(r"<(?:method|slot wrapper) '(\w+)' of .*>")
_COPY_OPERATORS: Final = frozenset({"to", "_to_copy", "copy_"})
"""Operators that copy; a trailing underscore in their names does not mean that they work in place.
"""

_SYNTAX_OF_OPERATOR: Final[dict[str, str]] = {
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
"""Maps an operator that can run without a recorded function call to its Python syntax, such as
`x[i]`.
"""

_FUNCTIONS_OF_OPERATOR: Final[dict[str, tuple[str, ...]]] = {
    "item": ("item", "int", "float", "bool", "tolist"),
    "_local_scalar_dense": ("item", "int", "float", "bool", "tolist"),
    "is_nonzero": ("bool",),
    "to": ("to", "cpu", "cuda", "float", "half", "double", "bfloat16", "int", "long", "bool"),
    "_to_copy": ("to", "cpu", "cuda", "float", "half", "double", "bfloat16", "int", "long"),
}
"""Maps an operator to the Python functions of other names that run it."""
_DECORATOR_FRAME: Final = re.compile(
    r"(?:.*/)?torch/(?:_compile\.py\(\d+\): inner|_dynamo/eval_frame\.py\(\d+\): _fn"
    r"|utils/_contextlib\.py\(\d+\): decorate_context)$"
)


def python_syntax_of_operator(operator: str) -> tuple[str | None, frozenset[str]]:
    """Returns the Python syntax (or None) and the names of functions that run an operator.

    >>> python_syntax_of_operator("aten::index")[0]
    'x[i]'
    >>> sorted(python_syntax_of_operator("aten::item")[1])[:2]
    ['bool', 'float']
    >>> python_syntax_of_operator("aten::_unique2") == (None, frozenset({"unique", "_unique2"}))
    True
    """
    name = operator.rpartition("::")[2].partition(".")[0]
    plain = name if name in _COPY_OPERATORS or name.endswith("__") else name.removesuffix("_")
    public = plain.lstrip("_").rstrip("0123456789") or plain
    functions = frozenset(_FUNCTIONS_OF_OPERATOR.get(plain, (plain, name, public)))
    return _SYNTAX_OF_OPERATOR.get(plain), functions


def called_function(frame_name: str) -> str | None:
    """Returns the name of the function that a Python frame runs; None for a module's call.

    >>> called_function("<built-in method nonzero of type object at 0x7f0>")
    'nonzero'
    >>> called_function("torch/nn/functional.py(99): relu"), called_function("nn.Module: Net_0")
    ('relu', None)
    """
    for pattern in (_BUILT_IN_FRAME, _METHOD_FRAME):
        found = pattern.fullmatch(frame_name)
        if found is not None:
            return found[1]
    known = parse_frame(frame_name)
    return None if known is None else known.function


def is_built_in_frame(frame_name: str) -> bool:
    """Returns whether a Python frame is that of a function in C, within which no line is known.

    >>> names = ("<built-in method conv2d of type object at 0x7f0>", "train.py(9): main")
    >>> [is_built_in_frame(name) for name in names]
    [True, False]
    """
    return any(pattern.fullmatch(frame_name) for pattern in (_BUILT_IN_FRAME, _METHOD_FRAME))


def runs_backward_pass(frame_name: str) -> bool:
    """Returns whether a Python frame is the call of autograd's engine that runs a backward pass.

    >>> runs_backward_pass("<built-in method run_backward of torch._C._EngineBase object at 0x7f>")
    True
    """
    return is_built_in_frame(frame_name) and called_function(frame_name) == "run_backward"


def is_decorator_frame(frame_name: str) -> bool:
    """Returns whether a frame is a PyTorch decorator around the function that the program called.

    >>> names = ("torch/_compile.py(42): inner", "torch/functional.py(9): unique")
    >>> [is_decorator_frame(name) for name in names]
    [True, False]
    """
    return _DECORATOR_FRAME.match(frame_name.replace("\\", "/")) is not None
