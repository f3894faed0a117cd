"""Entry points of torch that are replaced for a while, and given back."""

from collections.abc import Callable
from typing import Any, TypeVar

from torch._C._dynamo import eval_frame

_F = TypeVar("_F", bound=Callable[..., Any])


class Patches:
    """Replaces attributes of classes and modules, each by a wrapper of what was there."""

    def __init__(self) -> None:
        self._undo: dict[tuple[Any, str], Callable[[], None]] = {}

    def __contains__(self, place: tuple[Any, str]) -> bool:
        return place in self._undo

    def replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        """Put `wrap(original)` in the place of the owner's attribute."""
        original = owner.__dict__[name]
        wrapper = wrap(original)
        passed_over(wrapper)
        setattr(owner, name, wrapper)

        def undo() -> None:
            if owner.__dict__.get(name) is wrapper:
                setattr(owner, name, original)

        self._undo[owner, name] = undo

    def undo(self) -> None:
        """Give everything back, but for what somebody else has replaced since."""
        for undo in self._undo.values():
            undo()
        self._undo.clear()


def passed_over(function: _F) -> _F:
    """Let `torch.compile` pass over the function's own frame, and go on with what it calls.

    It would compile the frame otherwise where a graph breaks before it, and again with each change
    of what it reads.
    """
    _decide(function, below_too=False)
    return function


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
