"""Programs of several processes: each that trains leaves a trace, and the others know nothing."""

import json
import os
import signal
import subprocess
import sys
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import selftime

if TYPE_CHECKING:
    from tests.capture.conftest import ReadTrace, Runner

pytestmark = pytest.mark.torch


@pytest.fixture
def record(record_from_the_start: "Runner") -> "Runner":
    """Here it is the start of a process that is looked at."""
    return record_from_the_start


SOURCES = str(Path(selftime.__file__).parents[1])

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

def work(rank, store, steps=30):
    if store:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    else:
        dist.init_process_group("gloo")
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(steps):
        net(torch.randn(4, 8)).pow(2).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()

if __name__ == "__main__":
    if sys.argv[1:] == ["spawn"]:
        torch.multiprocessing.spawn(work, args=(os.path.abspath("store"), 4), nprocs=2)
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
        paths = sorted(record.folder.glob("runs/*.gz"))
        assert sorted(told.get("traces", [])) == [str(p) for p in paths] or not told
        return Ended(process.wait(), stdout, stderr, told, [read_trace(p) for p in paths])

    return run


@pytest.fixture
def run_program(record: "Runner", run: Run) -> Run:
    """Runs the text of a program."""

    def run_program(program: str, *args: str) -> Ended:
        return run(record.write(program), *args)

    return run_program


@pytest.mark.sweep
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


@pytest.mark.sweep
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


@pytest.mark.sweep
def test_spawned_processes_that_end_early_keep_the_rank_that_they_had(run: Run) -> None:
    ended = run("ddp.py", "spawn")

    assert (ended.status, ended.stdout) == (0, "done\n"), ended.stderr
    assert ended.steps == [1, 1]
    assert [process["rank"] for process in ended.result["processes"]] == [0, 1]
    assert ended.facts("rank") == [0, 1]
    assert all("ended after" in partial for partial in ended.facts("partial"))


@pytest.mark.sweep
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


CHILD = """
import json, os, sys
found = sorted(sys.path_importer_cache)
print(json.dumps([sys.argv, sys.path, found, os.environ.get("MARK")]))
"""

STARTS = """
import os, subprocess, sys
os.environ["PYTHONPATH"] += os.pathsep + os.path.abspath("own")
for options in ([], ["-E"], ["-I"], ["-O", "-B"]):
    for program in (["child.py", "a b"], ["-c", open("child.py").read(), "x"], ["-m", "child"]):
        subprocess.run([sys.executable, *options, *program])
"""


def test_a_child_finds_what_it_would_have_found_without_us(record: "Runner", run: Run) -> None:
    record.write(CHILD, "child.py")
    record.write("import os\nos.environ['MARK'] = 'the user was here'\n", "own/sitecustomize.py")
    starts = record.write(STARTS)
    plainly = subprocess.run(  # noqa: S603 - a test's own program
        [sys.executable, starts],
        cwd=record.folder,
        env={**os.environ, "PYTHONPATH": SOURCES},
        capture_output=True,
        text=True,
        check=True,
    )
    ended = run(starts)

    assert ended.stdout.count("the user was here") == 6
    assert (ended.stdout, ended.stderr) == (plainly.stdout, plainly.stderr)
    assert ended.result["reason"] == "the program never imported torch"


@pytest.mark.sweep
def test_a_program_that_looks_for_torch_before_it_imports_it(record: "Runner", run: Run) -> None:
    record.write(
        """
        import importlib.util
        assert importlib.util.find_spec("torch") and importlib.util.find_spec("torch")
        from train import train
        train()
        """
    )
    ended = run(sys.executable, "program.py")

    assert ended.status == 0, ended.stderr
    assert ended.steps == [5]


def test_an_error_in_the_users_own_start_up_is_told_as_python_tells_it(
    record: "Runner", run_program: Run
) -> None:
    record.write("raise ValueError('own')", "own/sitecustomize.py")
    ended = run_program(
        """
        import os, subprocess, sys
        subprocess.run([sys.executable, "-c", "print('on')"], env={**os.environ, "PYTHONPATH":
            os.environ["PYTHONPATH"] + os.pathsep + os.path.abspath("own")})
        """
    )

    assert ended.stdout == "on\n"
    assert ended.stderr.splitlines() == [
        "Error in sitecustomize; set PYTHONVERBOSE for traceback:",
        "ValueError: own",
    ]


def test_an_environment_without_selftime_is_left_alone_and_named(
    record: "Runner", run_program: Run
) -> None:
    venv.create(record.folder / "other")
    record.write("print('their torch')", "theirs/torch.py")
    python = record.folder / "other" / "bin" / "python"
    ended = run_program(
        f"""
        import os, subprocess
        path = os.environ["PYTHONPATH"].split(os.pathsep)[0]
        subprocess.run([{str(python)!r}, "-c", "import torch, sys; print(sys.meta_path[0])"],
            env={{**os.environ, "PYTHONPATH": path + os.pathsep + os.path.abspath("theirs")}})
        """
    )

    assert (ended.status, ended.stderr) == (0, "")
    assert ended.stdout.startswith("their torch\n<")
    assert "selftime" not in ended.stdout
    assert f"`{python}` cannot import selftime" in ended.result["reason"]


