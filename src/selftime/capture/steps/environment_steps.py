"""Finds on a Python stack the step of an environment, in which a model acts as it learns.

Environments of all libraries have a method `step` that gets an action. So have few other things: an
optimizer's and a scheduler's `step` get none, or are of a class of torch; the `step` of a sampler
of diffusion gets tensors.
"""

from types import FrameType
from typing import Final

import torch

from selftime.capture.steps.repetition import TORCH_PACKAGE_FOLDER

_STEP_METHOD: Final = "step"
_MIN_ARGUMENTS: Final = 2
"""The environment itself and an action."""


def is_in_environment_step(innermost_frame: FrameType | None) -> bool:
    """Returns whether a stack is within the step of an environment, by the arguments of its frames.

    For the step of one that computes with tensors of torch it returns False.
    """
    frame = innermost_frame
    while frame is not None:
        if frame.f_code.co_name == _STEP_METHOD and _is_step_of_environment(frame):
            return True
        frame = frame.f_back
    return False


def _is_step_of_environment(frame: FrameType) -> bool:
    code = frame.f_code
    if code.co_argcount < _MIN_ARGUMENTS or code.co_filename.startswith(TORCH_PACKAGE_FOLDER):
        return False
    values = frame.f_locals
    first, *others = (values.get(name) for name in code.co_varnames[: code.co_argcount])
    if any(base.__module__.partition(".")[0] == "torch" for base in type(first).__mro__):
        return False
    return not any(isinstance(value, torch.Tensor) for value in others)
