"""Whether a stack is within the step of an environment."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from selftime.capture.steps.environment_steps import (
    MIN_SIGHTINGS,
    MIN_STACKS_OF_EVALUATIONS,
    EvaluationStacks,
    is_in_environment_step,
)

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


def stacks_of(
    evaluations: int, frame: FrameType, count: int, requests: int = 0
) -> EvaluationStacks:
    stacks = EvaluationStacks()
    for _ in range(evaluations):
        stacks.begin(0)
    for _ in range(count):
        stacks.observe_stack(frame, requests)
    return stacks


def test_stacks_in_an_environment_before_each_update_show_acting() -> None:
    stacks = stacks_of(50, Environment().step(1), MIN_SIGHTINGS)
    assert stacks.show_acting(50)
    assert stacks.show_acting(400)
    assert not stacks.show_evaluations


def test_an_environment_that_is_evaluated_now_and_then_is_not_acted_in() -> None:
    assert not stacks_of(3, Environment().step(1), 10 * MIN_SIGHTINGS).show_acting(1000)


def test_many_stacks_without_an_environment_show_evaluations() -> None:
    frame = sys._getframe()
    assert stacks_of(50, frame, MIN_STACKS_OF_EVALUATIONS).show_evaluations
    assert not stacks_of(50, frame, MIN_STACKS_OF_EVALUATIONS - 1).show_evaluations


def test_stacks_after_a_request_for_a_batch_tell_nothing_of_acting() -> None:
    stacks = stacks_of(50, Environment().step(1), MIN_STACKS_OF_EVALUATIONS, requests=1)
    assert not stacks.show_acting(50)
    assert not stacks.show_evaluations
