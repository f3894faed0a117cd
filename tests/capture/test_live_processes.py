"""A process is told as alive only while it is the one that was seen."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from selftime.capture.live_processes import still_runs

WAITING = [sys.executable, "-c", "input()"]


def test_a_process_that_waits_still_runs_until_it_has_ended() -> None:
    with subprocess.Popen(WAITING, stdin=subprocess.PIPE) as process:  # noqa: S603 - Python
        seen = time.time()
        assert still_runs(process.pid, seen)
        process.kill()
        process.wait()
        assert not still_runs(process.pid, seen)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system tells no states")
def test_a_process_that_ended_unnoticed_by_its_parent_does_not_run() -> None:
    with subprocess.Popen(WAITING, stdin=subprocess.PIPE) as process:  # noqa: S603 - Python
        os.kill(process.pid, 9)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it stays a zombie
        assert not still_runs(process.pid, time.time())


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="the system tells no starts")
def test_a_later_process_with_the_same_number_is_another_one() -> None:
    assert still_runs(os.getpid(), time.time())
    assert not still_runs(os.getpid(), time.time() - 365 * 86_400)
