"""Stacks are sampled at random instants of usual steps, and nothing of the program changes."""

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import selftime
from selftime.analysis.run.sampled_lines import sampled_lines
from selftime.capture.ledger.stacks import Activity, StackReadings
from selftime.capture.ledger.step_samples import StepSamples
from selftime.ingest.ledger import read_ledger

if TYPE_CHECKING:
    from tests.capture.conftest import Runner

PROGRAM = """
    import os, pathlib, random, sys, time
    import torch

    random.seed(1)
    net = torch.nn.Linear(16, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)

    def features(rounds):
        total = 0
        for i in range(rounds):
            total += abs(i)
        return total

    def main():
        for step in range(200):
            features(90_000)
            features(
                30_000
            )
            net(torch.ones(4, 16)).mean().backward()
            optimizer.step()
            optimizer.zero_grad()

    main()
    end = time.monotonic() + 30
    while sys.getswitchinterval() != 0.005 and time.monotonic() < end:
        time.sleep(0.01)  # the trace is still being written
    told = f"{sys.getswitchinterval()} {random.random()}"
    pathlib.Path(os.environ["TOLD"]).write_text(told)
"""


@pytest.mark.torch
def test_samples_of_usual_steps_name_lines_and_leave_the_program_as_it_is(
    record: "Runner", monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOLD", str(tmp_path / "told"))
    record(PROGRAM, is_light=True)
    interval, drawn = (tmp_path / "told").read_text().split()
    assert float(interval) == 0.005
    assert float(drawn) == random.Random(1).random()  # noqa: S311 - as the program draws
    [path] = record.folder.rglob("*.run.jsonl")
    lines = sampled_lines(read_ledger(path.read_bytes(), str(path)))
    assert set(lines["kind"]) == {"training"}
    assert lines["samples"].sum() > 5
    first = lines.row(0, named=True)
    assert first["function"] == "features"
    assert first["line"] in {11, 12}
    assert first["low"] < first["share"] <= first["high"] <= 1  # each sample may be of this line
    assert sum(lines["share"].to_list()) == pytest.approx(1)


def test_samples_come_seldom_after_many() -> None:
    samples, readings = StepSamples(0), StackReadings()
    pauses: list[float] = []
    for number in range(5_000):
        samples.plan_next(number)
        pauses.append((samples.next_at - number) / 1e9)
        lines = samples.add(readings, Activity("program", "", "/a.py", 7, "main"))
        assert bool(lines) == (number == 0)
    for part, mean in ((pauses[:400], 0.05), (pauses[400:4_000], 0.25), (pauses[4_000:], 1.0)):
        assert min(part) >= 0.5 * mean
        assert max(part) <= 1.5 * mean
        assert sum(part) / len(part) == pytest.approx(mean, rel=0.1)
    [line] = samples.take()
    assert line["samples"]["activity"] == [0] * 5_000
    assert samples.take() == []


def test_lines_of_a_run_without_samples() -> None:
    assert selftime.Trace().view("run_lines").height == 0
