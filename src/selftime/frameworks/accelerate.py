"""Hugging Face's Accelerate: a few steps of a loop over an `Accelerator`.

A step is an optimizer step in which gradients are exchanged, however many batches they are gathered
from. It ends with the call of the first optimizer that steps.
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from accelerate.optimizer import AcceleratedOptimizer

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
    undo = _wrap_steps(_Marker(made, accelerator))
    made.begin()
    try:
        yield made
    except BaseException as error:
        made.end(f"ended by {type(error).__name__}")
        raise
    finally:
        for restore in undo:
            restore()
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


def _wrap_steps(marker: _Marker) -> list[Callable[[], None]]:
    """Wrap `step` of every kind of optimizer that Accelerate prepares; what undoes it.

    The classes are wrapped and not their objects, which are pickled and may be prepared later.
    """
    kinds, undo = [AcceleratedOptimizer], []
    for kind in kinds:  # it grows
        kinds += kind.__subclasses__()
        if "step" in vars(kind):
            undo.append(_wrap_step(kind, marker))
    return undo


def _wrap_step(kind: Any, marker: _Marker) -> Callable[[], None]:
    original = kind.step

    @functools.wraps(original)
    def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(optimizer, *args, **kwargs)
        if type(optimizer).step is step:  # a kind that calls the one that it is derived from
            marker.stepped(optimizer)
        return result

    kind.step = step

    def restore() -> None:
        kind.step = original

    return restore
