"""Budgets and baselines on the figures of a run: within, over, and what cannot be judged."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ledgers import Step, write_ledger
from typer.testing import CliRunner, Result

from selftime.cli import app

USUAL = [Step(10 + 0.1 * (number % 7)) for number in range(200)]


def say(*words: str | Path) -> Result:
    return CliRunner().invoke(app, list(map(str, words)))


def checked(path: Path, *words: str | Path, status: int = 0) -> dict[str, dict[str, Any]]:
    """What `selftime check` tells of each measure, after its exit status."""
    done = say("check", path, *words, "--format", "json")
    assert done.exit_code == status, done.output
    return {one["measure"]: one for one in json.loads(done.stdout)["checked"]}


def budgets(**most: float) -> list[str]:
    named = ((name.replace("__", "."), limit) for name, limit in most.items())
    return [word for name, limit in named for word in ("--budget", f"{name}={limit}")]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    slow = [Step(400, line=9), Step(10, counted={"compile": 4})]
    return write_ledger(tmp_path / "a.run.jsonl", [*USUAL, *slow])


def test_every_figure_is_in_the_unit_of_its_name(run: Path) -> None:
    names = ["wall_s", "parts__imports", "parts__compile", "steps__training__median_ms"]
    names += ["steps__training__count", "slow_steps__count", "slow_steps__excess_s"]
    told = checked(run, *budgets(**dict.fromkeys(names, 1000)))
    assert {one["state"] for one in told.values()} == {"within"}
    values = {name: round(one["now"], 3) for name, one in told.items()}
    assert values["parts.imports"] == 0.5
    assert values["parts.compile"] == 0.004
    assert values["steps.training.median_ms"] == 10.3
    assert values["steps.training.count"] == 202
    assert values["slow_steps.count"] == 1
    assert values["slow_steps.excess_s"] == 0.39
    assert 2.9 < values["wall_s"] < 3.1


@pytest.mark.parametrize("most", [{"wall_s": 2}, {"parts__imports": 0.4}, {"slow_steps__count": 0}])
def test_what_was_measured_once_is_over_if_it_is_more(run: Path, most: dict[str, float]) -> None:
    [one] = checked(run, *budgets(**most), status=1).values()
    assert one["state"] == "over"


def test_lines_of_a_part_over_its_budget_are_named(run: Path) -> None:
    [one] = checked(run, *budgets(parts__imports=0.4), status=1).values()
    assert [(line["file"], line["line"]) for line in one["lines"]] == [("/project/train.py", 1)]


def test_steps_are_over_a_budget_that_is_below_their_interval(run: Path) -> None:
    assert checked(run, *budgets(steps__training__median_ms=10.29))
    [one] = checked(run, *budgets(steps__training__median_ms=9), status=1).values()
    assert one["state"] == "over"


@pytest.mark.parametrize(
    ("steps", "most", "why"),
    [
        ([Step(10)] * 4, {"steps__training__median_ms": 50}, "too few"),
        ([Step(10)] * 4, {"steps__token__p95_ms": 50}, "no steps of this kind"),
    ],
)
def test_what_cannot_be_judged(
    tmp_path: Path, steps: list[Step], most: dict[str, float], why: str
) -> None:
    path = write_ledger(tmp_path / "a.run.jsonl", steps)
    [one] = checked(path, *budgets(**most), status=3).values()
    assert why in one["why"]


def test_of_a_run_that_was_killed_only_steps_are_judged(tmp_path: Path) -> None:
    path = write_ledger(tmp_path / "a.run.jsonl", USUAL, whole=False)
    assert checked(path, *budgets(steps__training__median_ms=50))
    [one] = checked(path, *budgets(wall_s=1000), status=3).values()
    assert "killed" in one["why"]


def test_a_baseline_holds_figures_of_the_run(tmp_path: Path, run: Path) -> None:
    baseline = tmp_path / "baseline.json"
    assert say("check", run, "--write-baseline", baseline).exit_code == 0
    measures = json.loads(baseline.read_text())["measures"]
    assert set(measures) == {
        "steps.training.median_ms",
        "steps.training.p95_ms",
        "steps.training.data_wait_ms",
        "compilations",
        "wall_s",
    }
    assert len(measures["steps.training.median_ms"]) == 21
    same = checked(run, "--baseline", baseline)
    assert {name: one["state"] for name, one in same.items()} == {"compilations": "within"}


def ledger_of_run(folder: Path, by: float, machine: dict[str, Any] | None = None) -> Path:
    """The ledger of a run whose steps take so many times as long as usual, and its machine."""
    path = write_ledger(folder / f"{by}.run.jsonl", [Step(step.ms * by) for step in USUAL])
    *lines, end = path.read_text().splitlines()
    path.write_text("\n".join([*lines, json.dumps(json.loads(end) | {"machine": machine})]) + "\n")
    return path


MACHINE = {"processor": "Processor 3000", "cores": {"effective": 2}, "torch": "2.9", "threads": 2}


def test_ledgers_are_a_baseline_of_runs_whose_machine_has_to_be_known(tmp_path: Path) -> None:
    before = [ledger_of_run(tmp_path, by, MACHINE) for by in (1.0, 1.02, 0.98)]
    words = [word for ledger in before for word in ("--baseline", ledger)]
    later = ledger_of_run(tmp_path, 1.3, MACHINE)
    assert checked(later, *words)  # the counts are the same
    told = checked(later, *words, "--times", status=1)
    assert told["steps.training.median_ms"]["state"] == "over"
    assert checked(later, *words, "--times", "--max-regress", "40%")
    unnamed = ledger_of_run(tmp_path, 1.31)
    told = checked(unnamed, *words, "--times", status=3)
    assert "does not name its processor" in told["steps.training.median_ms"]["why"]


def test_a_recording_without_a_ledger_is_not_judged_by_one(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    trace = tmp_path / "a.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    [one] = checked(trace, *budgets(wall_s=9), status=3).values()
    assert "no ledger" in one["why"]


@pytest.mark.parametrize(
    "name", ["walls", "parts.nothing", "steps.training", "steps.training.mode_ms", "slow_steps"]
)
def test_a_measure_that_there_is_not(run: Path, name: str) -> None:
    done = say("check", run, "--budget", f"{name}=1")
    assert done.exit_code == 2
    assert "wall_s" in done.stderr


@pytest.mark.parametrize("form", ["text", "markdown", "sarif", "junit"])
def test_every_format_names_the_figure_and_its_limit(run: Path, form: str) -> None:
    done = say("check", run, *budgets(wall_s=2, parts__imports=0.1), "--format", form)
    assert done.exit_code == 1
    assert "parts.imports" in done.stdout
    assert "a step" not in done.stdout
