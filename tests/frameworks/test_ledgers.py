"""Loops that report their steps have a ledger beside the trace, and leave torch as it was."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytest.importorskip("torch")

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

import selftime
from selftime.analysis.run.parts import run_parts
from selftime.analysis.run.slow_steps import steps_of_run
from selftime.run import Run

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*Profiler clears events:UserWarning"),
]

OPTIONS: Any = {"steps": 2, "warmup": 2, "quiet": True}
STEPS = 40


def replaceable() -> list[object]:
    """What the ledger replaces in torch while a loop runs, as it is now."""
    return [_BaseDataLoaderIter.__next__, DataLoader.__iter__, nn.Module.train, os._exit]


@pytest.fixture(autouse=True)
def _left_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    before = replaceable()
    yield
    assert replaceable() == before


def run_of(trace: str | os.PathLike[str]) -> Run:
    loaded = selftime.load(trace)
    assert isinstance(loaded, selftime.Trace)
    return loaded.run


def train(batch: torch.Tensor, net: nn.Module, number: int) -> None:
    net(batch).sum().backward()
    if number % 20 == 19:
        net.eval()
        for (rows,) in DataLoader(TensorDataset(torch.ones(64, 8)), 4):
            net(rows)
        net.train()


def loader() -> DataLoader[Any]:
    return DataLoader(TensorDataset(torch.ones(STEPS * 4, 8)), 4)


def test_a_watched_loop_has_a_ledger_beside_its_trace(tmp_path: Path) -> None:
    net = nn.Linear(8, 1)
    for number, (batch,) in enumerate(selftime.watch(loader(), **OPTIONS)):
        train(batch, net, number)
    [trace] = tmp_path.glob("selftime-runs/*.gz")
    [ledger] = tmp_path.glob("selftime-runs/*.run.jsonl")
    run = run_of(trace)

    assert run.source == str(ledger)
    assert run.is_whole
    assert steps_of_run(run).height == STEPS
    parts = dict(run_parts(run).group_by("part").agg(pl.col("duration").sum()).rows())
    assert sum(parts.values()) == run.wall_ns
    assert parts["evaluation"] > 0
    assert parts["data_wait"] > 0
    assert parts["recording"] > 0


def test_there_is_no_ledger_if_it_is_off(tmp_path: Path) -> None:
    net = nn.Linear(8, 1)
    for number, (batch,) in enumerate(selftime.watch(loader(), ledger=False, **OPTIONS)):
        train(batch, net, number)
    assert list(tmp_path.rglob("*.gz"))
    assert not list(tmp_path.rglob("*.run.jsonl"))


def test_a_loop_that_is_left_says_so(tmp_path: Path) -> None:
    def fail() -> None:
        for number, (batch,) in enumerate(selftime.watch(loader(), **OPTIONS)):
            train(batch, nn.Linear(8, 1), number)
            if number == STEPS - 5:
                raise ValueError("of the program")

    with pytest.raises(ValueError, match="of the program"):
        fail()
    [trace] = tmp_path.glob("selftime-runs/*.gz")
    assert run_of(trace).facts["status"] == "the loop was left"


SCHEDULE = selftime.schedule(wait=3, warmup=1, active=2, repeat=2)


def profiled(**options: Any) -> Any:
    """A profiler that has seen 20 steps, two times two of them recorded."""
    net = nn.Linear(8, 1)
    with selftime.profile(schedule=SCHEDULE, **options) as prof:
        for number, (batch,) in enumerate(loader()):
            train(batch, net, number)
            prof.step()
    return prof


def test_a_profiler_writes_its_ledger_beside_each_trace(tmp_path: Path) -> None:
    prof = profiled()
    for name in ("first.pt.trace.json.gz", "second.json"):
        prof.export_chrome_trace(str(tmp_path / name))
    for name in ("first.run.jsonl", "second.run.jsonl"):
        assert (tmp_path / name).exists()
    run = run_of(tmp_path / "first.pt.trace.json.gz")

    assert run.is_whole
    assert run.segments["kind"].count() == STEPS
    assert run.segments["recorded"].sum() == 2 * (1 + 2)
    assert run.segments["data_wait"].sum() > 0
    assert prof.advise().run is not None


def test_a_trace_that_is_written_in_between_has_the_ledger_so_far(tmp_path: Path) -> None:
    counts = []

    def write(prof: Any) -> None:
        path = tmp_path / f"trace{prof.step_num}.json"
        prof.export_chrome_trace(str(path))
        counts.append(run_of(path).segments["kind"].count())

    profiled(on_trace_ready=write)
    assert counts == [6, 12]


@pytest.mark.parametrize("options", [{"ledger": False}, {"schedule": None}])
def test_a_profiler_without_a_ledger(tmp_path: Path, options: Any) -> None:
    with selftime.profile(**{"schedule": SCHEDULE, **options}) as prof:
        for _ in range(20):
            torch.ones(2)
            if options.get("schedule", SCHEDULE) is not None:
                prof.step()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    assert not list(tmp_path.rglob("*.run.jsonl"))
