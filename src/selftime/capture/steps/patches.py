"""Entry points of torch that are replaced for a while, and given back."""

from collections.abc import Callable
from typing import Any

from torch._C._dynamo import eval_frame

__all__ = ["Patches", "hide_from_compiler"]


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
        hide_from_compiler(wrapper)
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


def hide_from_compiler(wrapper: Any) -> None:
    """Let `torch.compile` pass over the wrapper's own frame, and go on with what it calls.

    It would compile the frame otherwise where a graph breaks before it, and again with each change
    of what it reads.
    """
    known = vars(eval_frame)
    if "skip_code" in known:  # in older releases of torch
        known["skip_code"](wrapper.__code__)
    else:
        skip, go_on = eval_frame._FrameAction.SKIP, eval_frame._FrameAction.DEFAULT  # noqa: SLF001 - public only through the compiler, which takes seconds to load
        strategy = eval_frame._FrameExecStrategy(skip, go_on)  # noqa: SLF001 - likewise
        eval_frame.set_code_exec_strategy(wrapper.__code__, strategy)
