"""The ledger that `selftime run` keeps: every step, and what the rest of the run was spent on."""

import json
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import selftime
from selftime.analysis.run.parts import run_parts
from selftime.analysis.run.slow_steps import steps_of_run
from selftime.capture.ledger.file import header_of_ledger
from selftime.capture.ledger.ledger import Ledger
from selftime.capture.ledger.stacks import StackReader
from selftime.ingest.ledger import read_ledger
from selftime.ledger_format import UNCOUNTED_STEPS_NAME
from selftime.run import Run

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

TRAINING = """
    import time
    import torch
    from torch import nn
    from torch.utils.data import DataLoader, TensorDataset

    began = time.perf_counter()
    net = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(40, 16))
    time.sleep(0.2)
    for epoch in range(3):
        for (batch,) in DataLoader(data, batch_size=4):
            net(batch).pow(2).mean().backward()
            optimizer.step()
            optimizer.zero_grad()
        {each}
    {after}
"""


def run_of(record: "Runner", program: str, **options: object) -> Run:
    record(program, **options)
    [path] = record.folder.rglob("*.run.jsonl")
    return read_ledger(path.read_bytes(), str(path))


def seconds(run: Run) -> dict[str, float]:
    parts = run_parts(run).group_by("part").agg(pl.col("duration").sum() / 1e9)
    return dict(parts.rows())


def test_every_step_is_in_the_ledger_and_the_parts_add_up(record: "Runner") -> None:
    run = run_of(record, TRAINING.format(each="pass", after="pass"))
    steps = steps_of_run(run)
    assert run.is_whole
    assert steps.height == 30
    assert set(steps["kind"].cast(pl.String)) <= {"training", "training, unusual"}
    assert steps["recorded"].sum() >= 5
    assert run_parts(run)["duration"].sum() == run.wall_ns


def test_setting_up_is_told_with_its_line(record: "Runner") -> None:
    run = run_of(record, TRAINING.format(each="pass", after="pass"))
    assert seconds(run)["data"] >= 0.2
    largest = run_parts(run).filter(pl.col("part") == "data").row(0, named=True)
    assert largest["line"] == 11
    assert Path(largest["file"]).name == "program.py"


def test_the_wait_for_another_process_is_no_building_of_the_model(record: "Runner") -> None:
    waiting = "import subprocess, sys\n    subprocess.run([sys.executable, '-c', '{}'])\n"
    waiting = waiting.format("import time; time.sleep(1)")
    program = TRAINING.format(each="pass", after="pass").replace(
        "    began", f"    {waiting}    began"
    )
    run = run_of(record, program)
    assert seconds(run)["processes"] >= 0.8
    assert seconds(run)["data"] < 0.8
    [place] = run_parts(run).filter(pl.col("part") == "processes").select("file", "line").rows()
    assert (Path(place[0]).name, place[1]) == ("program.py", 8)


def test_a_light_run_has_a_ledger_and_no_trace(record: "Runner") -> None:
    run = run_of(record, TRAINING.format(each="pass", after="pass"), is_light=True)
    assert steps_of_run(run).height == 30
    assert not run.segments["recorded"].any()
    assert not list(record.folder.rglob("*.gz"))


def test_an_evaluation_holds_its_own_waits(record: "Runner") -> None:
    each = "net.eval(); [time.sleep(0.01) for _ in DataLoader(data, batch_size=8)]; net.train()"
    found = seconds(run_of(record, TRAINING.format(each=each, after="pass")))
    assert found["evaluation"] >= 3 * 5 * 0.01


TENSORS_ALONE = """
    import time
    import torch

    weight = torch.zeros(16, 16, requires_grad=True)
    time.sleep(0.3)
    for _ in range(40):
        (weight @ weight).sum().backward()
        with torch.no_grad():
            weight -= 0.1 * weight.grad
        weight.grad = None
"""


def test_the_first_step_of_a_program_without_modules_has_none_of_what_was_before(
    record: "Runner",
) -> None:
    run = run_of(record, TENSORS_ALONE)
    steps = steps_of_run(run)
    assert steps.height >= 39
    assert seconds(run)["data"] >= 0.3
    assert steps["duration"][0] < 300_000_000


ONE_FOR_EACH_PARAMETER = """
    import torch

    parameters = [torch.zeros(8, requires_grad=True) for _ in range(3)]
    optimizers = {}
    for _ in range(50):
        sum(parameter.sum() for parameter in parameters).backward()
        for parameter in parameters:
            if parameter not in optimizers:
                optimizers[parameter] = torch.optim.Adam([parameter])
            optimizers[parameter].step()
"""


def test_optimizers_that_are_built_when_they_first_step_make_one_step(record: "Runner") -> None:
    run = run_of(record, ONE_FOR_EACH_PARAMETER)
    assert steps_of_run(run).height == 50


