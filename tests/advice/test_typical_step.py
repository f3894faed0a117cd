"""The typical step, and what is significant in it."""

from dataclasses import replace

import polars as pl
import pytest

from selftime.advice import TypicalStep
from selftime.advice.step_statistics import counted_step_times_ms, step_statistics, typical_step
from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.testing import sketch
from selftime.trace import Trace

STEPS = """
column = 1 ms
a = ProfilerStep#1
b = ProfilerStep#2
c = ProfilerStep#3
d = ProfilerStep#4
"""


def test_an_empty_trace_has_no_step() -> None:
    assert typical_step(Trace()) == TypicalStep(0, None, None, None)
    assert counted_step_times_ms(Trace()) == []
    assert step_statistics(Trace()) is None


def test_the_first_of_many_steps_is_not_typical() -> None:
    trace = sketch(f"{STEPS}mark 1 | aaaaaaaaaabbbbccccdddd\ncpu 1 | x")
    assert typical_step(trace) == TypicalStep(3, None, 4.0, "host-only")
    assert counted_step_times_ms(trace) == [4.0, 4.0, 4.0]


def test_a_trace_without_steps_is_one() -> None:
    trace = sketch("column = 1 ms\ncpu 1 | xxx  y")
    assert typical_step(trace) == TypicalStep(1, None, 6.0, "host-only")
    assert len(missing_requirement_sentences(trace, ("steps",))) == 1


def test_the_device_tells_the_step_where_there_is_one() -> None:
    trace = sketch(f"""{STEPS}
        mark 1 | aaaaaabbbbbbccccccdddddd
        call 1 | k     k     k     k
        gpu 7  |  kkkkk kkkkk kkkkk kkkkk
    """)
    assert missing_requirement_sentences(trace, ("steps", "device")) == []
    assert typical_step(trace).device_ms == 6.0
    assert counted_step_times_ms(trace) == [6.0, 6.0, 6.0]


def test_the_gate_knows_how_steps_vary() -> None:
    trace = sketch(f"{STEPS}mark 1 | abbbbbbbbbbccccccccccccdddddddddddddd\ncpu 1 | x")
    measured = step_statistics(trace)
    assert measured is not None
    assert (measured.step_ms, measured.noise_ms) == (12.0, 2.0)
    assert measured.least_significant_saving_ms() == pytest.approx(1.2)  # a tenth of the step


def test_work_that_cannot_have_lasted_so_long_ends_no_step() -> None:
    """The fourth `k` is said to last past later work and waits: it ends where that begins."""
    right = sketch(f"""{STEPS}
        w = cudaDeviceSynchronize
        mark 1 | aaaaaabbbbbbccccccdddddd
        call 1 | k k  wk k  wk k  wk k  w
        gpu 7  |  k k   k k   k k   k k
    """)
    wrong = work_lasting(right, 2, 60_000_000)
    assert counted_step_times_ms(right) == [6.0, 6.0, 6.0]
    assert counted_step_times_ms(wrong) == pytest.approx([6.0, 6.0, 6.0], abs=2.0)


def work_lasting(trace: Trace, number: int, ns: int) -> Trace:
    """The trace with the n-th kernel so long."""
    kernel = trace.device_args["id"].sort()[number]
    duration = pl.when(pl.col("id") == kernel).then(ns).otherwise("duration")
    return replace(trace, slices=trace.slices.with_columns(duration=duration))


def test_steps_that_took_no_time_are_no_measure() -> None:
    trace = sketch(f"{STEPS}mark 1 | abcd\ncpu 1  | xxxx")
    still = replace(trace, slices=trace.slices.with_columns(duration=pl.lit(0, pl.Int64)))
    assert step_statistics(still) is None
