"""Finds steps from requests for a DataLoader's batches, in a program without module calls."""

import functools
import sys
import weakref
from threading import get_ident
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

from torch.utils.data import dataloader

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.facts.batch_tensors import note_batch
from selftime.capture.facts.creation_sites import note_creation
from selftime.capture.steps.backward import BackwardStepFinder
from selftime.capture.steps.detection_state import StepDetectionState, StepSource
from selftime.capture.steps.optimizers import OptimizerStepFinder
from selftime.capture.steps.torch_compile import never_torch_compile, skip_wrapper_frames_in_compile

MIN_BATCHES_BEFORE_STEPS: Final = 3
"""Number of batches after which each further batch counts as a step, if no optimizer step,
backward pass or module call has occurred."""

MIN_BATCHES_BEFORE_STEPS_WITH_OPTIMIZER: Final = 20
"""Used instead of `MIN_BATCHES_BEFORE_STEPS` while the program has an optimizer, which may make
its first step late."""


class BatchStepFinder:
    """Wraps the request for a DataLoader's next batch, to find where steps end."""

    def __init__(
        self,
        state: StepDetectionState,
        patches: AttributePatches,
        optimizers: OptimizerStepFinder,
        backward: BackwardStepFinder,
    ) -> None:
        self.state = state
        self.patches = patches
        self.optimizers = optimizers
        self.backward = backward
        self._iterator_ref: weakref.ref[Any] | None = None

    def attach(self) -> None:
        # torch has no hook for the request of a batch.
        self.patches.wrap_attribute(
            dataloader._BaseDataLoaderIter,  # noqa: SLF001 - as above
            "__next__",
            skip_wrapper_frames_in_compile(self._wrap_next_batch),
        )
        if self.state.ledger is not None:
            self.patches.wrap_attribute(
                dataloader.DataLoader, "__iter__", skip_wrapper_frames_in_compile(self._wrap_iter)
            )
            self.patches.wrap_attribute(
                dataloader.DataLoader, "__init__", skip_wrapper_frames_in_compile(self._wrap_init)
            )

    def _wrap_next_batch(self, original: Any) -> Any:
        state = self.state

        @functools.wraps(original)
        def next_batch(iterator: Any) -> Any:
            if state.is_off or (state.thread != get_ident() and not state.is_step_thread):
                return original(iterator)
            ledger = state.ledger
            is_first = False
            with state.recorder_work:
                is_first = self._on_batch_request(iterator)
                if ledger is not None:
                    ledger.activities.enter("epoch_boundary" if is_first else "data_wait")
            # A transform may be a module; its calls are no steps.
            pass_through, state.module_calls.pass_through = state.module_calls.pass_through, True
            try:
                batch = original(iterator)
            finally:
                state.module_calls.pass_through = pass_through or state.module_calls.is_released
                if ledger is not None:
                    with state.recorder_work:
                        ledger.activities.leave()
            with state.recorder_work:
                if state.is_recording():
                    note_batch(batch)
            return batch

        return next_batch

    def _wrap_init(self, original: Any) -> Any:
        state = self.state

        @functools.wraps(original)
        def init(loader: Any, *args: Any, **kwargs: Any) -> None:
            if state.ledger is not None and not state.is_off:
                with state.recorder_work:
                    frame = sys._getframe().f_back  # noqa: SLF001 - the only way to the line
                    is_user_file = state.ledger.kinds.is_user_file
                    note_creation("loader", type(loader).__name__, frame, is_user_file)
            original(loader, *args, **kwargs)

        return init

    def _wrap_iter(self, original: Any) -> Any:
        state = self.state

        @functools.wraps(original)
        def start_iterator(loader: Any) -> Any:
            ledger = state.ledger
            if ledger is None or state.is_off or not state.is_step_thread:
                return original(loader)
            begun = perf_counter_ns(), thread_time_ns()
            workers, starts_workers = 0, False
            with state.recorder_work:
                state.begin_first_step()
                ledger.activities.enter("epoch_boundary")
                workers = _worker_count(loader)
                starts_workers = workers > 0 and getattr(loader, "_iterator", None) is None
            try:
                return original(loader)
            finally:
                with state.recorder_work:
                    ledger.activities.leave()
                    ledger.iterators.add(
                        begun,
                        workers,
                        starts_workers=starts_workers,
                        ahead=_batches_made_ahead(loader, workers),
                        frame=sys._getframe().f_back,  # noqa: SLF001 - the only way to the line
                        is_user_file=ledger.kinds.is_user_file,
                    )

        return start_iterator

    @never_torch_compile
    def _on_batch_request(self, iterator: Any) -> bool:
        """Counts a batch request, which may end a step; returns whether its iterator is new."""
        state = self.state
        state.begin_first_step()
        state.torch_events += 1
        state.batch_requests += 1
        state.on_progress()
        is_accepted = state.accepts_source(StepSource.BACKWARD)
        if is_accepted:
            self.backward.on_batch_request_or_module_call()
        is_first = self._iterator_ref is None or self._iterator_ref() is not iterator
        if is_first:
            self._iterator_ref = weakref.ref(iterator)
            state.step_kinds.add_event("a new pass over a DataLoader")
        if not is_accepted:  # a better source is known
            return is_first
        state.batches_without_better += 1
        required = (
            MIN_BATCHES_BEFORE_STEPS_WITH_OPTIMIZER
            if self.optimizers.has_live_optimizer()
            else MIN_BATCHES_BEFORE_STEPS
        )
        if state.batches_without_better > required and not self.optimizers.has_gradients():
            state.end_step(StepSource.DATALOADER)
        return is_first


def _worker_count(loader: Any) -> int:
    count = getattr(loader, "num_workers", 0)
    return count if isinstance(count, int) else 0


def _batches_made_ahead(loader: Any, worker_count: int) -> int | None:
    """Returns how many batches workers may make ahead of the loop; None if it is not known."""
    each = getattr(loader, "prefetch_factor", None)
    return each * worker_count if isinstance(each, int) else None
