"""Whether the code of a program trains, before it does."""

import sys
from types import FrameType
from typing import Any

from selftime.capture.steps.training_code import calls_backward


def is_own(file: str) -> bool:
    return file == "program.py"


def frame_in(source: str) -> FrameType:
    """The frame of a program that calls `stop()`."""
    frames: list[FrameType] = []
    names: dict[str, Any] = {"stop": lambda: frames.append(sys._getframe(1))}
    exec(compile(source, "program.py", "exec"), names)  # noqa: S102 - a program of a test
    return frames[0]


def test_a_training_later_in_the_function_is_found() -> None:
    frame = frame_in("""
def main(train):
    for row in range(3):
        stop()
    if train:
        loss.backward()

main(False)
""")
    assert calls_backward(frame, is_own)


def test_a_training_in_a_function_that_is_named_is_found() -> None:
    frame = frame_in("""
class Trainer:
    def step(self, loss):
        loss.backward()

def train(trainer):
    trainer.step(None)

def main():
    rows = [stop() for _ in range(3)]
    if not rows:
        train(Trainer())

main()
""")
    assert calls_backward(frame, is_own)


def test_a_method_named_backward_is_no_call() -> None:
    frame = frame_in("""
class Square:
    @staticmethod
    def forward(ctx, x):
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        return gradient

Square.forward(None, 2)
stop()
""")
    assert not calls_backward(frame, is_own)


def test_other_files_are_not_searched() -> None:
    frame = frame_in("stop()\nloss = None\nif loss: loss.backward()")
    assert calls_backward(frame, is_own)
    assert not calls_backward(frame, lambda _file: False)
