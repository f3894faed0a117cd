"""Records steps of Lightning programs: base classes of selftime's callback and profiler.

They serve both packages, `lightning` and `pytorch_lightning`.

In training a step is an optimizer step, over any number of batches. In validation, test and
prediction, unless they run within training, it is a batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from selftime.frameworks.recording import Options, Recording

if TYPE_CHECKING:
    from typing_extensions import Unpack

_TRAINER_METHOD_FOR_TRAINING: Final = "fit"
"""Name of the trainer's method that trains."""

_TRAINING_BATCH_ACTION: Final = "run_training_batch"
"""Lightning's name for processing one training batch, from forward pass to optimizer step."""

_TRAINING_EPOCH_ACTION: Final = "run_training_epoch"
"""Lightning's name for one training epoch."""

_STEP_METHOD_BY_TRAINER_METHOD: Final = {
    "validate": "validation_step",
    "test": "test_step",
    "predict": "predict_step",
}
"""Maps a trainer method, such as `validate`, to Lightning's name for processing one batch in it."""


class _OptimizerStepDetector:
    """Detects whether an optimizer stepped during the batch that has just ended."""

    def __init__(self) -> None:
        self._seen = 0

    def store_step_of_trainer(self, trainer: Any) -> None:
        self._seen = trainer.global_step

    def has_optimizer_stepped(self, trainer: Any) -> bool:
        seen, self._seen = self._seen, trainer.global_step
        # With manual optimization the trainer's count of steps may not change.
        return trainer.accumulate_grad_batches == 1 or seen != self._seen


class TrainerHooks:
    """Methods of a Lightning callback that record a few steps of each run of the trainer."""

    def __init__(self, **options: "Unpack[Options]") -> None:
        super().__init__()
        self.recording = Recording(type(self).__name__, options)
        self._steps = _OptimizerStepDetector()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - the trainer's
        self._steps.store_step_of_trainer(trainer)
        self.recording.begin()

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        if self._steps.has_optimizer_stepped(trainer):
            self.recording.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - the trainer's
        self.recording.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002 - the trainer's
        self.recording.end(f"ended by {type(exception).__name__}")

    def _begin_recording_outside_training(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - the trainer's
        if (
            trainer.state.fn != _TRAINER_METHOD_FOR_TRAINING
        ):  # validation within training is part of its steps
            self.recording.begin()

    def _mark_step_outside_training(self, trainer: Any, *_: Any) -> None:
        if trainer.state.fn != _TRAINER_METHOD_FOR_TRAINING:
            self.recording.step()

    def _end_recording_outside_training(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - the trainer's
        if trainer.state.fn != _TRAINER_METHOD_FOR_TRAINING:
            self.recording.end()

    on_validation_start = on_test_start = on_predict_start = _begin_recording_outside_training
    on_validation_batch_end = on_test_batch_end = on_predict_batch_end = _mark_step_outside_training
    on_validation_end = on_test_end = on_predict_end = _end_recording_outside_training


class ActionProfiler:
    """Lightning profiler that adds the names of Lightning's actions to the trace."""

    def __init__(self, **options: "Unpack[Options]") -> None:
        super().__init__()
        self.recording = Recording(type(self).__name__, options)
        self._steps = _OptimizerStepDetector()
        self._regions: dict[str, Any] = {}
        self._trainer_method: str | None = None
        """Name of the trainer method that runs: fit, validate, test or predict; None if none
        runs."""
        self._lightning_module: Any = None
        """The `LightningModule` that the trainer runs; the trainer sets it."""

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        super().setup(stage, local_rank, log_dir)  # type: ignore[misc]  # of the other base class
        self._trainer_method = str(getattr(stage, "value", stage))
        self._steps.store_step_of_trainer(self._lightning_module.trainer)
        self.recording.begin()

    def start(self, action_name: str) -> None:
        from selftime.capture import record_function  # noqa: PLC0415 - imports torch

        if not self.recording.done and action_name not in self._regions:
            region = self._regions[action_name] = record_function(action_name)
            region.__enter__()  # type: ignore[no-untyped-call]  # torch

    def stop(self, action_name: str) -> None:
        region = self._regions.pop(action_name, None)
        if region is not None:
            region.__exit__(None, None, None)
        if self._does_action_end_step(action_name):
            self.recording.step()

    @contextmanager
    def profile(self, action_name: str) -> Iterator[str]:
        """Records a Lightning action in the trace; ends the recording if an epoch fails."""
        self.start(action_name)
        try:
            yield action_name
        except Exception as error:
            if action_name == _TRAINING_EPOCH_ACTION:
                self.recording.end(f"ended by {type(error).__name__}")
            raise
        finally:
            self.stop(action_name)

    def teardown(self, stage: str | None) -> None:
        self.recording.end()
        super().teardown(stage)  # type: ignore[misc]  # of the other base class

    def _does_action_end_step(self, action_name: str) -> bool:
        if self._trainer_method == _TRAINER_METHOD_FOR_TRAINING:
            return action_name == _TRAINING_BATCH_ACTION and self._steps.has_optimizer_stepped(
                self._lightning_module.trainer
            )
        step = _STEP_METHOD_BY_TRAINER_METHOD.get(self._trainer_method or "")
        return (
            step is not None
            and action_name.startswith("[Strategy]")
            and action_name.endswith(f".{step}")
        )
