"""Which loop of a program a module call goes on with, and whether its iterations are the steps."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

pytest.importorskip("torch")

import torch
from tests.capture.steps.programs.truth import At, Seen, watch
from torch import nn

from selftime.capture.code_loops import CodeLoop, code_loops
from selftime.capture.steps import StepSource
from selftime.capture.steps.call_rounds import CallPath, CallRounds
from selftime.capture.steps.repetition import call_path, call_path_hash

pytestmark = pytest.mark.torch

MS = 1_000_000


def a_small_one_and_a_large_one(call: Callable[[str], None], rounds: int) -> None:
    for _ in range(rounds):
        for _ in range(4):
            call("small")
        call("large")


def one_for_each_part(call: Callable[[str], None], rounds: int) -> None:
    for _ in range(rounds):
        for _ in range(20):
            call("part")
        call("whole")


class Watched:
    """Says what a module finder would: each repeated call of one kind is a step at first."""

    def __init__(self, duration_ms: dict[str, float]) -> None:
        self.rounds = CallRounds()
        self.steps: list[str] = []
        """The calls that ended a step since the iterations are the steps."""
        self._duration_ms = duration_ms
        self._seen: set[str] = set()
        self._now = 0

    def __call__(self, module: str) -> None:
        rounds, place, last = self.rounds, call_path_hash(), self.rounds.last_place
        if rounds.needs_path(place):
            rounds.add_path(place, call_path())
        if rounds.call(place, self._now) or rounds.ends_step(last, place):
            self.steps.append(module)
        elif rounds.step_loop is None and module in self._seen:
            rounds.add_step(self._now)
        self._seen.add(module)
        self._now += int(self._duration_ms[module] * MS)


def loop_of(function: Callable[..., None], number: int) -> CodeLoop:
    return code_loops(function.__code__)[number]


def test_the_iteration_is_the_step_where_it_holds_a_few_calls() -> None:
    watched = Watched({"small": 5, "large": 1})
    a_small_one_and_a_large_one(watched, 12)
    assert watched.rounds.step_loop is loop_of(a_small_one_and_a_large_one, 0)
    assert watched.steps == ["small"] * 9


def test_the_iteration_is_the_step_where_many_calls_take_little_of_it() -> None:
    watched = Watched({"part": 0.1, "whole": 10})
    one_for_each_part(watched, 8)
    assert watched.rounds.step_loop is loop_of(one_for_each_part, 0)


def test_many_calls_that_take_most_of_an_iteration_are_the_steps() -> None:
    watched = Watched({"part": 1, "whole": 3})
    one_for_each_part(watched, 8)
    assert watched.rounds.step_loop is None


def test_an_epoch_is_no_step() -> None:
    watched = Watched({"small": 60, "large": 60})
    a_small_one_and_a_large_one(watched, 8)
    assert watched.rounds.step_loop is None


def test_a_path_ends_with_the_module_of_the_program() -> None:
    paths: list[CallPath] = []
    names = {"see": lambda: paths.append(call_path())}
    exec(compile("def inner():\n    see()\ninner()", "program.py", "exec"), names)  # noqa: S102 - a program of a test
    (path,) = paths
    assert [code.co_name for code, _ in path] == ["<module>", "inner"]
    frame: FrameType = sys._getframe()
    assert frame.f_code not in {code for code, _ in path}


def boundaries_by_iteration(seen: Seen) -> list[int]:
    """How many steps ended in each iteration, from its begin to that of the next."""
    counts: list[int] = []
    for event in seen.events:
        if event == "iteration":
            counts.append(0)
        elif isinstance(event, StepSource) and counts:
            counts[-1] += 1
    return counts


def speculative(at: At) -> None:
    draft, target = nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 64), nn.Linear(64, 4))
    with torch.no_grad():
        for _ in range(12):
            at("iteration")
            x = torch.randn(1, 4)
            for _ in range(4):
                x = draft(x)
            x = target(x)
            draft(x)


def objects_of_pictures(at: At) -> None:
    detector, classifier = nn.Conv2d(3, 8, 3), nn.Sequential(nn.Flatten(), nn.Linear(48, 4))
    with torch.inference_mode():
        for number in range(12):
            at("iteration")
            image = torch.randn(1, 3, 16, 16)
            detector(image)
            for corner in range(2 + number % 3):
                classifier(image[:, :, corner : corner + 4, :4])


def an_evaluation_of_two_sets(at: At) -> None:
    net = nn.Linear(4, 4)
    with torch.no_grad():
        for _ in range(4):
            for _ in range(12):
                at("iteration")
                net(torch.randn(2, 4))
            for _ in range(11):
                at("iteration")
                net(torch.randn(2, 4))


@pytest.mark.parametrize("program", [speculative, objects_of_pictures])
def test_an_iteration_with_several_calls_is_one_step(program: Callable[[At], None]) -> None:
    seen = watch(program)
    assert seen.source is StepSource.MODULE
    assert set(boundaries_by_iteration(seen)[4:]) == {1}


def test_each_batch_of_two_sets_is_a_step() -> None:
    counts = boundaries_by_iteration(watch(an_evaluation_of_two_sets))
    assert max(counts) == 1
    assert sum(counts) >= len(counts) - 8
