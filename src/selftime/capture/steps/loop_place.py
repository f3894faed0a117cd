"""Tells which loops on a stack may be loops of steps, by where they are."""

import os
from pathlib import Path
from types import FrameType
from typing import Final

from torch import nn

from selftime.capture.code_loops import CodeLoop, loops_at

_MODULE_CALLS: Final = frozenset({nn.Module._call_impl.__code__})  # noqa: SLF001 - on the stack of each module's call
_FOLDER_OF_MODULES: Final = str(Path(nn.__file__).parent) + os.sep


def loops_that_may_step(innermost_frame: FrameType | None) -> tuple[CodeLoop, ...]:
    """Returns the loops of a stack whose iterations may be steps, the outermost first.

    A loop within a call of a module, as over its layers, is none if a loop runs around the call:
    that one repeats the call. The loops of `torch.nn` itself never are.
    """
    loops: list[CodeLoop] = []
    within_call: list[CodeLoop] = []
    frame = innermost_frame
    while frame is not None:
        code = frame.f_code
        if code in _MODULE_CALLS:
            within_call, loops = [*loops, *within_call], []
        elif not code.co_filename.startswith(_FOLDER_OF_MODULES):
            loops[:0] = loops_at(code, frame.f_lasti)
        frame = frame.f_back
    return tuple(loops or within_call)
