"""Finds a program's steps without a word in the program.

A step ends where the first optimizer that stepped has stepped again. A program without optimizers
steps with each outermost call of the first module that is called twice, and one without module
calls with each batch of a DataLoader. torch's own entry points are wrapped for that, and unwrapped
as soon as they have nothing more to tell.
"""

import functools
import threading
import weakref
from collections.abc import Callable
from enum import IntEnum
from typing import Any, Final

import torch
from torch.utils.data import dataloader

from selftime.capture.module_calls import ModuleCalls

__all__ = ["Source", "Steps"]

QUIET_BATCHES: Final = 3
"""Batches without a module call after which the batches themselves are the steps."""

QUIET_BATCHES_WITH_OPTIMIZER: Final = 20
"""The same where an optimizer exists, which may step late: it has to have no gradients either."""

MANY_MODULES: Final = 1000


class Source(IntEnum):
    """What tells where steps end; the higher it is, the more it is to be believed."""

    DATALOADER = 1
    MODULE = 2
    OPTIMIZER = 3
    TOLD = 4
    """The program itself, through `selftime.watch` or a framework's callback."""

    @property
    def label(self) -> str:
        return ("DataLoader", "module calls", "optimizer steps", "the program")[self - 1]

    @property
    def ends_steps(self) -> bool:
        """Whether its boundaries end a step; a module's call and a batch begin one."""
        return self in (Source.OPTIMIZER, Source.TOLD)


class Steps:
    """Calls `boundary` between two steps, and `pulse` now and then within them."""

    def __init__(self, boundary: Callable[[Source], None], pulse: Callable[[], None]) -> None:
        self.idle = False
        """Set to make every wrapper do nothing; a forked child sets it too."""
        self._boundary = boundary
        self._pulse = pulse
        self._thread: int | None = None
        """The thread that steps: the first that did."""
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._marker: weakref.ref[Any] | None = None
        self._called: dict[int, weakref.ref[Any]] = {}
        self._quiet_batches = 0
        self._depth = 0
        self._modules = ModuleCalls(self._outermost)
        self._undo: dict[Any, Callable[[], None]] = {}

    def attach(self) -> None:
        """Wrap torch's entry points; optimizers that were built before are not seen."""
        self._wrap_optimizers()
        self._modules.wrap()
        self._replace(dataloader._BaseDataLoaderIter, "__next__", self._next_batch)  # noqa: SLF001 - no hook tells when a batch is asked for

    def detach(self) -> None:
        """Unwrap everything; what has to stay wrapped does nothing from now on."""
        self.idle = True
        self._modules.release()
        for undo in self._undo.values():
            undo()
        self._undo.clear()

    def _replace(self, owner: Any, name: str, wrap: Callable[[Any], Any]) -> None:
        original = owner.__dict__[name]
        wrapper = wrap(original)
        setattr(owner, name, wrapper)

        def undo() -> None:
            if owner.__dict__.get(name) is wrapper:
                setattr(owner, name, original)

        self._undo[owner, name] = undo

    def stop_watching_modules(self) -> None:
        """Let module calls be as torch made them: they have nothing more to tell."""
        self._modules.release()

    def _go_in(self, by: int) -> None:
        self._depth += by
        self._modules.pass_through(self._depth > 0)

    def _elsewhere(self) -> bool:
        return self.idle or self._thread not in (None, threading.get_ident())

    def _between_steps(self, source: Source) -> None:
        self._thread = threading.get_ident()
        with self._modules.as_torch_made():
            self._boundary(source)

    # Optimizers

    def _wrap_optimizers(self) -> None:
        def wrap(original: Any) -> Any:
            @functools.wraps(original)
            def patch_step(optimizer: Any) -> None:
                original(optimizer)
                self._optimizers.add(optimizer)
                self.stop_watching_modules()  # an optimizer tells more than they do
                kind = next(base for base in type(optimizer).__mro__ if "step" in base.__dict__)
                if not self.idle and (kind, "step") not in self._undo:
                    self._replace(kind, "step", self._optimizer_step)

            return patch_step

        # torch calls it whenever an optimizer is built, and wraps the class's `step` there.
        self._replace(torch.optim.Optimizer, "_patch_step_function", wrap)

    def _optimizer_step(self, original: Any) -> Any:
        @functools.wraps(original)
        def step(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or self._elsewhere() or self._depth:
                return original(*args, **kwargs)
            self._go_in(1)  # an optimizer may call another: the outer one steps
            try:
                result = original(*args, **kwargs)
            finally:
                self._go_in(-1)
            self._quiet_batches = 0
            if self._is_marker(args[0], torch.optim.Optimizer):
                self._between_steps(Source.OPTIMIZER)
            return result

        return step

    def _is_marker(self, thing: Any, kind: type) -> bool:
        """Whether this one marks the steps: the first of its kind that is still there."""
        marker = self._marker() if self._marker is not None else None
        if marker is None or not isinstance(marker, kind):
            self._marker = weakref.ref(thing)
            return True
        return marker is thing

    # Modules

    def _outermost(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        if self._elsewhere() or self._optimizers:
            return original(module, *args, **kwargs)
        self._go_in(1)
        try:
            self._quiet_batches = 0
            if self._called_again(module) and self._is_marker(module, torch.nn.Module):
                self._between_steps(Source.MODULE)
            return original(module, *args, **kwargs)
        finally:
            self._go_in(-1)

    def _called_again(self, module: Any) -> bool:
        known = self._called.get(id(module))
        if known is not None and known() is module:
            return True
        if len(self._called) >= MANY_MODULES:  # a program that builds a module for each call
            self._called.clear()
        self._called[id(module)] = weakref.ref(module)
        return False

    # Batches

    def _next_batch(self, original: Any) -> Any:
        @functools.wraps(original)
        def next_batch(iterator: Any) -> Any:
            main = threading.get_ident() == threading.main_thread().ident
            if not main or self._elsewhere():
                return original(iterator)
            self._batch_asked_for()
            self._go_in(1)  # what transforms a sample may be a module: it makes no step
            try:
                return original(iterator)
            finally:
                self._go_in(-1)

        return next_batch

    def _batch_asked_for(self) -> None:
        self._pulse()
        self._quiet_batches += 1
        quiet = QUIET_BATCHES_WITH_OPTIMIZER if self._optimizers else QUIET_BATCHES
        if self._quiet_batches > quiet and not self._gradients():
            self._between_steps(Source.DATALOADER)

    def _gradients(self) -> bool:
        """Whether a step is being gathered: some optimizer's first parameters have gradients."""
        return any(
            parameter.grad is not None
            for optimizer in self._optimizers
            for group in optimizer.param_groups[:1]
            for parameter in group["params"]
        )
