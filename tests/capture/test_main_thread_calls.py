"""Functions that are called in the main thread between two instructions of the program."""

import subprocess
import sys

import pytest

PROFILED = """
import sys
import threading
import time

from selftime.capture.main_thread_calls import MainThreadCalls

order = []
first, second, third = MainThreadCalls(print), MainThreadCalls(print), MainThreadCalls(print)


def function_of_python():
    return 1


def schedule_others():
    order.append("begin")
    {schedule}
    function_of_python()
    order.append("end")


sys.setprofile(lambda *_: None)
first.schedule(schedule_others)
for _ in range(1000):
    function_of_python()
sys.setprofile(None)
print(*order)
"""

SCHEDULES = {
    "itself": 'second.schedule(lambda: order.append("second"))',
    "another thread": (
        'other = threading.Thread(target=second.schedule, args=(lambda: order.append("second"),))\n'
        "    other.start()\n"
        "    other.join()"
    ),
    "a deletion": 'del_ = second.schedule_on_deletion(lambda: order.append("second")); del del_',
}


@pytest.mark.torch
@pytest.mark.parametrize("by", SCHEDULES)
def test_a_call_that_is_scheduled_within_another_is_made_after_it(by: str) -> None:
    """Asked for a call within a call, a profiled interpreter looked for it without end."""
    done = subprocess.run(  # noqa: S603 - a program of this file
        [sys.executable, "-c", PROFILED.format(schedule=SCHEDULES[by])],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout == "begin end second\n", done.stderr


INTERRUPTED = """
from selftime.capture.main_thread_calls import MainThreadCalls

first, second = MainThreadCalls(print), MainThreadCalls(print)


def interrupt():
    second.schedule(lambda: print("second"))
    raise KeyboardInterrupt


try:
    first.schedule(interrupt)
    for _ in range(1000):
        str(_)
except KeyboardInterrupt:
    print("interrupted")
for _ in range(1000):
    str(_)
first.schedule(lambda: print("again"))
for _ in range(1000):
    str(_)
"""


@pytest.mark.torch
def test_an_interrupt_of_a_call_is_the_programs_and_others_are_made() -> None:
    done = subprocess.run(  # noqa: S603 - a program of this file
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.splitlines() == ["interrupted", "second", "again"], done.stderr
