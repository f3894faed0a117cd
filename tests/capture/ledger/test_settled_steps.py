"""Steps as most are in a long loop are added to the ledger in little time, and nothing is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from selftime.analysis.run.parts import run_parts
from selftime.analysis.run.slow_steps import steps_of_run
from selftime.capture.ledger.ledger import Ledger
from selftime.capture.ledger.stacks import Activity
from selftime.capture.steps.detection_state import StepDetectionState
from selftime.capture.steps.pause_hooks import STEPS_BETWEEN_STACKS
from selftime.ingest.ledger import read_ledger
from selftime.run import Run

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

pytestmark = pytest.mark.torch

MS = 1_000_000

PROGRAM = """
    import os, pathlib, time
    import torch
    from selftime.capture.steps.detection_state import StepDetectionState
    from torch.utils.data import DataLoader, TensorDataset

    settled, end_settled_step = [], StepDetectionState.end_settled_step

    def counted(state, ended):
        settled.append(end_settled_step(state, ended))
        return settled[-1]

    StepDetectionState.end_settled_step = counted
    net = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(800, 16))
    step = 0
    for epoch in range(4):
        for (batch,) in DataLoader(data, batch_size=8):
            net(batch).pow(2).mean().backward()
            if step == 250:
                time.sleep(0.3)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
        net.eval()
        net(batch)
        time.sleep(0.05)
        net.train()
    pathlib.Path(os.environ["SETTLED"]).write_text(str(sum(settled)))
"""


def run_of(folder: Path) -> Run:
    [path] = folder.rglob("*.run.jsonl")
    return read_ledger(path.read_bytes(), str(path))


def test_a_long_loop_is_whole_although_most_of_its_steps_are_settled(
    record: "Runner", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SETTLED", str(tmp_path / "settled"))
    record(PROGRAM, is_light=True)
    assert int((tmp_path / "settled").read_text()) > 100  # a collection makes one that is not
    run = run_of(record.folder)
    steps = steps_of_run(run)
    trained = steps.filter(pl.col("kind").cast(pl.String).str.starts_with("training"))
    assert trained.height == 400
    assert (trained["duration"] > 0).all()
    assert trained["start"].is_sorted()
    assert (trained["start"].diff().drop_nulls() >= trained["duration"].head(-1)).all()
    for phase in ("forward", "backward", "optimizer", "data_wait"):
        assert trained.filter(pl.col(phase) > 0).height > 380, phase
    slow = trained.sort("duration").tail(8)["duration"].max()
    assert slow is not None
    assert 300 * MS <= int(str(slow)) < 2_000 * MS
    parts = run_parts(run)
    evaluated = parts.filter(pl.col("part") == "evaluation")["duration"].sum()
    assert 4 * 50 * MS <= evaluated < 4 * 500 * MS
    assert parts["duration"].sum() == run.wall_ns


def settled_ledger(folder: Path) -> tuple[Ledger, int]:
    """Returns a ledger with 20 steps of 10 ms, and when the last one ended, in ns."""
    ledger = Ledger(folder)
    ended = ledger.segment
    for _ in range(20):
        ended += 10 * MS
        ledger.end_segment(ended, "training", is_usual=True)
    return ledger, ended


def test_a_settled_step_is_added_as_any_other(tmp_path: Path) -> None:
    ledger, ended = settled_ledger(tmp_path)
    ledger.activities.count("data_wait", 3 * MS)
    assert ledger.end_settled_step(ended + 11 * MS)
    assert (ledger.last_segment, ledger.segment) == (ended, ended + 11 * MS)
    assert ledger.steps == 21
    assert ledger.kinds.time_by_kind() == {"training": 211 * MS}
    assert ledger.activities.counted == {}
    ledger.is_written = True
    ledger.finish("ended")
    steps = run_of(tmp_path).segments.filter(pl.col("kind") == "training")
    assert steps["duration"].to_list() == [10 * MS] * 20 + [11 * MS]
    assert steps["data_wait"].to_list() == [0] * 20 + [3 * MS]


COMPUTING = Activity("program", "", "/a.py", 7, "main")

REASONS: dict[str, Callable[[Ledger], object]] = {
    "an evaluation": lambda ledger: ledger.set_evaluating(True),
    "a wait that goes on": lambda ledger: ledger.activities.enter("data_wait"),
    "a compilation": lambda ledger: ledger.activities.count("compile", MS),
    "a collection": lambda ledger: ledger.collections.stops.append((ledger.segment, 0)),
    "a stack sample": lambda ledger: ledger.add_reading(ledger.segment, COMPUTING, MS),
    "steps without a number": lambda ledger: ledger.begin_uncounted_steps(),
    "the end": lambda ledger: ledger.finish("ended"),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_step_is_not_settled_with(reason: str, tmp_path: Path) -> None:
    ledger, ended = settled_ledger(tmp_path)
    REASONS[reason](ledger)
    segment = ledger.segment
    assert not ledger.end_settled_step(ended + 11 * MS)
    assert (ledger.segment, ledger.steps) == (segment, 20)


def test_a_slow_step_is_not_settled(tmp_path: Path) -> None:
    ledger, ended = settled_ledger(tmp_path)
    assert not ledger.end_settled_step(ended + 100 * MS)
    assert ledger.segment == ended


def test_the_first_steps_are_not_settled(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.end_segment(ledger.segment + 10 * MS, "training", is_usual=True)
    assert not ledger.end_settled_step(ledger.segment + 10 * MS)


def test_more_is_done_at_some_steps(tmp_path: Path) -> None:
    ledger, ended = settled_ledger(tmp_path)
    state = StepDetectionState(lambda _: None, lambda: None, ledger=ledger)
    state.is_settled = True
    state.step_kinds.end_step_and_check_unusual()
    state.pause_hooks.step_ends = 1
    done = [state.end_settled_step(ended + 10 * MS * n) for n in range(1, STEPS_BETWEEN_STACKS + 1)]
    assert done == [True] * (STEPS_BETWEEN_STACKS - 1) + [False]
