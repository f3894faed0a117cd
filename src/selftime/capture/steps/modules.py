"""Outermost calls of modules: a step begins where one is called again from the same place."""

import weakref
from collections.abc import Iterable
from itertools import chain
from typing import Any, Final

import torch

from selftime.capture.steps.backward import BackwardSteps
from selftime.capture.steps.call_sites import call_path
from selftime.capture.steps.compiler import passed_over, uncompiled
from selftime.capture.steps.hub import Hub
from selftime.capture.steps.nested_calls import InnerCalls
from selftime.capture.steps.optimizers import OptimizerSteps
from selftime.capture.steps.rhythm import Marker
from selftime.capture.steps.source import Source

MANY_MODULES: Final = 1000
"""Modules that are remembered; a program that builds one for each call goes on for ever."""


class ModuleSteps:
    """Watches the calls of modules until something better speaks."""

    def __init__(self, hub: Hub, optimizers: OptimizerSteps, backward: BackwardSteps) -> None:
        self.hub = hub
        self.optimizers = optimizers
        self.backward = backward
        self.within = InnerCalls(hub)
        self._numbers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._next = 0
        self._here = Marker()
        self._anywhere = Marker()

    def attach(self) -> None:
        self.hub.modules.handle = self._call
        self.hub.modules.wrap()

    @passed_over
    def _call(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        if self.hub.elsewhere(Source.MODULE):
            return original(module, *args, **kwargs)
        if self.within.watching:
            return self.within.call(original, module, args, kwargs)
        self._came(module, call_path(above=2), chain(args, kwargs.values()))
        if not torch.is_grad_enabled() and self.within.wanted():
            return self._look_into(original, module, args, kwargs)
        self.hub.enter("in_module")
        try:
            return original(module, *args, **kwargs)
        finally:
            self.hub.enter("in_module", False)

    @passed_over
    def _look_into(self, original: Any, module: Any, args: Any, kwargs: Any) -> Any:
        self.within.begin()
        try:
            return original(module, *args, **kwargs)
        finally:
            self.within.end()

    @uncompiled
    def _came(self, module: Any, path: int, given: Iterable[Any]) -> None:
        number = self._number(module)
        self.hub.quiet_batches = 0
        self.backward.something_else()
        here = self._here.came((number, path))
        anywhere = self._anywhere.came(number)
        if self.within.needs() or (torch.is_grad_enabled() and self.optimizers.waited_for()):
            return
        if here:
            self.hub.between_steps(Source.MODULE)
        elif anywhere:
            self.hub.between_steps(Source.MODULE_ANYWHERE)
        if self.hub.believes(Source.MODULE):
            state = (module.training, torch.is_grad_enabled(), _shape(given))
            self.hub.kinds.note((number, path, state))

    def _number(self, module: Any) -> int:
        """A number of its own: another module may get the address of one that is gone."""
        known = self._numbers.get(id(module))
        if known is not None and known[0]() is module:
            return known[1]
        if len(self._numbers) >= MANY_MODULES:
            self._numbers.clear()
        self._next += 1
        self._numbers[id(module)] = weakref.ref(module), self._next
        return self._next


def _shape(given: Iterable[Any]) -> tuple[int, ...] | None:
    """The sizes of the first tensor: those of a prompt differ from those of a token."""
    return next((tuple(one.shape) for one in given if isinstance(one, torch.Tensor)), None)
