"""Finds on a Python stack the step of an environment, in which a model acts as it learns.

Environments of all libraries have a method `step` that gets an action. So have few other things: an
optimizer's and a scheduler's `step` get none, or are of a class of torch; the `step` of a sampler
of diffusion gets tensors.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter_ns
from types import FrameType
from typing import Final

import torch

from selftime.capture.code_loops import loops_on_stack
from selftime.capture.steps.repetition import TORCH_PACKAGE_FOLDER

_STEP_METHOD: Final = "step"
_MIN_ARGUMENTS: Final = 2
"""The environment itself and an action."""


MIN_SIGHTINGS: Final = 3
"""Number of stacks within the step of an environment, before the first step of a program, that show
that it acts: with random actions, where no module is called."""


MIN_STACKS_OF_EVALUATIONS: Final = 200
"""Number of stacks in evaluation mode, none within the step of an environment, that show that the
model does not act there. A cart pole takes 4 % of the time of its moves: one that takes 2 % is seen
in 98 % of the cases."""

MAX_UPDATES_AFTER_ACTING: Final = 10
"""Largest number of updates that follow each phase of acting in evaluation mode."""


@dataclass(slots=True)
class FirstActing:
    """What stacks show of the environment of a program that has made an optimizer and no step."""

    sightings: int = 0
    """Number of stacks within the step of an environment, at most `MIN_SIGHTINGS`."""
    began_ns: int = 0
    """When the first of them was read, in ns."""
    loop_line: tuple[str, int] | None = None
    """File and line of the loop that calls this step; None if unknown."""

    def observe_stack(
        self, innermost_frame: FrameType | None, is_user_file: Callable[[str], bool]
    ) -> None:
        """Looks whether a stack is within the step of an environment."""
        frame = environment_step_on_stack(innermost_frame)
        if frame is not None:
            self.began_ns = self.began_ns or perf_counter_ns()
            self.sightings += 1
            self.loop_line = next(
                (
                    (loop.code.co_filename, loop.line)
                    for loop in reversed(loops_on_stack(frame.f_back))
                    if is_user_file(loop.code.co_filename)
                ),
                self.loop_line,
            )


@dataclass(slots=True)
class EvaluationStacks:
    """What stacks show of an environment while a model is in evaluation mode.

    A policy that acts for a few moves before each update calls its modules too seldom to be told by
    these calls, and in random moves not at all.
    """

    evaluations: int = 0
    """Number of times that the model went into evaluation mode."""
    stacks: int = 0
    """Number of stacks read in evaluation mode, without those after a request for a batch."""
    sightings: int = 0
    """Number of them within the step of an environment."""
    batch_requests: int = 0
    """Number of batches that were requested when the model last went into evaluation mode."""

    def begin(self, batch_requests: int) -> None:
        """Takes note that the model goes into evaluation mode."""
        self.evaluations += 1
        self.batch_requests = batch_requests

    def observe_stack(self, innermost_frame: FrameType | None, batch_requests: int) -> None:
        """Looks whether a stack that was read in evaluation mode is within an environment."""
        if batch_requests == self.batch_requests:
            self.stacks += 1
            self.sightings += is_in_environment_step(innermost_frame)

    def show_acting(self, steps: int) -> bool:
        """Returns whether the model acts in evaluation mode between the updates of its steps."""
        is_between_updates = self.evaluations * MAX_UPDATES_AFTER_ACTING >= steps
        return self.sightings >= MIN_SIGHTINGS and is_between_updates

    @property
    def show_evaluations(self) -> bool:
        """Whether enough stacks were read to say that no environment steps in evaluation mode."""
        return self.stacks >= MIN_STACKS_OF_EVALUATIONS and not self.sightings


def is_in_environment_step(innermost_frame: FrameType | None) -> bool:
    """Returns whether a stack is within the step of an environment, by the arguments of its frames.

    For the step of one that computes with tensors of torch it returns False.
    """
    return environment_step_on_stack(innermost_frame) is not None


def environment_step_on_stack(innermost_frame: FrameType | None) -> FrameType | None:
    """Returns the innermost frame that runs the step of an environment; None if there is none."""
    frame = innermost_frame
    while frame is not None:
        if frame.f_code.co_name == _STEP_METHOD and _is_step_of_environment(frame):
            return frame
        frame = frame.f_back
    return None


def _is_step_of_environment(frame: FrameType) -> bool:
    code = frame.f_code
    if code.co_argcount < _MIN_ARGUMENTS or code.co_filename.startswith(TORCH_PACKAGE_FOLDER):
        return False
    values = frame.f_locals
    first, *others = (values.get(name) for name in code.co_varnames[: code.co_argcount])
    if any(base.__module__.partition(".")[0] == "torch" for base in type(first).__mro__):
        return False
    return not any(isinstance(value, torch.Tensor) for value in others)
