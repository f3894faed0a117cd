"""The call of every `nn.Module`, wrapped while it may tell where steps begin.

Global hooks would change what `torch.compile` makes of a model. A wrapped `nn.Module.__call__` does
not, as long as the compiler takes it for an untouched one: it goes straight to `forward` then.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from selftime.capture.steps.compiler import passed_over

COMPILER: Final = ("torch._dynamo.utils", "torch._dynamo.variables.nn_module")
"""Where the compiler keeps what an untouched call is: it looked it up when it was loaded."""


class ModuleCalls:
    """Wraps `nn.Module.__call__`: a call becomes `handle(original, module, args, kwargs)`."""

    def __init__(self) -> None:
        original = torch.nn.Module.__call__

        calls = self

        # torch's recorder finds the module by the first argument's name.
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - as above
            if calls.shut or torch.compiler.is_compiling():
                return original(self, *args, **kwargs)
            return calls.handle(original, self, args, kwargs)

        passed_over(__call__)
        self._original: Any = original
        self._wrapper: Any = __call__
        self._released = False
        self._known = False
        """Whether the recorder has looked up what a module's call is; it does so once."""
        self.handle: Callable[[Any, Any, Any, Any], Any] = _straight
        self.shut = False
        """Read at every call of every module, so it is one flag: calls pass straight through."""

    def wrap(self) -> None:
        """Begin to watch."""
        _set(self._original, self._wrapper)

    def pass_through(self, through: bool) -> None:
        """Whether calls are none of our business now: they are within another."""
        self.shut = through or self._released

    def release(self) -> None:
        """Let calls be as torch made them."""
        self.shut = self._released = True
        _set(self._wrapper, self._original)

    def expect_no_recorder(self) -> None:
        """Nobody looks up what a module's call is, so it need not be shown torch's own."""
        self._known = True

    @contextmanager
    def as_torch_made(self) -> Iterator[None]:
        """The recorder knows modules by the code of their call: show it torch's own.

        Each change takes 0.1 ms, for every class of modules has to hear of it.
        """
        wrapped = not self._known and _set(self._wrapper, self._original)
        try:
            yield
        finally:
            # Its stacks are taken by a profile function, which looks it up at its first call.
            self._known = self._known or (wrapped and sys.getprofile() is not None)
            if wrapped and not self._released:
                _set(self._original, self._wrapper)


def _straight(original: Any, module: Any, args: Any, kwargs: Any) -> Any:
    return original(module, *args, **kwargs)


def _set(old: Any, new: Any) -> bool:
    """Put the new call in the place of the old one, unless something else is there."""
    if torch.nn.Module.__call__ is not old:
        return False
    torch.nn.Module.__call__ = new  # type: ignore[method-assign]  # the purpose
    for name in COMPILER:
        module = sys.modules.get(name)
        if module is not None and vars(module).get("unpatched_nn_module_call") is old:
            module.unpatched_nn_module_call = new  # type: ignore[attr-defined]  # as looked up
    return True