def test_own_work_makes_no_step_slow(record: "Runner") -> None:
    steps = steps_of_run(run_of(record, TENSORS_ALONE))
    recorded = steps.sort("recording", descending=True).head(2)
    assert (recorded["recording"] > 0).all()
    assert (recorded["excess"] <= recorded["duration"] - recorded["recording"]).all()
    assert "recording" not in set(steps["cause"])
    assert recorded["garbage_collection"].sum() == 0


def test_what_comes_after_the_last_step_is_the_end(record: "Runner") -> None:
    found = seconds(run_of(record, TRAINING.format(each="pass", after="time.sleep(0.3)")))
    assert found["end"] >= 0.25  # less what is counted within, such as a collection


def test_a_slow_step_is_told_with_its_line(record: "Runner") -> None:
    run = run_of(record, TRAINING.format(each="time.sleep(0.3)", after="pass"), is_light=True)
    slow = steps_of_run(run).filter(pl.col("excess") > 200_000_000)
    assert slow.height >= 2
    assert 17 in set(slow["line"])


def test_a_program_that_fails_keeps_its_ledger(record: "Runner") -> None:
    run = run_of(record, TRAINING.format(each="pass", after="raise ValueError('no')"))
    assert steps_of_run(run).height == 30
    assert run.facts["status"] == "ended by ValueError"


def test_a_killed_program_keeps_what_was_written(record: "Runner") -> None:
    after = "time.sleep(2.5); import os; os.kill(os.getpid(), 9)"
    run = run_of(record, TRAINING.format(each="pass", after=after), is_light=True)
    assert not run.is_whole
    assert steps_of_run(run).height == 30


def test_the_trace_names_its_ledger(record: "Runner") -> None:
    outcome = record(TRAINING.format(each="pass", after="pass"))
    [path] = record.folder.rglob("*.run.jsonl")
    assert outcome.facts["ledger"] == path.name
    first = json.loads(path.read_bytes().split(b"\n")[0])
    assert first["format"] == "selftime.ledger/1"


@pytest.mark.parametrize(("mode", "has_nodes"), [("enable_grad", True), ("no_grad", False)])
def test_evaluations_tell_the_nodes_that_no_backward_pass_uses(
    record: "Runner", mode: str, has_nodes: bool
) -> None:
    program = f"""
        import torch

        net = torch.nn.Linear(16, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        for epoch in range(3):
            for step in range(5):
                net(torch.randn(4, 16)).sum().backward()
                optimizer.step()
            net.eval()
            with torch.{mode}():
                net(torch.randn(4, 16)).argmax()
            net.train()
        net.eval()  # a model may be trained in this mode
        net(torch.randn(4, 16)).sum().backward()
        optimizer.step()
        net.train()
    """
    nodes = run_of(record, program, is_light=True).evaluation_nodes
    assert [count > 0 for count in nodes] == [has_nodes] * 3


@pytest.mark.parametrize("adapts", ["within", "before"])
def test_evaluations_that_differentiate_tell_no_nodes(record: "Runner", adapts: str) -> None:
    """A meta-learner adapts to each task by `autograd.grad`, and then evaluates."""
    program = f"""
        import torch

        net = torch.nn.Linear(16, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

        def adapt():
            [gradient] = torch.autograd.grad(net(torch.randn(4, 16)).sum(), net.bias)
            net.bias.data -= gradient

        for epoch in range(3):
            for step in range(5):
                net(torch.randn(4, 16)).sum().backward()
                optimizer.step()
            for task in range(4):
                if "{adapts}" == "before":
                    adapt()
                net.eval()
                if "{adapts}" == "within":
                    adapt()
                net(torch.randn(4, 16)).argmax()
                net.train()
    """
    assert run_of(record, program, is_light=True).evaluation_nodes == ()


def test_iterators_tell_their_workers_and_their_line(record: "Runner") -> None:
    program = """
        import torch
        from torch.utils.data import DataLoader, TensorDataset

        net = torch.nn.Linear(16, 1)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        data = TensorDataset(torch.randn(8, 16))
        kept = DataLoader(
            data, 4, num_workers=1, persistent_workers=True, multiprocessing_context="fork"
        )
        for epoch in range(3):
            for loader in (kept, DataLoader(data, 4)):
                for (batch,) in loader:
                    net(batch).sum().backward()
                    optimizer.step()
    """
    iterators = run_of(record, program, is_light=True).iterators
    assert iterators["workers"].to_list() == [1, 0] * 3
    assert iterators["starts_workers"].to_list() == [True] + [False] * 5
    assert iterators["ahead"].to_list() == [2, None] * 3
    assert set(iterators["line"]) == {13}
    assert all(Path(file).name == "program.py" for file in iterators["file"])
    assert iterators["start"].is_sorted()


