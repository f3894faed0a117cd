"""How many events a step has: those of the recorder's own work are none of them."""

import pytest
import torch

from selftime import names
from selftime.capture.in_memory.events import event_counts

pytestmark = pytest.mark.torch


def counts(own_operators: int) -> tuple[int, int, int]:
    """Counts the events of a recording of five operators, and of some of the recorder's own."""
    with torch.profiler.profile() as recorder:
        with torch.profiler.record_function(names.SELFTIME_WORK_SLICE):
            for _ in range(own_operators):
                torch.ones(2)
        with torch.profiler.record_function("mine"):
            for _ in range(5):
                torch.ones(3).sum()
    return event_counts(recorder.profiler.kineto_results.events())


def test_events_of_the_recorders_own_work_do_not_count() -> None:
    alone, beside = counts(0), counts(50)
    assert alone == beside
    assert alone[0] > 10
    assert alone[1:] == (0, 0)


def test_frames_and_allocations_are_told_apart() -> None:
    with torch.profiler.profile(with_stack=True, profile_memory=True) as recorder:
        torch.ones(3).sum()
    every, frames, allocations = event_counts(recorder.profiler.kineto_results.events())
    assert frames > 0
    assert allocations > 0
    assert every > frames + allocations
