"""Calls in threads for large traces, and results that threads share."""

import os
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Barrier, get_ident
from time import monotonic, sleep

import pytest

from selftime.analysis import concurrent_calls as subject
from selftime.analysis.concurrent_calls import concurrent_calls
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.testing import sketch
from selftime.trace import Trace

PATIENCE_S = 30
ONE_OPERATOR = "cpu 1 | aaaa"


@pytest.fixture
def trace() -> Trace:
    return sketch(ONE_OPERATOR)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch, trace: Trace) -> Trace:
    """A trace of a size for which threads are used, on a machine with two cores."""
    monkeypatch.setattr(subject, "_MIN_SLICES_TO_USE_THREADS", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    return trace


def test_calls_of_a_large_trace_run_at_once(large: Trace) -> None:
    both = Barrier(2, timeout=PATIENCE_S)
    with concurrent_calls(large) as begin:
        results = [begin(lambda number=number: (both.wait(), number)[1]) for number in (1, 2)]  # type: ignore[misc]  # mypy cannot tell its type
        assert [result() for result in results] == [1, 2]


def test_calls_of_a_small_trace_are_made_once_when_asked_for(trace: Trace) -> None:
    made: list[int] = []
    with concurrent_calls(trace) as begin:
        wanted, _ = begin(lambda: made.append(get_ident())), begin(lambda: made.append(0))
        wanted(), wanted()
    assert made == [get_ident()]


def test_on_one_core_no_thread_is_used(large: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    with concurrent_calls(large) as begin:
        assert begin(get_ident)() == get_ident()


def test_calls_that_have_not_begun_when_the_context_is_left_are_not_made(large: Trace) -> None:
    made: list[int] = []
    waiting: list[Future[None]] = []

    def until_cancelled() -> None:
        until = monotonic() + PATIENCE_S
        while not (waiting and waiting[0].cancelled()) and monotonic() < until:
            sleep(0.001)

    with concurrent_calls(large) as begin:
        begin(until_cancelled), begin(until_cancelled)
        last = begin(lambda: made.append(0))
        waiting.append(last.__self__)  # type: ignore[attr-defined]  # a future's method
    assert made == []


def test_an_error_is_raised_where_the_result_is_asked_for(large: Trace) -> None:
    with concurrent_calls(large) as begin:
        broken, whole = begin(lambda: 1 // 0), begin(lambda: 1)
        assert whole() == 1
        with pytest.raises(ZeroDivisionError):
            broken()


def test_results_for_two_traces_are_computed_at_once() -> None:
    both = Barrier(2, timeout=PATIENCE_S)

    @cached_per_trace
    def slices(trace: Trace) -> int:
        both.wait()
        return trace.slices.height

    with ThreadPoolExecutor(2) as threads:
        assert [*threads.map(slices, [sketch(ONE_OPERATOR), sketch(ONE_OPERATOR)])] == [1, 1]
