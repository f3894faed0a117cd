"""What Lightning's two packages share: where their trainers tell that a step has ended.

In training a step is an optimizer step, however many batches its gradients are gathered from. In
validation, test and prediction, where they are what was asked of the trainer, it is a batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from selftime.frameworks.recording import Options, Recording

if TYPE_CHECKING:
    from typing_extensions import Unpack

_FIT: Final = "fit"

_BATCH: Final = "run_training_batch"
"""What Lightning calls its work on a batch, from forward to the optimizer's step."""

_EPOCH: Final = "run_training_epoch"

_STEPS: Final = {"validate": "validation_step", "test": "test_step", "predict": "predict_step"}
"""What Lightning calls its work on a batch outside training, by what was asked of the trainer."""


class _OptimizerSteps:
    """Whether the batch that has just ended has ended a step too."""

    def __init__(self) -> None:
        self._seen = 0

    def begin(self, trainer: Any) -> None:
        self._seen = trainer.global_step

    def ended(self, trainer: Any) -> bool:
        seen, self._seen = self._seen, trainer.global_step
        # A module that steps its optimizers by itself may do so behind the trainer's back.
        return trainer.accumulate_grad_batches == 1 or seen != self._seen


class Hooks:
    """A callback that records a few steady steps of each run of the trainer."""

    def __init__(self, **options: "Unpack[Options]") -> None:
        super().__init__()
        self.recording = Recording(type(self).__name__, options)
        self._steps = _OptimizerSteps()

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - the trainer's
        self._steps.begin(trainer)
        self.recording.begin()

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        if self._steps.ended(trainer):
            self.recording.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - the trainer's
        self.recording.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:  # noqa: ARG002 - the trainer's
        self.recording.end(f"ended by {type(exception).__name__}")

    def _begin(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - the trainer's
        if trainer.state.fn != _FIT:  # validation within training is part of its steps
            self.recording.begin()

    def _step(self, trainer: Any, *_: Any) -> None:
        if trainer.state.fn != _FIT:
            self.recording.step()

    def _end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002 - the trainer's
        if trainer.state.fn != _FIT:
            self.recording.end()

    on_validation_start = on_test_start = on_predict_start = _begin
    on_validation_batch_end = on_test_batch_end = on_predict_batch_end = _step
    on_validation_end = on_test_end = on_predict_end = _end


class Actions:
    """A profiler: what Lightning calls its actions is in the trace beside their operators."""

    def __init__(self, **options: "Unpack[Options]") -> None:
        super().__init__()
        self.recording = Recording(type(self).__name__, options)
        self._steps = _OptimizerSteps()
        self._regions: dict[str, Any] = {}
        self._asked: str | None = None
        """What was asked of the trainer."""
        self._lightning_module: Any = None
        """Set by the trainer."""

    def setup(self, stage: str, local_rank: int | None = None, log_dir: str | None = None) -> None:
        super().setup(stage, local_rank, log_dir)  # type: ignore[misc]  # of the class beside
        self._asked = str(getattr(stage, "value", stage))
        self._steps.begin(self._lightning_module.trainer)
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
        if self._ends_step(action_name):
            self.recording.step()

    @contextmanager
    def profile(self, action_name: str) -> Iterator[str]:
        """The action, and an early end of the recording if it fails."""
        self.start(action_name)
        try:
            yield action_name
        except Exception as error:
            if action_name == _EPOCH:
                self.recording.end(f"ended by {type(error).__name__}")
            raise
        finally:
            self.stop(action_name)

    def teardown(self, stage: str | None) -> None:
        self.recording.end()
        super().teardown(stage)  # type: ignore[misc]  # of the class beside

    def _ends_step(self, action: str) -> bool:
        if self._asked == _FIT:
            return action == _BATCH and self._steps.ended(self._lightning_module.trainer)
        step = _STEPS.get(self._asked or "")
        return step is not None and action.startswith("[Strategy]") and action.endswith(f".{step}")