def test_a_checkpoint_tells_the_function_that_writes_it() -> None:
    source = "import sys\ndef save(reader):\n    return reader.read(sys._getframe())"
    names: dict[str, Any] = {}
    file = pytest.importorskip("torch").serialization.__file__
    exec(compile(source, file, "exec"), names)  # noqa: S102 - a frame of that file
    activity = names["save"](StackReader())
    assert (activity.part, activity.what) == ("checkpoint", "save")


def test_what_called_selftime_is_not_the_users(tmp_path: Path) -> None:
    names: dict[str, Any] = {}
    ours = str(Path(selftime.__file__).parent / "cli" / "run.py")
    source = "import sys\ndef run(reader):\n    return reader.read(sys._getframe())"
    exec(compile(source, ours, "exec"), names)  # noqa: S102 - a frame of that file
    script = "def main(run, reader):\n    return run(reader)"
    exec(compile(script, str(tmp_path / "selftime"), "exec"), names)  # noqa: S102 - likewise
    activity = names["main"](names["run"], StackReader())
    assert (activity.part, activity.file) == ("program", None)


def test_compilations_are_told(record: "Runner") -> None:
    program = """
        import torch

        @torch.compile(backend="eager", dynamic=False)
        def f(x):
            return (x * 2 + 1).sum()

        w = torch.ones(4, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)
        for step in range(12):
            optimizer.zero_grad()
            f(w[: 2 + step // 6]).backward()
            optimizer.step()
    """
    run = run_of(record, program, is_light=True)
    assert run.compilations.height == 2
    assert run.compilations["function"].to_list() == ["f", "f"]
    assert run.compilations["reason"][0] is None
    assert "size" in run.compilations["reason"][1]
    assert seconds(run)["compile"] > 0


def test_steps_of_a_kind_are_renamed_and_later_ones_are_not(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.is_written = True
    at = ledger.began
    for kind in ("iteration", "iteration", "other"):
        at += 1_000
        ledger.end_segment(at, kind, is_usual=True)
    ledger.kinds.rename("iteration", None)
    ledger.kinds.rename("other", "iteration", "a.py", 7)
    ledger.kinds.rename("never seen", "iteration")
    ledger.end_segment(at + 1_000, "iteration", is_usual=True)
    ledger.finish("ended")
    [path] = tmp_path.glob("*.run.jsonl")
    run = read_ledger(path.read_bytes(), str(path))
    kinds = run.segments["kind"].cast(pl.String).to_list()
    assert kinds == [None, None, "iteration", "iteration", None]
    assert run.loop_lines["iteration"] == ("a.py", 7)


def test_time_between_two_loops_is_no_step(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.is_written = True
    began = ledger.began
    ledger.begin_first_step(began + 100)
    ledger.end_segment(began + 300, "one", is_usual=True)
    ledger.has_begun = False
    ledger.begin_first_step(began + 1_000)
    ledger.begin_uncounted_steps("two, before it was found")
    ledger.end_segment(began + 1_500, "two", is_usual=True)
    ledger.end_segment(began + 1_600, "two", is_usual=True)
    ledger.finish("ended")
    [path] = tmp_path.glob("*.run.jsonl")
    run = read_ledger(path.read_bytes(), str(path))
    told = list(zip(run.segments["kind"].cast(pl.String), run.segments["duration"], strict=True))
    assert told[:-1] == [
        (None, 100),
        ("one", 200),
        (None, 700),
        (UNCOUNTED_STEPS_NAME, 500),
        ("two", 100),
    ]


def test_two_threads_that_write_begin_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path)
    ledger.is_written = True
    opened, opening = ledger.file._open, threading.Barrier(2)

    def open_slowly() -> int:
        time.sleep(0.2)  # the other thread writes meanwhile
        return opened()

    monkeypatch.setattr(ledger.file, "_open", open_slowly)

    def write() -> None:
        opening.wait()
        ledger.flush()

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.finish("ended")
    [path] = tmp_path.iterdir()
    assert read_ledger(path.read_bytes(), str(path)).is_whole


@pytest.mark.parametrize(("told", "rank"), [("3", {"rank": 3}), ("", {}), ("-1", {}), ("x", {})])
def test_a_ledger_begins_with_the_rank_that_a_launcher_gave(
    told: str, rank: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", told)
    header = header_of_ledger(("train.py",), None, 0, 0)
    assert {key: header[key] for key in header if key == "rank"} == rank


def test_ledgers_of_one_job_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def job(port: str) -> object:
        monkeypatch.setenv("MASTER_PORT", port)
        return header_of_ledger(("train.py",), None, 0, 0).get("job")

    monkeypatch.setenv("WORLD_SIZE", "8")
    assert job("") is None
    assert job("29500") == job("29500") != job("29501")
    assert header_of_ledger(("train.py",), None, 0, 0)["world"] == 8
