"""A recording is held against a baseline and budgets: what is over is found, and nothing else."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.compare.programs import Program, record
from typer.testing import CliRunner, Result

from selftime.cli import app
from selftime.compare.check import step_measures
from selftime.compare.check.baseline_files import Baseline
from selftime.compare.check.limit_checks import RecordingCheck, check_recording
from selftime.compare.check.run_checks import ContributingLine, MeasureCheck
from selftime.reports.check import as_json, as_junit, as_markdown, as_text
from selftime.testing import sketch
from selftime.trace import Trace

PAIRS = 100
STEPS = 10
SLOWER = {"aten::addmm": 460.0, "aten::relu": 50.0, "aten::sum": 20.0}
MORE = {"aten::addmm": 400.0, "aten::relu": 50.0, "aten::sum": 10.0, "aten::mean": 10.0}


def made(folder: Path, name: str, **changes: Any) -> Trace:
    return record(replace(Program(), **{"steps": STEPS, **changes}), folder, name)


def states(found: Any) -> dict[str, str]:
    return {one.measure: one.state for one in found.checked}


def test_a_recording_keeps_within_its_own_baseline(tmp_path: Path) -> None:
    trace = made(tmp_path, "run")
    found = check_recording(trace, baseline=Baseline.from_trace(trace))
    told = states(found)
    assert set(told) >= {"device_ms", "host_ms", "operators", "launches", "copies", "syncs"}
    assert set(told.values()) == {"within"}
    assert (found.state, found.exit_status, found.notes) == ("within", 0, ())


def test_one_launch_more_is_over(tmp_path: Path) -> None:
    baseline = Baseline.from_trace(made(tmp_path, "before"))
    found = check_recording(made(tmp_path, "after", operators=MORE, seed=1), baseline=baseline)
    over = {one.measure: one.difference for one in found.checked if one.state == "over"}
    assert over == {"operators": 1.0, "launches": 1.0}
    assert found.exit_status == 1
    better = check_recording(
        made(tmp_path, "less"), baseline=Baseline.from_trace(made(tmp_path, "x", operators=MORE))
    )
    assert states(better)["launches"] == "better"
    assert better.exit_status == 0


def test_times_are_over_if_more_than_allowed(tmp_path: Path) -> None:
    baseline = Baseline.from_trace(made(tmp_path, "before"))
    slow = made(tmp_path, "after", operators=SLOWER, seed=1)
    found = check_recording(slow, baseline=baseline)
    assert {name for name, state in states(found).items() if state == "over"} == {
        "device_ms",
        "host_ms",
    }
    assert check_recording(slow, baseline=baseline, max_regress=0.2).exit_status == 0


def with_times(times: "np.ndarray[Any, Any]") -> Trace:
    """A recording of which the times of steps that were not recorded are these, in ms."""
    facts = {"steps": {"unprofiled_ns": (times * 1e6).tolist()}}
    return Trace(metadata={"selftime": facts})


@pytest.mark.sweep
def test_of_a_hundred_pairs_few_are_falsely_over_and_most_slow_ones_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_measures, "missing_requirement_sentences", lambda *_: [])
    monkeypatch.setattr(step_measures, "MEASURES", {"step_ms": step_measures.MEASURES["step_ms"]})
    draw = np.random.default_rng(0)

    def sample(middle: float) -> Trace:
        return with_times(draw.normal(middle, 3, size=STEPS))

    def is_over(before: float, after: float, most: float) -> bool:
        baseline = Baseline.from_trace(sample(before))
        found = check_recording(
            sample(after), baseline=replace(baseline, measures=only(baseline)), max_regress=most
        )
        [one] = found.checked
        return one.state == "over"

    def only(baseline: Baseline) -> dict[str, Any]:
        return {"step_ms": baseline.measures["step_ms"]}

    assert sum(is_over(100, 100, most=0.0) for _ in range(PAIRS)) <= 5
    assert sum(is_over(100, 110, most=0.05) for _ in range(PAIRS)) >= 95


@pytest.mark.parametrize(
    ("budgets", "told"),
    [
        ({"launches": 3}, {"launches": "within"}),
        ({"launches": 2, "syncs": 0}, {"launches": "over", "syncs": "within"}),
        ({"host_ms": 1.0, "device_ms": 0.4}, {"host_ms": "within", "device_ms": "over"}),
        ({"peak_bytes": 0}, {"peak_bytes": "unknown"}),
        ({"step_ms": 5}, {"step_ms": "unknown"}),
    ],
)
def test_budgets(budgets: dict[str, float], told: dict[str, str], tmp_path: Path) -> None:
    found = check_recording(made(tmp_path, "run"), budgets=budgets)
    assert states(found) == told
    exit_status = 1 if "over" in told.values() else 3 if "unknown" in told.values() else 0
    assert found.exit_status == exit_status
    assert all(one.why for one in found.checked if one.state == "unknown")


def test_another_device_cannot_be_judged_by_time(tmp_path: Path) -> None:
    baseline = Baseline.from_trace(made(tmp_path, "before"))
    other = {"deviceProperties": [{"id": 0, "name": "Other"}]}
    found = check_recording(made(tmp_path, "after", metadata=other), baseline=baseline)
    assert states(found)["device_ms"] == "unknown"
    assert states(found)["launches"] == "within"
    assert found.exit_status == 3
    assert "devices differ" in found.notes[0]


def test_two_steps_are_too_few(tmp_path: Path) -> None:
    baseline = Baseline.from_trace(made(tmp_path, "before"))
    found = check_recording(made(tmp_path, "after", steps=2), baseline=baseline)
    [host] = [one for one in found.checked if one.measure == "host_ms"]
    assert (host.state, host.now is not None) == ("unknown", True)
    assert "too few" in host.why


def test_three_and_three_steps_are_too_few_however_slow(tmp_path: Path) -> None:
    """The first step counts nowhere; of the others no difference could be more than chance."""
    twice = {name: 2 * time for name, time in SLOWER.items()}
    baseline = Baseline.from_trace(made(tmp_path, "before", steps=4))
    found = check_recording(made(tmp_path, "after", steps=4, operators=twice), baseline=baseline)
    assert baseline.measures["host_ms"].size == 3
    assert states(found)["host_ms"] == states(found)["device_ms"] == "unknown"
    assert found.exit_status == 3


# The command


def run(*words: str | Path, folder: Path) -> Result:
    runner = CliRunner()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return runner.invoke(app, ["check", *map(str, words)], env={"COLUMNS": "80"})


def test_the_command_keeps_a_baseline_and_tells_by_its_status(tmp_path: Path) -> None:
    made(tmp_path, "before")
    made(tmp_path, "after", operators=MORE, seed=1)
    kept = run("before.json", "--write-baseline", "baseline.json", folder=tmp_path)
    assert kept.exit_code == 0, kept.output
    again = json.loads((tmp_path / "baseline.json").read_text())
    assert again["format"] == "selftime.baseline/1"
    assert run("before.json", "--baseline", "baseline.json", folder=tmp_path).exit_code == 0
    over = run("after.json", "--baseline", "baseline.json", folder=tmp_path)
    assert over.exit_code == 1
    assert over.stdout.startswith("A limit is exceeded: 2 over, ")
    assert max(map(len, over.stdout.splitlines())) <= 80
    unknown = run("after.json", "--budget", "peak_bytes=1000", folder=tmp_path)
    assert unknown.exit_code == 3
    assert "the recording lacks memory events" in " ".join(unknown.stdout.split())


def test_budgets_are_read_from_the_project(tmp_path: Path) -> None:
    made(tmp_path, "run")
    config = tmp_path / "pyproject.toml"
    config.write_text("[tool.selftime.budgets]\nlaunches = 3\nhost_ms = 1.5\n")
    assert run("run.json", folder=tmp_path).exit_code == 0
    assert run("run.json", "--budget", "launches=2", folder=tmp_path).exit_code == 1
    other = tmp_path / "other.toml"
    other.write_text("[tool.selftime.budgets]\nlaunches = 2\n")
    assert run("run.json", "--config", "other.toml", folder=tmp_path).exit_code == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "nothing to check against"),
        (["--budget", "launches"], "write a name and a number"),
        (["--budget", "lunches=3"], "there is no measure `lunches`"),
        (["--budget", "launches=-1"], "write a number from 0"),
        (["--budget", "launches=nan"], "write a number from 0"),
        (["--baseline", "none.json"], "cannot be read"),
        (["--baseline", "run.json"], "is not a baseline of selftime"),
        (["--budget", "launches=3", "--max-regress", "much"], "write a share such as"),
        (["--config", "broken.toml"], "is not valid TOML"),
        (["--config", "list.toml"], "is not a table"),
    ],
)
def test_what_is_wrong_is_one_sentence(words: list[str], told: str, tmp_path: Path) -> None:
    made(tmp_path, "run")
    (tmp_path / "broken.toml").write_text("[")
    (tmp_path / "list.toml").write_text("[tool.selftime]\nbudgets = [1]\n")
    done = run("run.json", *words, folder=tmp_path)
    assert done.exit_code == 2, done.output
    assert told in done.stderr
    assert done.stderr.count("\n") == 1


def test_every_form_tells_what_is_over(tmp_path: Path) -> None:
    made(tmp_path, "before")
    made(tmp_path, "after", operators=MORE, seed=1)
    run("before.json", "--write-baseline", "baseline.json", folder=tmp_path)
    words = ("after.json", "--baseline", "baseline.json", "--budget", "peak_bytes=1")
    pages = {}
    for form in ("json", "markdown", "sarif", "junit"):
        done = run(*words, "--format", form, folder=tmp_path)
        assert done.exit_code == 1, done.output
        pages[form] = done.stdout
    told = json.loads(pages["json"])
    assert (told["format"], told["state"], told["status"]) == ("selftime.check/1", "over", 1)
    over = [one["measure"] for one in told["checked"] if one["state"] == "over"]
    assert over == ["operators", "launches"]
    assert "| over | `launches` | 4 | 3 | baseline |" in pages["markdown"]
    suite = ET.fromstring(pages["junit"].encode()).find("testsuite")  # noqa: S314 - our own
    assert suite is not None
    assert (suite.get("failures"), suite.get("skipped")) == ("2", "1")
    assert json.loads(pages["sarif"])["runs"][0]["properties"]["state"] == "over"


@pytest.mark.parametrize("write", [as_text, as_markdown, as_junit])
def test_files_are_named_as_seen_from_the_folder(write: Callable[..., str]) -> None:
    lines = tuple(
        ContributingLine(file, 7, "main", 3.0) for file in ("/srv/it/train.py", "/else/loss.py")
    )
    over = MeasureCheck("syncs", "budget", "over", 3.0, 1.0, lines=lines)
    found = RecordingCheck("run.json", None, (over,), ())
    page = write(found, root="/srv/it")
    assert "/else/loss.py:7 in main" in page
    assert "train.py:7 in main" in page
    assert "/srv/it" not in page
    assert "/srv/it/train.py:7" in write(found)


def test_json_keeps_the_documented_keys_of_source_lines() -> None:
    lines = (ContributingLine("train.py", 7, "main", 3.0),)
    over = MeasureCheck("syncs", "budget", "over", 3.0, 1.0, lines=lines)
    page = json.loads(as_json(RecordingCheck("run.json", None, (over,), ())))
    assert page["checked"][0]["lines"] == [
        {"file": "train.py", "line": 7, "function": "main", "much": 3.0}
    ]


ACCOUNTED = """
    column = 1 ms
    mark 1 | ssssssssttttttttuuuuuuuuvvvvvvvvwwwwwwww
    mark 1 | ddd     ddd     ddd     ddd     ddd
    cpu 1  |    aaaaa   aaaaa   aaaaa   aaaaa   aaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:3 main
    a = aten::mm; line = train.py:7 step
"""


def test_a_budget_is_held_on_a_class_of_the_account() -> None:
    trace = sketch(ACCOUNTED)
    budgets = {"account.data_wait_ms": 2.0, "account.compute_ms": 5.0, "account.copy_ms": 0.0}
    waits, computes, copies = check_recording(trace, budgets=budgets).checked
    assert (waits.state, waits.now, waits.difference) == ("over", 3.0, 1.0)
    assert [(line.file, line.line_number) for line in waits.lines] == [("train.py", 3)]
    assert (computes.state, computes.now) == ("within", 5.0)
    assert (copies.state, copies.now) == ("within", 0.0)
    assert "account.data_wait_ms" in as_text(check_recording(trace, budgets=budgets))
    assert not set(Baseline.from_trace(trace).measures) & set(budgets)


def test_without_steps_a_budget_on_the_account_cannot_be_judged() -> None:
    [found] = check_recording(Trace(), budgets={"account.compute_ms": 1.0}).checked
    assert (found.state, found.now) == ("unknown", None)
