"""Finds where the steps of an unchanged program end, from the functions of torch that it calls.

A step ends when all optimizers that take part have stepped. In a program without optimizers, steps
are found from its backward passes; in one that only infers, from the outermost calls of a module
that is called again from the same position; in one that calls no module, from the batches of a
DataLoader. torch's entry points are wrapped for that, and unwrapped as soon as they are not needed.
"""

from selftime.capture.steps.detection_state import StepSource
from selftime.capture.steps.recorder_work import RecorderWork
from selftime.capture.steps.step_detector import StepDetector

__all__ = ["RecorderWork", "StepDetector", "StepSource"]
