"""Records a few steps of a training loop with Hugging Face Accelerate.

A step is an optimizer step that synchronizes gradients, over any number of batches. It ends when
the optimizer that stepped first steps again.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from accelerate.optimizer import AcceleratedOptimizer

from selftime.capture.attribute_patches import AttributePatches
from selftime.errors import UsageError
from selftime.frameworks.recording import Options, Recording

if TYPE_CHECKING:
    from accelerate import Accelerator
    from typing_extensions import Unpack


@contextmanager
def recording(accelerator: "Accelerator", **options: "Unpack[Options]") -> Iterator[Recording]:
    """Records a few steps, after warm-up, of the training loop in a `with` block.

    The loop stays unchanged; `accelerator.accumulate`, several optimizers and mixed precision work.
    """
    if not hasattr(accelerator, "gradient_state"):
        kind = type(accelerator).__name__
        raise UsageError(f"`recording` was given a `{kind}`; give it the program's Accelerator")
    made = Recording("selftime.frameworks.accelerate.recording", options)
    patches = _wrap_optimizer_steps(_StepMarker(made, accelerator))
    made.begin()
    try:
        yield made
    except BaseException as error:
        made.end(f"ended by {type(error).__name__}")
        raise
    finally:
        patches.restore_all()
        made.end()


class _StepMarker:
    """Marks the end of a training step when the optimizer that was called first has stepped."""

    def __init__(self, recording: Recording, accelerator: "Accelerator") -> None:
        self._recording = recording
        self._gradients = accelerator.gradient_state
        self._first: Any = None

    def mark_optimizer_step(self, optimizer: Any) -> None:
        if not self._gradients.sync_gradients:
            return
        if self._first is None:
            self._first = optimizer
        if self._first is optimizer:
            self._recording.step()


def _wrap_optimizer_steps(marker: _StepMarker) -> AttributePatches:
    """Wraps the `step` method of all optimizer classes that Accelerate prepares.

    Classes are wrapped, not objects, since objects are pickled and may be prepared later.
    """
    kinds, patches = [AcceleratedOptimizer], AttributePatches()
    for kind in kinds:  # the list grows by subclasses
        kinds += kind.__subclasses__()
        if "step" in vars(kind):
            patches.wrap_attribute(
                kind, "step", lambda original: _step_method_with_marks(original, marker)
            )
    return patches


def _step_method_with_marks(original_step: Any, marker: _StepMarker) -> Any:
    """Returns an optimizer's `step` method, wrapped to mark the ends of training steps."""

    @functools.wraps(original_step)
    def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        result = original_step(optimizer, *args, **kwargs)
        if type(optimizer).step is step:  # not when a subclass calls its base class
            marker.mark_optimizer_step(optimizer)
        return result

    return step
