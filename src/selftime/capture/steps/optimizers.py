"""Steps of `torch.optim` optimizers: a step of the program ends when all of them have stepped."""

import functools
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

from selftime.capture.patches import Patches
from selftime.capture.steps.call_sites import call_site
from selftime.capture.steps.compiler import passing_over, uncompiled
from selftime.capture.steps.hub import Hub
from selftime.capture.steps.rhythm import Participant, Rounds
from selftime.capture.steps.source import Source

MOST_WAITS: Final = 40
"""Calls and backward passes that wait for an optimizer that was built: 20 of each, as many as are
gathered for one step, and more only by who trains something large on something small."""


@dataclass(slots=True, eq=False)
class _Known:
    """An optimizer that was built or has stepped."""

    ref: "weakref.ref[Any]"
    participant: Participant
    site: int | None = None
    """Where the program has it step."""
    within: bool = False
    """Whether it was seen to step within another one, or within a backward pass."""


class OptimizerSteps:
    """Wraps the `step` of every class of optimizers."""

    def __init__(self, hub: Hub, patches: Patches) -> None:
        self.hub = hub
        self.patches = patches
        self._all: list[_Known] = []
        self._by_id: dict[int, _Known] = {}
        self._rounds = Rounds()
        self._in_backward = Participant(built=0)
        """All that step within a backward pass, as one layer after the other may, are one."""
        self._said: Source | None = None
        self._waits = 0

    def attach(self) -> None:
        """Optimizers that were built before are seen when they step."""
        # torch calls it whenever an optimizer is built or unpickled, and wraps `step` there.
        self.patches.wrap(torch.optim.Optimizer, "_patch_step_function", passing_over(self._built))
        for kind in _kinds(torch.optim.Optimizer):
            if getattr(kind.__dict__.get("step"), "hooked", False):
                self._wrap_step(kind)

    def known(self) -> bool:
        """Whether there is any optimizer."""
        return next(self._alive(), None) is not None

    def gathering(self) -> bool:
        """Whether a step is being gathered: some optimizer's first parameters have gradients."""
        return any(p.grad is not None for one in self._alive() for p in _parameters(one))

    def waited_for(self) -> bool:
        """Whether an optimizer may still step soon, so that lesser sources are silent."""
        if not any(p.requires_grad for one in self._alive() for p in _parameters(one)):
            return False
        self._waits += 1
        return self._waits <= MOST_WAITS

    def _alive(self) -> Iterator[Any]:
        for known in self._all:
            optimizer = known.ref()
            if optimizer is not None:
                yield optimizer

    def _built(self, original: Any) -> Any:
        @functools.wraps(original)
        def patch_step(optimizer: Any) -> None:
            original(optimizer)
            if self.hub.idle:
                return
            self._remember(optimizer)
            kind = next(base for base in type(optimizer).__mro__ if "step" in base.__dict__)
            self._wrap_step(kind)

        return patch_step

    def _wrap_step(self, kind: Any) -> None:
        if (kind, "step") not in self.patches:
            self.patches.wrap(kind, "step", passing_over(self._step))

    def _step(self, original: Any) -> Any:
        hub = self.hub

        @functools.wraps(original)
        def step(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or hub.idle or not args:
                return original(*args, **kwargs)
            if hub.in_optimizer or hub.in_backward:
                self._remember(args[0]).within = True
                hub.stepped_in_backward = hub.in_backward
                return original(*args, **kwargs)
            if hub.elsewhere(Source.OPTIMIZER):
                return original(*args, **kwargs)
            hub.enter("in_optimizer")
            try:
                result = original(*args, **kwargs)
            finally:
                hub.enter("in_optimizer", False)
            self._end(args[0])
            return result

        return step

    @uncompiled
    def _remember(self, optimizer: Any) -> _Known:
        known = self._by_id.get(id(optimizer))
        if known is None or known.ref() is not optimizer:
            self._all = [one for one in self._all if one.site is not None or one.ref() is not None]
            known = _Known(weakref.ref(optimizer), Participant(built=self._rounds.count))
            self._by_id[id(optimizer)] = known
            self._all.append(known)
        return known

    @uncompiled
    def _end(self, optimizer: Any) -> None:
        known = self._remember(optimizer)
        if known.site is None:
            known.site = call_site(above=2)
            self._succeed(known)
        self._came(known.participant)

    @uncompiled
    def end_of_backward(self) -> None:
        """A backward pass ended in which optimizers stepped."""
        self._came(self._in_backward)

    def _came(self, participant: Participant) -> None:
        self._waits = 0
        self.hub.quiet_batches = 0
        self.hub.modules.release()  # an optimizer tells more than they do
        for known in self._all:
            if known.ref() is None:
                self._rounds.leave(known.participant)
        first = participant.last is None
        expected = (first or self._said is None) and self._expected(participant)
        whole = self._rounds.came(participant, more_expected=expected)
        if expected:
            self._said = Source.SOME_OPTIMIZERS
        elif first or self._said is None:
            self._said = Source.OPTIMIZER
        if whole:
            self.hub.between_steps(self._said)

    def _expected(self, coming: Participant) -> bool:
        """Whether another one was built, may train what no other one does, and never stepped."""
        used: set[int] = set()
        waiting: list[set[int]] = []
        for known in self._all:
            optimizer = known.ref()
            if optimizer is None:
                continue
            trained = {id(p) for p in _parameters(optimizer) if p.requires_grad}
            if known.within or known.participant is coming or known.participant.last is not None:
                used |= trained
            elif trained:
                waiting.append(trained)
        return any(not trained & used for trained in waiting)

    def _succeed(self, new: _Known) -> None:
        """Take the part of one that stepped in the same place until this one was built.

        A program that makes an optimizer for each task or model has one in turn, not many at once.
        """
        before = [
            known
            for known in self._all
            if known is not new
            and known.site == new.site
            and (known.ref() is None or (known.participant.last or 0) <= new.participant.built)
        ]
        if before:
            before.sort(key=lambda known: known.participant.last or 0)
            for known in before:
                self._all.remove(known)
                self._rounds.leave(known.participant)
            new.participant = before[-1].participant


def _parameters(optimizer: Any) -> Iterator[Any]:
    """The first parameter of each group: they tell whom it trains, and whether it is about to."""
    for group in optimizer.param_groups:
        yield from group["params"][:1]


def _kinds(kind: Any) -> Iterator[Any]:
    for below in kind.__subclasses__():
        yield below
        yield from _kinds(below)
