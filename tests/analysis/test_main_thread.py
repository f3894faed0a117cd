"""Which thread runs the program's loop, and that all who ask get the same answer."""

import polars as pl
import pytest

from selftime.advice.detectors.batch_fetching import next_batch_calls
from selftime.analysis.graph.serial_threads import serial_threads
from selftime.analysis.main_thread import main_thread, slices_on_main_thread
from selftime.analysis.slice_filters import slices_on
from selftime.analysis.steps.breakdown import time_category_intervals
from selftime.intervals import length
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.idle import idle

COLUMN = 10_000


def main_tid(drawing: str) -> str | None:
    """What a drawing calls the main thread."""
    trace = sketch(drawing)
    main = main_thread(trace)
    if main is None:
        return None
    return str(trace.tracks.filter(pl.col("thread") == main)["tid"][0])


def test_without_a_host_there_is_none() -> None:
    assert main_thread(Trace()) is None
    assert main_tid("gpu 7 | kkk") is None
    assert slices_on_main_thread(Trace(), slices_on(Trace(), "host")).is_empty()


AUTOGRAD = """
    s = ProfilerStep#1
    t = ProfilerStep#2
    n = autograd::engine::evaluate_function: MmBackward0
    f = aten::mm
    b = aten::mm
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
    mark 1 | ssssssssssssssssssttttttttttttttttttttt
    mark 1 | ddd
    cpu 1  |    ff                 ff
    call 1 |    k                  k
    cpu 2  |        nnnnnnnnn         nnnnnnnnn
    cpu 2  |        b  b  b           b  b  b
    call 2 |        k  k  k           k  k  k
    gpu 7  |      k  k  k  k      k      k  k  k
"""


def test_it_is_the_thread_whose_marks_tell_the_steps() -> None:
    """Autograd's thread launches more and works longer."""
    assert main_tid(AUTOGRAD) == "1"


def test_a_thread_of_marks_that_does_nothing_itself_is_not_the_main_thread() -> None:
    assert main_tid("s = ProfilerStep#1\nmark 1 | sssss\ncpu 2 | aa\na = aten::mm") == "2"


@pytest.mark.parametrize(
    ("drawing", "main"),
    [
        (  # of the backward pass nothing counts
            """
            n = autograd::engine::evaluate_function: MmBackward0
            f = aten::mm
            cpu 1 | ff
            cpu 2 |    nnnnnnnnn
            cpu 2 |     fff
            """,
            "1",
        ),
        (  # a part of the backward pass is all that was recorded
            """
            n = autograd::engine::evaluate_function: MmBackward0
            cpu 1 | nn
            cpu 2 |    nnnn
            """,
            "2",
        ),
        ("f = aten::mm\nt = train\nmark 1 | tttttttt\ncpu 2 |  ff", "2"),  # a mark is no work
        ("t = train\nmark 1 | tt\nmark 2 |  tttttt", "2"),
        ("python 1 | tt\npython 2 | tttttt", "2"),
        ("f = aten::mm\ncpu 3 | ff\ncpu 2 | ff", "3"),  # the first of the trace
    ],
)
def test_without_marks_it_is_the_thread_that_works_longest(drawing: str, main: str) -> None:
    assert main_tid(drawing) == main


def test_a_gap_before_autograds_first_launch_is_the_main_threads_doing() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        f = aten::mm
        b = aten::mm
        n = autograd::engine::evaluate_function: MmBackward0
        d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
        mark 1 | ssssssssssssssssssssssssssssss
        mark 1 |     ddddddddddddddd
        cpu 1  | ff
        call 1 | k
        cpu 2  |                    nnnnnnnnnn
        cpu 2  |                    bbbbbb
        call 2 |                    k k k
        gpu 7  |  kk                 k k k
    """)

    first = idle(trace).sort("start").filter(pl.col("before") == "k").row(0, named=True)
    assert (first["start"], first["cause"]) == (3 * COLUMN, "data_loading")


def test_batches_that_another_thread_takes_are_no_wait_of_the_loop() -> None:
    drawing = """
        f = aten::mm
        d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__
        cpu 1  |    fffffff
        mark 1 | ddd
        mark 2 | ddddddddddd
    """
    trace = sketch(drawing)

    assert main_tid(drawing) == "1"
    assert next_batch_calls(trace)["end"].to_list() == [3 * COLUMN]
    assert length(time_category_intervals(trace)["data_loading"]) == 3 * COLUMN


def test_the_critical_path_ends_on_it() -> None:
    trace = sketch(AUTOGRAD)
    threads, main = serial_threads(trace), main_thread(trace)

    assert main is not None
    assert threads.number_by_thread[main] == threads.main_thread
