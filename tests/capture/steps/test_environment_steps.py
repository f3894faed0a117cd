"""Whether a stack is within the step of an environment."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from selftime.capture.steps.environment_steps import is_in_environment_step

pytestmark = pytest.mark.torch


class Environment:
    def step(self, action: object) -> FrameType:
        return self._move(action)

    def _move(self, _action: object) -> FrameType:
        return sys._getframe()


class Sampler:
    def step(self, _noise: Any, _sample: Any) -> FrameType:
        return sys._getframe()


class Counter:
    def step(self) -> FrameType:
        return sys._getframe()


class Optimizer(torch.optim.SGD):
    def step(self, _closure: Any = None) -> FrameType:  # type: ignore[override]  # for the test
        return sys._getframe()


def step(_action: object) -> FrameType:
    return sys._getframe()


def test_an_action_that_is_no_tensor_goes_to_an_environment() -> None:
    assert is_in_environment_step(Environment().step(1))


def steps_of_others() -> dict[str, Callable[[], FrameType]]:
    noise = torch.zeros(1)
    parameters = [torch.zeros(1, requires_grad=True)]
    return {
        "a sampler of diffusion": lambda: Sampler().step(noise, noise),
        "without an action": lambda: Counter().step(),
        "an optimizer": lambda: Optimizer(parameters, lr=0.1).step(),
        "a function": lambda: step(1),
        "no step": sys._getframe,
    }


@pytest.mark.parametrize("other", list(steps_of_others()))
def test_other_steps_are_not_of_an_environment(other: str) -> None:
    frame = steps_of_others()[other]()
    assert not is_in_environment_step(frame)
