"""Where a loop that may make steps is searched, and where not."""

import sys
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

pytest.importorskip("torch")

import torch
from torch._C._autograd import _profiler_enabled

from selftime.capture.code_loops import loops_on_stack
from selftime.capture.steps.detection_state import StepDetectionState
from selftime.capture.steps.loop_choice import IteratedLoop
from selftime.capture.steps.loop_search import STACKS_BEFORE_CHOICE, LoopSearch

pytestmark = pytest.mark.torch


class Searched:
    """A search whose stacks a test reads, and what it asks for."""

    def __init__(self) -> None:
        self.state = state = StepDetectionState(lambda _source: None, lambda: None)
        self.counted: list[set[int]] = []
        self.chosen: list[tuple[IteratedLoop, bool]] = []
        self.failures: list[Exception] = []
        self.search = LoopSearch(
            state,
            self.failures.append,
            lambda codes, _frame: self.counted.append(codes),
            lambda loop, is_running: self.chosen.append((loop, is_running)),
        )
        self.search.may_trace = lambda: True

    def ignore_loops_around(self) -> None:
        """Leaves out the loops of pytest, which call the test."""
        around = loops_on_stack(sys._getframe(1))
        self.search._excluded |= {id(loop): loop for loop in around}

    def read(self, times: int = STACKS_BEFORE_CHOICE) -> None:
        """Reads the stack of the caller, whose main thread makes calls between its lines."""
        frame: FrameType = sys._getframe(1)
        for _ in range(times):
            self.search.observe_stack(frame)


@pytest.fixture
def searched() -> Iterator[Searched]:
    searched = Searched()
    yield searched
    searched.search.stop_probe()
    assert searched.failures == []


def one() -> torch.Tensor:
    return torch.ones(2) + 1


def test_a_loop_with_operators_is_counted(searched: Searched) -> None:
    searched.ignore_loops_around()
    for _ in range(3):
        searched.read()
        one()
        searched.read(1)
        one()
        if searched.counted:
            break
    assert [len(codes) for codes in searched.counted] == [1]
    assert len(searched.search.candidates) == 1
    assert searched.search.has_seen_operators


def test_a_loop_before_an_optimizer_steps_is_not_counted(searched: Searched) -> None:
    searched.state.has_live_optimizer = lambda: True
    searched.ignore_loops_around()
    for _ in range(3):
        searched.read()
        one()
        searched.read(1)
        one()
    assert searched.search.has_seen_operators
    assert searched.counted == []


def test_a_loop_without_operators_is_not_counted(searched: Searched) -> None:
    searched.ignore_loops_around()
    for _ in range(3):
        searched.read()
        searched.read(1)
    assert searched.counted == []
    assert not searched.search.has_seen_operators


def test_a_loop_that_has_ended_since_is_not_counted(searched: Searched) -> None:
    searched.ignore_loops_around()
    for _ in range(1):
        searched.read()
        one()
    frame = sys._getframe()
    searched.search.observe_stack(frame)
    one()
    assert searched.counted == []
    assert searched.search.candidates == []


def test_a_count_ends_if_its_loop_was_left_unseen(searched: Searched) -> None:
    searched.ignore_loops_around()
    for _ in range(1):
        searched.read()
        one()
        searched.read(1)
        one()
        assert len(searched.search.candidates) == 1
    searched.read(1)
    one()
    assert searched.search.candidates == []
    assert searched.chosen == []


def test_a_loop_that_was_chosen_is_searched_no_more(searched: Searched) -> None:
    searched.ignore_loops_around()
    for _ in range(1):
        searched.read()
        one()
        searched.read(1)
        one()
        [counted] = searched.search.candidates
        for _ in range(12):
            searched.search.count_iteration(counted.loop)
        assert [(chosen.loop, is_running) for chosen, is_running in searched.chosen] == [
            (counted.loop, True)
        ]
        searched.read(3 * STACKS_BEFORE_CHOICE)
        one()
        searched.read(1)
        one()
    assert len(searched.counted) == 1


def test_a_probe_neither_starts_nor_stops_within_a_backward_pass(searched: Searched) -> None:
    searched.ignore_loops_around()
    for _ in range(1):
        within_backward(lambda: searched.read(STACKS_BEFORE_CHOICE))
        assert not _profiler_enabled()
        searched.read()
        assert _profiler_enabled()
        within_backward(lambda: searched.read(1))
        assert _profiler_enabled()
        searched.read(1)
    assert not _profiler_enabled()
    assert searched.search.has_seen_operators


def within_backward(call: Callable[[], None]) -> None:
    """Calls a function while torch runs a backward pass."""
    weight = torch.ones(2, requires_grad=True)
    weight.register_hook(lambda _gradient: call())  # type: ignore[no-untyped-call]  # torch
    weight.sum().backward()  # type: ignore[no-untyped-call]  # torch
