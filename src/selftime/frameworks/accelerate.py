"""Hugging Face's Accelerate: a few steps of a loop over an `Accelerator`.

A step is an optimizer step in which gradients are exchanged, however many batches they are gathered
from. It ends with the call of the first optimizer that steps.
"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from accelerate.optimizer import AcceleratedOptimizer

from selftime.capture.patches import Patches
from selftime.errors import UsageError
from selftime.frameworks.recording import Options, Recording

if TYPE_CHECKING:
    from accelerate import Accelerator
    from typing_extensions import Unpack


@contextmanager
def recording(accelerator: "Accelerator", **options: "Unpack[Options]") -> Iterator[Recording]:
    """Record a few steady steps of the training loop within.

    The loop is as it was: `accelerator.accumulate`, several optimizers and mixed precision too.
    """
    if not hasattr(accelerator, "gradient_state"):
        kind = type(accelerator).__name__
        raise UsageError(f"`recording` was given a `{kind}`; give it the program's Accelerator")
    made = Recording("selftime.frameworks.accelerate.recording", options)
    patches = _wrap_steps(_Marker(made, accelerator))
    made.begin()
    try:
        yield made
    except BaseException as error:
        made.end(f"ended by {type(error).__name__}")
        raise
    finally:
        patches.undo()
        made.end()


class _Marker:
    """Tells that a step has ended where the first optimizer that stepped has stepped again."""

    def __init__(self, recording: Recording, accelerator: "Accelerator") -> None:
        self._recording = recording
        self._gradients = accelerator.gradient_state
        self._first: Any = None

    def stepped(self, optimizer: Any) -> None:
        if not self._gradients.sync_gradients:
            return
        if self._first is None:
            self._first = optimizer
        if self._first is optimizer:
            self._recording.step()


def _wrap_steps(marker: _Marker) -> Patches:
    """Wrap `step` of every kind of optimizer that Accelerate prepares.

    The classes are wrapped and not their objects, which are pickled and may be prepared later.
    """
    kinds, patches = [AcceleratedOptimizer], Patches()
    for kind in kinds:  # it grows
        kinds += kind.__subclasses__()
        if "step" in vars(kind):
            patches.wrap(kind, "step", lambda original: _told(original, marker))
    return patches


def _told(original: Any, marker: _Marker) -> Any:
    """The method of an optimizer that steps and tells so."""

    @functools.wraps(original)
    def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(optimizer, *args, **kwargs)
        if type(optimizer).step is step:  # a kind that calls the one that it is derived from
            marker.stepped(optimizer)
        return result

    return step