@pytest.mark.sweep
def test_a_shell_script_is_run_and_its_python_recorded(record: "Runner", run: Run) -> None:
    script = record.write(
        f"#!/bin/sh\necho begun\nexec '{sys.executable}' train.py \"$@\"\n", "go.sh"
    )
    assert "`selftime run sh go.sh`" in run(script).stderr
    (record.folder / script).chmod(0o755)
    ended = run(script, "a b")

    assert (ended.status, ended.stdout) == (7, "begun\ntrained a b\n"), ended.stderr
    assert ended.steps == [5]


def test_a_command_of_the_path_keeps_its_status(run: Run) -> None:
    assert run("sh", "-c", "exit 3").status == 3
    assert run("sh", "-c", "kill -9 $$").status == 128 + signal.SIGKILL


@pytest.mark.sweep
def test_a_program_that_replaces_its_process_says_where_its_trace_lies(
    record: "Runner", run_program: Run
) -> None:
    ended = run_program("import os, sys; os.execv(sys.executable, [sys.executable, 'train.py'])")
    [trace] = record.folder.glob("runs/*.gz")

    assert (ended.status, ended.stdout) == (7, "trained\n")
    assert ended.stderr == ""
    assert len(ended.traces) == 1
    assert trace.name.split("_")[-2] == str(ended.facts("pid")[0])


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.sweep(1)
def test_children_that_train_are_recorded_and_their_loaders_workers_are_not(
    run_program: Run, method: str
) -> None:
    ended = run_program(
        f"""
        import os, torch
        import torch.multiprocessing as mp
        from torch.utils.data import DataLoader, Dataset

        class Transformed(Dataset):
            net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
            optimizer = torch.optim.SGD(net.parameters(), lr=0.0)

            def __len__(self):
                return 60

            def __getitem__(self, number):
                sample = self.net(torch.randn(4)).detach()
                self.optimizer.step()  # a step in all but its place
                return sample

        def work():
            net = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
            for batch in DataLoader(Transformed(), 2, num_workers=1,
                                    multiprocessing_context="{method}"):
                net(batch).sum().backward()
                optimizer.step()
            print(os.getpid())

        if __name__ == "__main__":
            child = mp.get_context("spawn").Process(target=work)
            child.start()
            child.join()
        """
    )

    assert ended.status == 0, ended.stderr
    assert ended.steps == [5]
    assert ended.facts("pid") == [int(ended.stdout)]


@pytest.mark.sweep
def test_children_end_in_their_own_way(run_program: Run) -> None:
    ended = run_program(
        """
        import os, signal, sys, time
        import torch.multiprocessing as mp
        from train import train

        def at(step, act):
            train(each=lambda number: act() if number == step else None)

        def kill(number):
            os.kill(os.getpid(), number)
            time.sleep(60)

        def fail():
            raise ValueError("boom")

        ENDS = {
            "failed": (2, fail),
            "terminated": (2, lambda: kill(signal.SIGTERM)),
            "killed": (2, lambda: kill(signal.SIGKILL)),
            "left": (2, lambda: os._exit(3)),
            "exited": (2, lambda: sys.exit(4)),
            "whole": (99, None),
        }

        if __name__ == "__main__":
            for name, (step, act) in ENDS.items():
                child = mp.get_context("fork").Process(target=at, args=(step, act))
                child.start()
                child.join()
                print(name, child.exitcode)
        """
    )

    assert ended.stdout.splitlines() == [
        "failed 1",
        f"terminated {-signal.SIGTERM}",
        f"killed {-signal.SIGKILL}",
        "left 3",
        "exited 4",
        "whole 0",
    ]
    assert sorted(ended.facts("partial"), key=str) == [
        None,
        "ended by SIGTERM",
        "ended by SystemExit",
        "ended by ValueError",
    ]
    assert ended.stderr.count("ValueError: boom") == 1
    assert "selftime" not in ended.stderr


@pytest.mark.parametrize("words", [["program.py"], ["sh", "-c", "exec python program.py"]])
@pytest.mark.sweep
def test_a_fork_within_a_recording_is_not_recorded_and_one_after_it_is(
    record: "Runner", run: Run, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    record.write(
        """
        import os, sys
        from train import train

        def fork(step):
            if step in (0, 59):
                child = os.fork()
                if child == 0:
                    train()
                    sys.exit(step)
                print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)

        train(steps=60, each=fork)
        """
    )
    ended = run(*words)

    assert (ended.status, ended.stdout) == (0, "0\n59\n"), ended.stderr
    assert ended.steps == [5, 5]


@pytest.mark.sweep
def test_a_child_that_imports_torch_by_itself_and_is_not_waited_for(run_program: Run) -> None:
    ended = run_program(
        """
        import multiprocessing

        def work():
            from train import train
            train()

        multiprocessing.get_context("fork").Process(target=work).start()
        """
    )

    assert (ended.status, ended.stdout, ended.stderr) == (0, "", "")
    assert ended.steps == [5]


@pytest.mark.sweep
def test_a_run_within_a_run_is_the_one_that_records(run: Run) -> None:
    ended = run(sys.executable, "-m", "selftime", "run", "-q", "-o", "runs", "train.py")

    assert (ended.status, ended.stdout) == (7, "trained\n"), ended.stderr
    assert ended.steps == [5]


@pytest.mark.sweep
def test_processes_without_steps_leave_the_reason(run: Run) -> None:
    ended = run(sys.executable, "-c", "import torch; print(torch.ones(2).sum().item())")

    assert (ended.status, ended.stdout) == (0, "2.0\n")
    assert "no process that imported torch made an optimizer step" in ended.result["reason"]
