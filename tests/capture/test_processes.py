"""Programs of several processes: each that trains leaves a trace, and the others know nothing."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.capture.conftest import ReadTrace, Runner

pytestmark = pytest.mark.torch

TRAIN = """
import torch

def train(steps=30, each=lambda step: None):
    net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        net(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        each(step)

if __name__ == "__main__":
    import sys
    train()
    print("trained", *sys.argv[1:])
    sys.exit(7)
"""

TRAIN_DISTRIBUTED = """
import os, sys
import torch
import torch.distributed as dist

def work(rank, store):
    if store:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    else:
        dist.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(30):
        net(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()

if __name__ == "__main__":
    if sys.argv[1:] == ["spawn"]:
        torch.multiprocessing.spawn(work, args=(os.path.abspath("store"),), nprocs=2)
    else:
        work(None, None)
    sys.stdout.write("done\\n")
"""


@dataclass
class Ended:
    """What a program of several processes left behind."""

    status: int
    stdout: str
    stderr: str
    result: dict[str, Any]
    traces: list[dict[str, Any]]
    """In the order of the files' names."""

    @property
    def steps(self) -> list[int]:
        return [process["steps_recorded"] for process in self.result["processes"]]

    def facts(self, name: str) -> list[Any]:
        return [trace["selftime"][name] for trace in self.traces]


Run = Callable[..., Ended]


@pytest.fixture
def run(record: "Runner", read_trace: "ReadTrace") -> Run:
    record.write(TRAIN, "train.py")
    record.write(TRAIN_DISTRIBUTED, "ddp.py")

    def run(*words: str, kind: str = "script") -> Ended:
        process = record.start(kind, *words)
        stdout, stderr = process.communicate(timeout=200)
        result = record.folder / "result.json"
        told = json.loads(result.read_text()) if result.exists() else {}
        paths = sorted(record.folder.glob("runs/*"))
        assert sorted(told.get("traces", [])) == [str(p) for p in paths] or not told
        return Ended(process.returncode, stdout, stderr, told, [read_trace(p) for p in paths])

    return run


@pytest.fixture
def run_program(record: "Runner", run: Run) -> Run:
    """Runs the text of a program."""

    def run_program(program: str, *args: str) -> Ended:
        return run(record.write(program), *args)

    return run_program


def test_each_rank_of_a_launcher_leaves_a_trace_named_by_its_rank(run: Run) -> None:
    words = ("--standalone", "--nproc-per-node", "2", "ddp.py")
    ended = run("torch.distributed.run", *words, kind="module")

    assert (ended.status, ended.stdout) == (0, "done\ndone\n"), ended.stderr
    assert ended.steps == [5, 5]
    assert [process["rank"] for process in ended.result["processes"]] == [0, 1]
    assert ended.facts("rank") == [0, 1]
    assert ended.facts("world_size") == [2, 2]
    names = [Path(path).name.split("_") for path in ended.result["traces"]]
    assert [(parts[-3], int(parts[-2])) for parts in names] == [
        (f"rank{report['rank']}", report["process"]) for report in ended.result["processes"]
    ]


def test_ranks_that_are_recorded_each_by_its_own_run_answer_once(record: "Runner") -> None:
    record.write(TRAIN_DISTRIBUTED, "ddp.py")
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(  # noqa: S603 - the launcher
        [*launcher, "-m", "selftime", "run", "-o", "runs", "ddp.py"],
        cwd=record.folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )

    assert (done.returncode, done.stdout) == (0, "done\ndone\n"), done.stderr
    assert len(list(record.folder.glob("runs/*_rank[01]_*"))) == 2
    assert done.stderr.count("Health") == 1


def test_spawned_processes_are_recorded(run: Run) -> None:
    ended = run("ddp.py", "spawn")

    assert (ended.status, ended.stdout) == (0, "done\n"), ended.stderr
    assert ended.steps == [5, 5]
    assert [process["rank"] for process in ended.result["processes"]] == [0, 1]


def test_forked_processes_of_one_second_leave_a_sound_file_each(run_program: Run) -> None:
    ended = run_program(
        """
        import torch.multiprocessing as mp
        from train import train

        if __name__ == "__main__":
            train()
            context = mp.get_context("fork")
            children = [context.Process(target=train) for _ in range(8)]
            for child in children:
                child.start()
            for child in children:
                child.join()
            print([child.exitcode for child in children])
        """
    )

    assert (ended.status, ended.stdout) == (0, f"{[0] * 8}\n"), ended.stderr
    assert ended.steps == [5] * 9
    assert len(set(ended.facts("pid"))) == 9
