"""Tells whether the code of a program that is running trains, before it has begun to train.

A loop that makes the data of a training is no loop of steps: the steps come later. The code of the
functions on the stack, and of the user's functions and classes that they name, is searched for
calls of `backward`.
"""

import dis
import inspect
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final

MAX_SEARCHED_CODES: Final = 1_000
"""Largest number of code objects that are searched."""

_BACKWARD: Final = "backward"


def calls_backward(innermost_frame: FrameType | None, is_user_file: Callable[[str], bool]) -> bool:
    """Returns whether the user's code on a stack, or code that it names, calls `backward`."""
    waiting: list[tuple[CodeType, Mapping[str, Any]]] = []
    frame = innermost_frame
    while frame is not None:
        waiting.append((frame.f_code, frame.f_globals))
        frame = frame.f_back
    searched: set[int] = set()
    while waiting and len(searched) < MAX_SEARCHED_CODES:
        code, names = waiting.pop()
        if id(code) in searched or not is_user_file(code.co_filename):
            continue
        searched.add(id(code))
        if _loads_backward(code):
            return True
        waiting += [(inner, names) for inner in code.co_consts if isinstance(inner, CodeType)]
        waiting += _named_functions(code, names)
    return False


def _loads_backward(code: CodeType) -> bool:
    return _BACKWARD in code.co_names and any(
        instruction.argval == _BACKWARD and instruction.opname.startswith("LOAD_")
        for instruction in dis.get_instructions(code)
    )


def _named_functions(
    code: CodeType, names: Mapping[str, Any]
) -> Iterator[tuple[CodeType, Mapping[str, Any]]]:
    """Yields the code and the globals of the functions and methods that a code names."""
    for name in code.co_names:
        value = names.get(name)
        if isinstance(value, ModuleType):
            within = vars(value)
            for attribute in code.co_names:
                yield from _functions_of(within.get(attribute))
        else:
            yield from _functions_of(value)


def _functions_of(value: Any) -> Iterator[tuple[CodeType, Mapping[str, Any]]]:
    """Yields the code and the globals of a function, or of the methods of a class or an object."""
    if isinstance(value, FunctionType):
        function = inspect.unwrap(value)
        if isinstance(function, FunctionType):
            yield function.__code__, function.__globals__
        return
    kind = value if isinstance(value, type) else type(value)
    for attribute in vars(kind).values():
        method = (
            attribute.__func__ if isinstance(attribute, staticmethod | classmethod) else attribute
        )
        if isinstance(method, FunctionType):
            yield method.__code__, method.__globals__
