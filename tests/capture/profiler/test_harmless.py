"""What a recording leaves behind: nothing that the program would have to carry."""

import gc
import gzip
import signal
import weakref
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

MANY_OPERATORS = """
    import torch

    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x, y = torch.ones(8), torch.ones(8)

    def product(x):
        return x * y

    for step in range({steps}):
        for _ in range({operators}):
            x = product(x)
        net(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


WARNING = """
    import warnings
    import torch

    net = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(30):
        warnings.warn("told once")
        net(torch.ones(8)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def test_a_warning_is_shown_as_often_as_without_a_recording(record: "Runner") -> None:
    outcome = record(WARNING)
    assert outcome.result["steps_recorded"] == 5
    assert outcome.stderr.count("UserWarning: told once") == 1


def test_tensors_are_freed_after_the_recording() -> None:
    torch = pytest.importorskip("torch")
    import selftime  # noqa: PLC0415 - its profile needs torch

    tensor = torch.ones(1000)
    left = weakref.ref(tensor)
    with selftime.profile(record_shapes=True, with_stack=True, profile_memory=True) as prof:
        assert (tensor + 1).sum() == 2000
    del tensor
    assert left() is None
    assert len(prof.key_averages()) > 0


def test_a_profiler_goes_with_its_last_name() -> None:
    pytest.importorskip("torch")
    import selftime  # noqa: PLC0415 - its profile needs torch

    with selftime.profile(with_stack=True):  # torch imports something at the first
        pass
    with selftime.profile(with_stack=True) as prof:
        pass
    left = weakref.ref(prof)
    gc.disable()
    try:
        del prof
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.sweep
def test_a_hundred_recordings_take_no_memory(record: "Runner") -> None:
    outcome = record(
        """
        from pathlib import Path
        import selftime
        import torch

        net = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))

        def recorded():
            with selftime.profile(record_shapes=True, with_stack=True):
                for _ in range(5):
                    net(torch.randn(8, 16)).sum().backward()

        def resident():
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

        for _ in range(5):
            recorded()
        before = resident()
        for _ in range(100):
            recorded()
        print(resident() - before)
        """
    )

    assert outcome.status == 0, outcome.stderr
    assert int(outcome.stdout) < 20e6


def test_steps_of_many_operators_stay_within_the_bytes(record: "Runner") -> None:
    limit = 6_000_000
    outcome = record(MANY_OPERATORS.format(steps=30, operators=10_000), max_bytes=limit)

    assert outcome.status == 0, outcome.stderr
    (trace,) = (record.folder / "runs").glob("*.gz")
    written = len(gzip.decompress(trace.read_bytes()))
    assert outcome.result["steps_recorded"] == 1
    assert written <= limit
    assert not outcome.facts["flags"]["with_stack"]
    assert len(outcome.rows("aten::mul")) >= 10_000


def test_a_kill_while_it_writes_leaves_no_half_file(record: "Runner") -> None:
    """The program kills itself where the file that is written would take its name."""
    killing = """
    import os, pathlib, signal

    def killed(path, target):
        os.kill(os.getpid(), signal.SIGKILL)

    pathlib.Path.replace = killed
    """
    program = record.write(killing + MANY_OPERATORS.format(steps=30, operators=100))
    process = record.start("script", program)
    process.communicate(timeout=120)

    assert process.wait() == -signal.SIGKILL
    (half,) = (record.folder / "runs").glob(".*")
    assert half.name.startswith(".selftime-")
    half.unlink()
