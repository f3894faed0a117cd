"""Replaces `nn.Module.__call__` by a wrapper while steps are found from module calls.

Global hooks would change how `torch.compile` compiles a model. A wrapped `nn.Module.__call__` does
not, if the compiler takes it for the unpatched one: it then inlines `forward` directly.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch._C import _is_tracing

from selftime.capture.steps.torch_compile import skip_frame_in_compile

DYNAMO_MODULES_WITH_MODULE_CALL: Final = (
    "torch._dynamo.utils",
    "torch._dynamo.variables.nn_module",
)
"""Modules of `torch.compile` that keep a reference to the original `nn.Module.__call__`."""


class ModuleCallWrapper:
    """Replaces `nn.Module.__call__` so that each module call runs `handle` instead."""

    def __init__(self) -> None:
        original = torch.nn.Module.__call__

        wrapper = self

        # torch's profiler finds the module by the argument name `self`.
        def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807 - as above
            # What `torch.jit.trace` calls becomes part of its graph, recorded ranges included.
            if wrapper.pass_through or torch.compiler.is_compiling() or _is_tracing():
                return original(self, *args, **kwargs)
            return wrapper.handle(original, self, args, kwargs)

        skip_frame_in_compile(__call__)
        self._original: Any = original
        self._wrapper: Any = __call__
        self.is_released = False
        """Whether the wrapper has been removed, not only between two steps."""
        self._profiler_has_looked_up = False
        """Whether the profiler has read the code of `nn.Module.__call__`, which it does once."""
        self.handle: Callable[[Any, Any, Any, Any], Any] = _call_original_module_call
        self.pass_through = False
        """Whether module calls go directly to torch's `__call__`: the wrapper was removed, or
        another wrapped call is running."""

    def install_wrapper(self) -> None:
        """Replaces `nn.Module.__call__` by the wrapper."""
        _replace_module_call(self._original, self._wrapper)

    def remove_wrapper(self) -> None:
        """Restores `nn.Module.__call__`, permanently unless `restore_wrapper` follows."""
        self.pass_through = self.is_released = True
        _replace_module_call(self._wrapper, self._original)

    def restore_wrapper(self) -> None:
        """Replaces `nn.Module.__call__` again, after `remove_wrapper`; in any thread."""
        self.pass_through = self.is_released = False
        _replace_module_call(self._original, self._wrapper)

    def expect_no_profiler(self) -> None:
        """Keeps the wrapper installed between steps from now on, since no profiler will run."""
        self._profiler_has_looked_up = True

    @contextmanager
    def temporarily_unwrapped(self) -> Iterator[None]:
        """Restores torch's `__call__` in a `with` block in which the profiler may start.

        Each change takes 0.1 ms, since it invalidates the caches of all module classes.
        """
        wrapped = not self._profiler_has_looked_up and _replace_module_call(
            self._wrapper, self._original
        )
        try:
            yield
        finally:
            # With frames, the profiler's profile function reads the code at its first call.
            self._profiler_has_looked_up = self._profiler_has_looked_up or (
                wrapped and sys.getprofile() is not None
            )
            if wrapped and not self.is_released:
                _replace_module_call(self._original, self._wrapper)


def _call_original_module_call(original: Any, module: Any, args: Any, kwargs: Any) -> Any:
    return original(module, *args, **kwargs)


def _replace_module_call(old: Any, new: Any) -> bool:
    """Sets `nn.Module.__call__` to `new` if it is `old`; returns whether it was replaced.

    Not by `AttributePatches`, which restores only what it replaced: a module of `torch.compile`
    that is imported meanwhile copies the wrapper, and its copy must be restored too.
    """
    if torch.nn.Module.__call__ is not old:
        return False
    torch.nn.Module.__call__ = new  # type: ignore[method-assign]  # the purpose
    for name in DYNAMO_MODULES_WITH_MODULE_CALL:
        module = sys.modules.get(name)
        if module is not None and vars(module).get("unpatched_nn_module_call") is old:
            module.unpatched_nn_module_call = new  # type: ignore[attr-defined]  # as looked up
    return True
