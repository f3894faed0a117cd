"""Backward passes: what tells the steps of a program that updates its parameters itself.

A step does not end with the pass, for the update comes after it. It ends with whatever the program
does next that is seen: a batch that is asked for, a module that is called. Where nothing is seen
between two passes, their ends are all there is.
"""

import functools
from typing import Any

import torch
from torch._guards import TracingContext

from selftime.capture.patches import Patches
from selftime.capture.steps.call_sites import call_path
from selftime.capture.steps.compiler import passing_over, uncompiled
from selftime.capture.steps.hub import Hub
from selftime.capture.steps.optimizers import OptimizerSteps
from selftime.capture.steps.rhythm import Participant, Rounds
from selftime.capture.steps.source import Source


class BackwardSteps:
    """Wraps what `backward` and `torch.autograd.grad` both call."""

    def __init__(self, hub: Hub, patches: Patches, optimizers: OptimizerSteps) -> None:
        self.hub = hub
        self.patches = patches
        self.optimizers = optimizers
        self._places: dict[int, Participant] = {}
        self._rounds = Rounds()
        self._batches = Participant(built=0)
        """The batches that are asked for."""
        self._ended = False
        """Whether a step ends with whatever comes next."""
        self._others = False
        """Whether anything else was seen in this round of passes."""

    def attach(self) -> None:
        self.patches.wrap(torch.autograd, "_engine_run_backward", passing_over(self._run))

    @uncompiled
    def something_else(self, *, batch: bool = False) -> None:
        """The program does something that is neither a pass nor an update.

        As long as it asks for batches, only that ends a step: several passes may be made on one.
        """
        self._others = True
        if batch:
            self._rounds.count_in(self._batches)
        elif self._rounds.expects(self._batches):
            return
        if self._ended:
            self._ended = False
            self.hub.between_steps(Source.BACKWARD)

    def _run(self, original: Any) -> Any:
        hub = self.hub

        @functools.wraps(original)
        def run_backward(*args: Any, **kwargs: Any) -> Any:
            within = hub.in_backward or hub.in_optimizer or hub.in_module
            if within or hub.elsewhere(Source.BACKWARD) or TracingContext.try_get() is not None:
                return original(*args, **kwargs)
            self._ended = False
            hub.stepped_in_backward = False
            hub.enter("in_backward")
            try:
                result = original(*args, **kwargs)
            finally:
                hub.enter("in_backward", False)
            self._end()
            return result

        return run_backward

    @uncompiled
    def _end(self) -> None:
        if self.hub.stepped_in_backward:
            self.optimizers.end_of_backward()
            return
        if not self.hub.believes(Source.BACKWARD):
            return
        self.hub.quiet_batches = 0
        place = self._places.setdefault(call_path(above=2), Participant(self._rounds.count))
        # Nobody knows how many passes make a step until one of them comes again.
        whole = self._rounds.came(place, more_expected=True)
        if not whole or self.optimizers.waited_for():
            return
        self._ended, self._others = self._others, False
        if not self._ended:
            self.hub.between_steps(Source.BACKWARD)
