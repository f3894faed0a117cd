"""The call of every `nn.Module`, wrapped while it may tell where steps begin.

Global hooks would change what `torch.compile` makes of a model. A wrapped `nn.Module.__call__` does
not, as long as it is in place when the compiler is loaded: the compiler looks up then what an
untouched call is, and goes straight to `forward` from there.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

__all__ = ["ModuleCalls"]


class ModuleCalls:
    """Wraps `nn.Module.__call__`: outermost ones become `call(original, module, args, kwargs)`."""

    def __init__(self, call: Callable[[Any, Any, Any, Any], Any]) -> None:
        original = torch.nn.Module.__call__

        calls = self

        # torch's recorder finds the module by the first argument's name.
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - as above
            if calls.shut or torch.compiler.is_compiling():
                return original(self, *args, **kwargs)
            return call(original, self, args, kwargs)

        self._original: Any = original
        self._wrapper: Any = __call__
        self._keep = True
        self._released = False
        self.shut = False
        """Read at every call of every module, so it is one flag: calls pass straight through."""

    def wrap(self) -> None:
        _set(self._wrapper)

    def pass_through(self, through: bool) -> None:
        """Whether calls are none of our business now: they are within another."""
        self.shut = through or self._released

    def release(self) -> None:
        """Let calls be as torch made them, unless the compiler holds ours for torch's."""
        self.shut = self._released = True
        self._keep = self._keep and "torch._dynamo" in sys.modules
        if not self._keep and torch.nn.Module.__call__ is self._wrapper:
            _set(self._original)

    @contextmanager
    def as_torch_made(self) -> Iterator[None]:
        """The recorder knows modules by the code of their call: show it torch's own."""
        wrapped = torch.nn.Module.__call__ is self._wrapper
        if wrapped:
            _set(self._original)
        try:
            yield
        finally:
            if wrapped and self._keep:
                _set(self._wrapper)


def _set(call: Any) -> None:
    torch.nn.Module.__call__ = call  # type: ignore[method-assign]  # the purpose
