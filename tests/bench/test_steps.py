"""The steps of real programs, timed by a clock at each boundary, while nothing records."""

import textwrap
from pathlib import Path

import pytest

from selftime.bench import BenchedProgram
from selftime.bench.process import Ended, run_once
from selftime.bench.steady import pace

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


def run(folder: Path, code: str) -> Ended:
    script = folder / "program.py"
    script.write_text(textwrap.dedent(TRAINS) + textwrap.dedent(code))
    ended = run_once(BenchedProgram((str(script),)), timed=True, seconds=200)
    assert ended.status == 0, ended.last_words
    return ended


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
    found = pace(ended.steps[0])
    assert found is not None
    assert found.step_ms >= 20
    assert (found.clock, ended.steps[0].profiler) == ("host", None)


def test_a_program_with_a_profiler_of_its_own_is_told(tmp_path: Path) -> None:
    code = """
        from torch.profiler import profile
        with profile():
            train(6, 0)
    """
    [times] = run(tmp_path, code).steps
    assert len(times.durations) == 5
    assert times.profiler == "the program's own profiler"


def test_calls_of_a_module_and_steps_that_the_program_tells(tmp_path: Path) -> None:
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
