"""Keeps `torch.compile` from compiling functions of selftime that a model calls."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch._C._dynamo import eval_frame

_Function = TypeVar("_Function", bound=Callable[..., Any])


def skip_frame_in_compile(function: _Function) -> _Function:
    """Keeps `torch.compile` from compiling a function, but not the functions that it calls.

    Otherwise the frame would be compiled after a graph break, and again after each change of the
    state that it reads.
    """
    _set_dynamo_strategy(function, callees_too=False)
    return function


def skip_wrapper_frames_in_compile(around: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns `around` changed so that `torch.compile` skips the wrappers that it returns."""
    return lambda original: skip_frame_in_compile(around(original))


def never_torch_compile(function: _Function) -> _Function:
    """Keeps `torch.compile` from compiling a function and all functions that it calls."""
    _set_dynamo_strategy(function, callees_too=True)
    return function


def _set_dynamo_strategy(function: Any, *, callees_too: bool) -> None:
    known = vars(eval_frame)
    if "skip_code" in known:  # older torch, which has no setting for callees
        known["skip_code"](function.__code__)
        return
    # The public names are in torch._dynamo, which takes seconds to import.
    action, strategy = known["_FrameAction"], known["_FrameExecStrategy"]
    below = action.SKIP if callees_too else action.DEFAULT
    eval_frame.set_code_exec_strategy(function.__code__, strategy(action.SKIP, below))
