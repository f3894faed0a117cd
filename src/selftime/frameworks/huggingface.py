"""Hugging Face's `Trainer`: a callback that records a few of its steps.

A step is an optimizer step, however many batches its gradients are gathered from. It ends before
the trainer logs, evaluates and saves, which belongs to the step after it, as the wait for the next
batch does.
"""

from typing import TYPE_CHECKING, Any

from transformers.trainer_callback import TrainerCallback

from selftime.frameworks.recording import Options, Recording

if TYPE_CHECKING:
    from typing_extensions import Unpack


class SelftimeCallback(TrainerCallback):
    """`Trainer(..., callbacks=[SelftimeCallback()])` records a few steps of each training."""

    def __init__(self, **options: "Unpack[Options]") -> None:
        self.recording = Recording("SelftimeCallback", options)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's
        self.recording.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's
        self.recording.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:  # noqa: ARG002 - the trainer's
        self.recording.end()
