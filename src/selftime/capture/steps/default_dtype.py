"""Notes the lines at which a program sets its default dtype."""

import functools
import sys
from typing import Any, Final

import torch

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.facts.creation_sites import note_creation
from selftime.capture.steps.detection_state import StepDetectionState
from selftime.capture.steps.torch_compile import skip_wrapper_frames_in_compile

_SETTERS: Final = ("set_default_dtype", "set_default_tensor_type")
"""Functions of torch that set the default dtype."""


class DefaultDtypeNotes:
    """Wraps the functions of torch that set the default dtype, to note who calls them."""

    def __init__(self, state: StepDetectionState, patches: AttributePatches) -> None:
        self.state = state
        self.patches = patches

    def attach(self) -> None:
        """Replaces the functions by wrappers, if a ledger is kept."""
        if self.state.ledger is not None:
            for name in _SETTERS:
                self.patches.wrap_attribute(
                    torch, name, skip_wrapper_frames_in_compile(self._wrap_setter)
                )

    def _wrap_setter(self, original: Any) -> Any:
        state = self.state

        @functools.wraps(original)
        def set_default(*args: Any, **kwargs: Any) -> None:
            original(*args, **kwargs)
            if state.ledger is not None and not state.is_off:
                with state.recorder_work:
                    frame = sys._getframe().f_back  # noqa: SLF001 - the only way to the line
                    name = str(torch.get_default_dtype()).removeprefix("torch.")
                    note_creation("default_dtype", name, frame, state.ledger.kinds.is_user_file)

        return set_default
