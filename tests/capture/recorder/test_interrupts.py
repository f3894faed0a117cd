"""Ctrl-C, or any exception of a signal handler, reaches the program while work of ours goes on.

Each case is a process of its own, since an interrupt at the wrong place would end the tests.
"""

import subprocess
import sys
import threading
from time import perf_counter_ns

import pytest

from selftime.capture.ledger.collection_clock import CollectionClock

COLLECTION = """
import ctypes, gc, signal
from functools import partial
from selftime.capture.ledger.collection_clock import CollectionClock

gc.disable()
clock = CollectionClock()
clock.attach()
trips = property(ctypes.pythonapi.PyErr_SetInterruptEx)
phases = type("Phases", (), {"_as_parameter_": int(signal.SIGINT), "start": trips, "stop": 0})
gc.callbacks.insert(0, partial(getattr, phases()))  # Ctrl-C as a collection begins
try:
    gc.collect()
    print("lost")
except KeyboardInterrupt:
    print("raised")
"""

SCHEDULED_CALL = """
import signal, traceback
from functools import partial
from selftime.capture.main_thread_calls import MainThreadCalls
from selftime.capture.program.own_frames import hide_own_frames

calls = MainThreadCalls(on_failure=print)
request = calls.schedule_on_deletion(partial(signal.raise_signal, signal.SIGINT))
try:
    del request
    for _ in range(3):  # the interpreter makes scheduled calls where a loop jumps back
        pass
    print("lost")
except KeyboardInterrupt as error:
    hide_own_frames(error)
    print("raised", len(traceback.extract_tb(error.__traceback__)))
"""


@pytest.mark.parametrize(
    ("program", "expected"), [(COLLECTION, "raised\n"), (SCHEDULED_CALL, "raised 1\n")]
)
def test_an_interrupt_is_raised_in_the_program(program: str, expected: str) -> None:
    done = subprocess.run(  # noqa: S603 - a program of this file
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


def test_the_time_of_collections_is_taken_once() -> None:
    clock = CollectionClock()
    clock._callback("start", {})
    clock._callback("stop", {})
    first_end = perf_counter_ns()
    clock._callback("start", {})
    clock._callback("stop", {})
    second_end = perf_counter_ns()
    first, own = clock.take_ns(first_end)
    assert 0 < first < first_end
    assert own == 0
    clock.own_threads.add(threading.get_ident())
    clock.compact()
    second, own = clock.take_ns(second_end)
    assert second == 0
    assert 0 < own < second_end - first_end
    assert clock.take_ns(perf_counter_ns()) == (0, 0)


def test_a_collection_that_had_begun_before_is_left_out() -> None:
    clock = CollectionClock()
    clock._callback("stop", {})
    assert clock.take_ns(perf_counter_ns()) == (0, 0)
    clock._callback("start", {})
    assert clock.take_ns(perf_counter_ns()) == (0, 0)
    clock._callback("stop", {})
    assert clock.take_ns(perf_counter_ns()) > (0, 0)
