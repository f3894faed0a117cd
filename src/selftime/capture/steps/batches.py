"""Batches of a DataLoader: the steps of a program that calls no module on them."""

import functools
import weakref
from typing import Any, Final

from torch.utils.data import dataloader

from selftime.capture.patches import Patches
from selftime.capture.steps.backward import BackwardSteps
from selftime.capture.steps.compiler import passing_over, uncompiled
from selftime.capture.steps.hub import Hub
from selftime.capture.steps.optimizers import OptimizerSteps
from selftime.capture.steps.source import Source

QUIET_BATCHES: Final = 3
"""Batches without anything better after which the batches themselves are the steps."""

QUIET_BATCHES_WITH_OPTIMIZER: Final = 20
"""The same where an optimizer exists, which may step late: it has to have no gradients either."""


class BatchSteps:
    """Wraps the asking for a batch."""

    def __init__(
        self, hub: Hub, patches: Patches, optimizers: OptimizerSteps, backward: BackwardSteps
    ) -> None:
        self.hub = hub
        self.patches = patches
        self.optimizers = optimizers
        self.backward = backward
        self._loader: weakref.ref[Any] | None = None

    def attach(self) -> None:
        # No hook tells when a batch is asked for.
        self.patches.wrap(
            dataloader._BaseDataLoaderIter,  # noqa: SLF001 - as above
            "__next__",
            passing_over(self._next_batch),
        )

    def _next_batch(self, original: Any) -> Any:
        hub = self.hub

        @functools.wraps(original)
        def next_batch(iterator: Any) -> Any:
            if hub.idle or not hub.steps_here:
                return original(iterator)
            self._asked_for(iterator)
            before = hub.in_fetch
            hub.enter("in_fetch")  # what transforms a sample may be a module: it makes no step
            try:
                return original(iterator)
            finally:
                hub.enter("in_fetch", before)

        return next_batch

    @uncompiled
    def _asked_for(self, iterator: Any) -> None:
        hub = self.hub
        hub.pulse()
        self.backward.something_else(batch=True)
        if self._loader is None or self._loader() is not iterator:
            self._loader = weakref.ref(iterator)
            hub.kinds.note("a new pass over a DataLoader")
        hub.quiet_batches += 1
        quiet = QUIET_BATCHES_WITH_OPTIMIZER if self.optimizers.known() else QUIET_BATCHES
        if hub.quiet_batches > quiet and not self.optimizers.gathering():
            hub.between_steps(Source.DATALOADER)
