"""Provides a callback for Hugging Face's `Trainer` that records a few steps.

A step is an optimizer step, over any number of batches. It ends before the trainer logs, evaluates
and saves; these, and the wait for the next batch, belong to the next step.
"""

from typing import TYPE_CHECKING, Any

from transformers.trainer_callback import TrainerCallback

from selftime.frameworks.recording import Options, Recording

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SelftimeCallback(TrainerCallback):
    """A callback for `Trainer(..., callbacks=[...])` that records a few steps of each training."""

    def __init__(self, **options: "Unpack[Options]") -> None:
        self.recording = Recording("SelftimeCallback", options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's
        self.recording.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's
        self.recording.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's
        self.recording.end()
