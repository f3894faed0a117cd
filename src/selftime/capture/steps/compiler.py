"""What `torch.compile` makes of functions of ours that a model calls."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch._C._dynamo import eval_frame

_F = TypeVar("_F", bound=Callable[..., Any])


def passed_over(function: _F) -> _F:
    """Let `torch.compile` pass over the function's own frame, and go on with what it calls.

    It would compile the frame otherwise where a graph breaks before it, and again with each change
    of what it reads.
    """
    _decide(function, below_too=False)
    return function


def passing_over(around: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The same maker of wrappers, whose wrappers `torch.compile` passes over."""
    return lambda original: passed_over(around(original))


def uncompiled(function: _F) -> _F:
    """Let `torch.compile` look neither at the function nor at what it calls."""
    _decide(function, below_too=True)
    return function


def _decide(function: Any, *, below_too: bool) -> None:
    known = vars(eval_frame)
    if "skip_code" in known:  # in older releases of torch, which have no word on what is below
        known["skip_code"](function.__code__)
        return
    # They are public through the compiler alone, which takes seconds to load.
    action, strategy = known["_FrameAction"], known["_FrameExecStrategy"]
    below = action.SKIP if below_too else action.DEFAULT
    eval_frame.set_code_exec_strategy(function.__code__, strategy(action.SKIP, below))
