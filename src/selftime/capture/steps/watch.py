"""All sources of steps together, from the import of torch to the end of the recording."""

import functools
from collections.abc import Callable
from typing import Any

import torch

from selftime.capture.patches import Patches
from selftime.capture.steps.backward import BackwardSteps
from selftime.capture.steps.batches import BatchSteps
from selftime.capture.steps.compiler import passing_over
from selftime.capture.steps.hub import Hub
from selftime.capture.steps.modules import ModuleSteps
from selftime.capture.steps.optimizers import OptimizerSteps
from selftime.capture.steps.source import Source


class Steps:
    """Calls `boundary` between two steps, and `pulse` now and then within them.

    `unlike` is called right before a boundary that ends a step in which something else happened
    than in most: an evaluation, a new pass over the data, a prompt among tokens. Where `recording`
    tells that nothing is recorded, another thread may take over with a better source.
    """

    def __init__(
        self,
        boundary: Callable[[Source], None],
        pulse: Callable[[], None],
        unlike: Callable[[], None] | None = None,
        recording: Callable[[], bool] | None = None,
    ) -> None:
        self._hub = Hub(boundary, pulse, unlike, recording)
        self._patches = Patches()
        self._optimizers = OptimizerSteps(self._hub, self._patches)
        self._backward = BackwardSteps(self._hub, self._patches, self._optimizers)
        self._batches = BatchSteps(self._hub, self._patches, self._optimizers, self._backward)
        self._modules = ModuleSteps(self._hub, self._optimizers, self._backward)

    @property
    def idle(self) -> bool:
        """Whether every wrapper does nothing; set it in a forked child."""
        return self._hub.idle

    @idle.setter
    def idle(self, idle: bool) -> None:
        self._hub.idle = idle

    def attach(self) -> None:
        """Wrap torch's entry points."""
        self._optimizers.attach()
        self._backward.attach()
        self._modules.attach()
        self._batches.attach()
        self._patches.wrap(torch.nn.Module, "train", passing_over(self._mode_set))

    def detach(self) -> None:
        """Unwrap everything; what somebody else has wrapped since does nothing from now on."""
        self.idle = True
        self._hub.modules.release()
        self._patches.undo()

    def expect_no_recorder(self) -> None:
        """Nothing looks up what a module's call is: it need not be shown torch's own."""
        self._hub.modules.expect_no_recorder()

    def stop_watching_modules(self) -> None:
        """Let module calls be as torch made them: they have nothing more to tell."""
        self._hub.modules.release()

    def _mode_set(self, original: Any) -> Any:
        @functools.wraps(original)
        def train(self_: Any, mode: bool = True) -> Any:
            if not mode and self_.training and not self._hub.idle:
                self._hub.kinds.note("an evaluation")
            return original(self_, mode)

        return train
