"""What a program does at the end of one of its processes does not come between selftime's work."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest
from tests.cli.test_run_ends import Start, run_of, start

from selftime.capture.child_signals import child_signals_held_back

__all__ = ["start"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGCHLD")

LOADING = """
import os, subprocess, torch
from torch.utils.data import DataLoader

os.setpgrp()
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = torch.ones(4000, 4)
for step, row in enumerate(DataLoader(rows, batch_size=2, num_workers=2)):
    optimizer.zero_grad()
    model(row).sum().backward()
    optimizer.step()
    if step == 60:
        kill = ["sh", "-c", f"kill -TERM -{os.getpgrp()}"]  # as `timeout` does it
        subprocess.run(kill, start_new_session=True)
"""


@pytest.fixture
def children_that_ended() -> Iterator[threading.Event]:
    """Set by a handler of SIGCHLD that raises an exception, as that of a `DataLoader` does."""
    came = threading.Event()

    def fail(_number: int, _frame: FrameType | None) -> None:
        came.set()
        raise RuntimeError("a worker was killed")

    previous = signal.signal(signal.SIGCHLD, fail)
    yield came
    signal.signal(signal.SIGCHLD, previous)


def test_a_signal_that_came_meanwhile_is_acted_on_later(
    children_that_ended: threading.Event,
) -> None:
    with child_signals_held_back():
        os.kill(os.getpid(), signal.SIGCHLD)
        assert not children_that_ended.is_set()
    with pytest.raises(RuntimeError, match="a worker was killed"):
        signal.pause()


def test_at_the_end_of_the_program_it_is_dropped(children_that_ended: threading.Event) -> None:
    handler = signal.getsignal(signal.SIGCHLD)
    with child_signals_held_back(drops=True), child_signals_held_back():
        os.kill(os.getpid(), signal.SIGCHLD)
    assert not children_that_ended.wait(0.2)
    assert signal.getsignal(signal.SIGCHLD) is handler


@pytest.mark.torch
@pytest.mark.skipif(sys.platform != "linux", reason="programs run in this process")
def test_workers_that_the_signal_ends_too_leave_the_recording(start: Start, tmp_path: Path) -> None:
    process = start(LOADING)
    _, err = process.communicate(timeout=200)
    assert process.returncode == -signal.SIGTERM
    assert "failed" not in err
    assert "trace saved to" in err
    assert run_of(tmp_path).is_whole
