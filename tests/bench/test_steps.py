"""The steps of real programs, timed by a clock at each boundary, while nothing records."""

import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from selftime.bench import BenchedProgram
from selftime.bench.program_runs import RunOutcome, run_program_once
from selftime.bench.steady_step_time import steady_steps

pytestmark = pytest.mark.torch

TRAINS = """
    import os, sys, time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    def train(steps, pause, workers=0):
        model = nn.Linear(8, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        data = TensorDataset(torch.randn(2 * steps, 8))
        for (x,) in DataLoader(data, batch_size=2, num_workers=workers):
            time.sleep(pause)
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
"""


def run(folder: Path, code: str) -> RunOutcome:
    script = folder / "program.py"
    script.write_text(textwrap.dedent(TRAINS) + textwrap.dedent(code))
    ended = run_program_once(BenchedProgram((str(script),)), timed=True, seconds=200)
    assert ended.status == 0, ended.last_stderr_line
    return ended


@pytest.mark.sweep
def test_steps_with_workers_and_a_child_that_trains(tmp_path: Path) -> None:
    """Workers of a DataLoader make no steps; a forked child is timed as a process of its own."""
    code = """
        train(30, 0.02, workers=1)
        if os.fork() == 0:
            train(12, 0.001)
            sys.exit()
        os.wait()
    """
    ended = run(tmp_path, code)
    assert [len(times.durations) for times in ended.steps] == [29, 11]
    assert {times.source for times in ended.steps} == {"optimizer steps"}
    found = steady_steps(ended.steps[0])
    assert found is not None
    assert found.step_ms >= 20
    assert (found.clock, ended.steps[0].profiler) == ("host", None)


@pytest.mark.sweep
def test_a_program_with_a_profiler_of_its_own_is_told(tmp_path: Path) -> None:
    code = """
        from torch.profiler import profile
        with profile():
            train(6, 0)
    """
    [times] = run(tmp_path, code).steps
    assert len(times.durations) == 5
    assert times.profiler == "the program's own profiler"


def test_calls_of_a_module_and_steps_that_the_program_tells(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where a recording would lie
    code = """
        import selftime
        model = nn.Linear(8, 8)
        with torch.no_grad():
            for _ in range(20):
                model(torch.randn(2, 8))
        if len(sys.argv) > 1:
            for _ in selftime.watch(range(10)):
                time.sleep(0.001)
        assert not os.path.exists("selftime-runs")
    """
    [times] = run(tmp_path, code).steps
    assert times.source == "module calls"
    assert len(times.durations) >= 16


@dataclass
class Queue:
    """A device that works through its queue while the host goes on; times are in ms."""

    host: float = 0.0
    free: float = 0.0
    """When it will have worked through all that is queued."""
    capturing: bool = False
    made: list["Event"] = field(default_factory=list)

    def work(self, took: float, *, host: float) -> None:
        self.host += host
        self.free = max(self.free, self.host) + took

    def event(self) -> "Event":
        self.made.append(Event(self))
        return self.made[-1]


@dataclass
class Event:
    """What PyTorch has of an event, on that device."""

    queue: Queue
    at: float = 0.0

    def record(self, _stream: Any) -> None:
        self.at = max(self.queue.free, self.queue.host)

    def query(self) -> bool:
        return self.at <= self.queue.host

    def synchronize(self) -> None:
        self.queue.host = max(self.queue.host, self.at)

    def elapsed_time(self, later: "Event") -> float:
        assert self.query()
        assert later.query()
        return later.at - self.at


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    clock = pytest.importorskip("selftime.capture.timing.step_clock")
    queue = Queue()
    monkeypatch.setattr(clock, "_new_cuda_timing_event", queue.event)
    monkeypatch.setattr(clock.torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(clock.torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(clock.torch.cuda, "current_stream", lambda _index: None)
    monkeypatch.setattr(clock.torch.cuda, "is_current_stream_capturing", lambda: queue.capturing)
    return queue


def test_steps_of_a_device_take_what_it_needs_however_far_the_host_is_ahead(queue: Queue) -> None:
    from selftime.capture.steps import StepSource  # noqa: PLC0415 - imports torch
    from selftime.capture.timing.step_clock import StepClock  # noqa: PLC0415 - likewise

    clock = StepClock()
    for step in range(101):
        queue.work(30 if step == 50 else 10, host=1)
        if step % 20 == 0:
            queue.host = max(queue.host, queue.free)  # the program waits, as `.item()` does
        if step == 50:
            clock.mark_step_unusual()
        clock.on_step_boundary(StepSource.OPTIMIZER)
    found = clock.read_step_durations()
    assert found is not None
    source, is_device_clock, durations, unlike = found
    assert (source, is_device_clock) == (StepSource.OPTIMIZER, True)
    assert len(durations) == 100
    assert unlike.index(1) == 49
    assert durations[49] == pytest.approx(30e6, abs=1.1e6)
    usual = [taken for taken, odd in zip(durations, unlike, strict=True) if not odd]
    assert sum(usual) / len(usual) == pytest.approx(10e6, rel=0.01)
    assert len(queue.made) <= 25, "events are used again"


def test_steps_within_which_a_graph_is_captured_are_of_the_host(queue: Queue) -> None:
    from selftime.capture.steps import StepSource  # noqa: PLC0415 - imports torch
    from selftime.capture.timing.step_clock import StepClock  # noqa: PLC0415 - likewise

    clock = StepClock()
    for step in range(10):
        queue.capturing = step == 5
        queue.work(10, host=1)
        clock.on_step_boundary(StepSource.OPTIMIZER)
    found = clock.read_step_durations()
    assert found is not None
    assert (found[1], len(found[2])) == (False, 9)


@pytest.mark.gpu
def test_steps_on_a_gpu_are_timed_by_its_own_clock(tmp_path: Path) -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("there is no GPU here")
    code = """
        device = torch.device("cuda")
        x = torch.randn(4096, 4096, device=device)
        model = nn.Linear(4096, 4096).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(200):
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()
    """
    ended = run(tmp_path, code)
    found = steady_steps(ended.steps[0])
    assert found is not None
    assert found.clock == "device"
    assert 0 < found.step_ms * found.steps < ended.seconds * 1e3
