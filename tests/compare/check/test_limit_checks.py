"""A recording is held against a baseline and budgets: what is over is found, and nothing else."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest
from tests.compare.programs import Program, record
from typer.testing import CliRunner, Result

from selftime.cli import app
from selftime.compare.amounts_per_step import StepWindows
from selftime.compare.check.baseline_files import Baseline
from selftime.compare.check.limit_checks import RecordingCheck, check_recording, check_recordings
from selftime.compare.check.run_checks import ContributingLine, MeasureCheck
from selftime.compare.check.step_measures import MEASURES
from selftime.reports.check import as_json, as_junit, as_markdown, as_text
from selftime.testing import sketch
from selftime.trace import Trace

STEPS = 10
SLOWER = {"aten::addmm": 460.0, "aten::relu": 50.0, "aten::sum": 20.0}
MORE = {"aten::addmm": 400.0, "aten::relu": 50.0, "aten::sum": 10.0, "aten::mean": 10.0}


def made(folder: Path, name: str, **changes: Any) -> Trace:
    return record(replace(Program(), **{"steps": STEPS, **changes}), folder, name)


def states(found: Any) -> dict[str, str]:
    return {one.measure: one.state for one in found.checked}


def test_a_recording_keeps_within_its_own_baseline(tmp_path: Path) -> None:
    trace = made(tmp_path, "run")
    found = check_recording(trace, baseline=Baseline.from_traces(trace))
    told = states(found)
    assert set(told) == {"operators", "launches", "copies", "syncs", "copied_bytes"}
    assert set(told.values()) == {"within"}
    assert (found.state, found.exit_status, found.notes) == ("within", 0, ())
    assert found.times_left_out == ("device_ms", "host_ms")


def test_one_launch_more_is_over(tmp_path: Path) -> None:
    baseline = Baseline.from_traces(made(tmp_path, "before"))
    found = check_recording(made(tmp_path, "after", operators=MORE, seed=1), baseline=baseline)
    over = {one.measure: one.difference for one in found.checked if one.state == "over"}
    assert over == {"operators": 1.0, "launches": 1.0}
    assert found.exit_status == 1
    better = check_recording(
        made(tmp_path, "less"), baseline=Baseline.from_traces(made(tmp_path, "x", operators=MORE))
    )
    assert states(better)["launches"] == "better"
    assert better.exit_status == 0


FACTS = {
    "processor": "Processor 3000",
    "torch": "2.9",
    "cores": {"effective": 2, "affinity": 2},
    "usage": {
        "wall_s": 1.0,
        "process_s": 1.0,
        "busy": 0.55,
        "queued_s": 0.02,
        "workers": {"cpu_s": 0.0},
    },
}


LOAD = (
    "other programs used 0.1 cores of 2 meanwhile, and the program waited for a core 2 % of the "
    "time"
)


def runs(folder: Path, count: int, **changes: Any) -> list[Trace]:
    """Runs of one program on one machine, whose times vary a little."""
    told = {"steps": 4, "metadata": {"selftime": FACTS}, **changes}
    return [made(folder, f"run{seed}", seed=seed, **told) for seed in range(count)]


def test_a_slower_program_fails_only_where_times_are_asked_for(tmp_path: Path) -> None:
    baseline = Baseline.from_traces(*runs(tmp_path, 3))
    slow = made(tmp_path, "after", operators=SLOWER, steps=4, metadata={"selftime": FACTS})
    assert check_recording(slow, baseline=baseline).exit_status == 0
    found = check_recording(slow, baseline=baseline, judges_times=True)
    assert {name for name, state in states(found).items() if state == "over"} == {
        "device_ms",
        "host_ms",
    }
    assert found.exit_status == 1
    assert found.notes == (f"{LOAD}; they used 0.1 cores in the baseline",)
    generous = check_recording(slow, baseline=baseline, max_regress=0.2, judges_times=True)
    assert generous.exit_status == 0


def test_times_of_a_baseline_without_a_processor_are_refused(tmp_path: Path) -> None:
    """As baselines were written that know neither the processor nor several runs."""
    trace = made(tmp_path, "run")
    found = check_recording(trace, baseline=Baseline.from_traces(trace), judges_times=True)
    [host] = [one for one in found.checked if one.measure == "host_ms"]
    assert (host.state, found.exit_status) == ("unknown", 3)
    assert "the baseline does not name its processor" in host.why


def test_a_budget_on_a_time_tells_the_load(tmp_path: Path) -> None:
    found = check_recording(runs(tmp_path, 1)[0], budgets={"host_ms": 1.5, "launches": 3})
    assert found.notes == (LOAD,)
    three = check_recordings(runs(tmp_path, 3), budgets={"host_ms": 0.45, "launches": 3})
    host, launches = three.checked
    assert (host.state, launches.state, three.runs) == ("over", "within", 3)
    assert host.low is not None


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


MEMORY = """
    column = 1 ms
    mark 1 | ssssssssttttttttuuuuuuuuvvvvvvvvwwwwwwww
    cpu 1  | aaaaa   aaaaa   aaaaa   aaaaa   aaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    a = aten::mm
"""


def with_memory(**columns: Any) -> Trace:
    """A recording in each step of which 300 MB are allocated and released on a device."""
    times = [ms * 1_000_000 + part for ms in (1, 9, 17, 25, 33) for part in (0, 1)]
    trace = sketch(MEMORY)
    rows = {
        "time": times,
        "bytes": [300_000_000, -300_000_000] * 5,
        "device_type": 1,
        "device": 0,
        "failed": False,
        **columns,
    }
    memory = pl.DataFrame(rows).select(
        pl.col(name).cast(dtype) if name in rows else pl.lit(None, dtype).alias(name)
        for name, dtype in trace.memory.schema.items()
    )
    return replace(trace, memory=memory)


def test_a_peak_is_summed_where_the_trace_has_no_totals() -> None:
    """It was 0 B and within whatever the budget, as in traces of PyTorch before 1.10."""
    [found] = check_recording(with_memory(), budgets={"peak_bytes": 1e6}).checked
    assert (found.state, found.now) == ("over", 300_000_000)


def test_the_peak_of_a_recording_of_one_step_is_not_known() -> None:
    """Releases of what was allocated before are missing in it: on a busy machine it was over."""
    trace = with_memory()
    only = StepWindows(np.zeros(1, np.int64), np.full(1, 8_000_000))
    assert MEASURES["peak_bytes"].per_step(trace, only).size == 0
    told = with_memory(allocated=[10**9 + 300_000_000, 10**9] * 5)  # by the device's allocator
    assert MEASURES["peak_bytes"].per_step(told, only).tolist() == [300_000_000]


def test_a_peak_that_the_trace_does_not_tell_is_unknown() -> None:
    untold = with_memory(bytes=[300_000_000, None] * 5)
    found = check_recording(untold, budgets={"peak_bytes": 1e6})
    assert states(found) == {"peak_bytes": "unknown"}
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


def test_a_baseline_of_runs_is_made_of_files_folders_and_old_baselines(tmp_path: Path) -> None:
    runs(tmp_path, 3)
    (tmp_path / "runs").mkdir()
    for name in ("run0.json", "run1.json"):
        (tmp_path / name).rename(tmp_path / "runs" / name)
    over = ("--baseline", "runs", "--baseline", "run2.json", "--format", "json")
    told = run("run2.json", *over, "--times", folder=tmp_path)
    assert told.exit_code == 0, told.output
    found = json.loads(told.stdout)
    assert (found["runs"], found["baseline_runs"], found["load"]) == (1, 3, 0.1)
    words = ("runs", "run2.json", "--runs", "2", "--write-baseline", "baseline.json")
    assert run(*words, folder=tmp_path).exit_code == 0
    kept = json.loads((tmp_path / "baseline.json").read_text())
    assert kept["like"]["processor"] == "Processor 3000"
    assert [each["source"] for each in kept["more_runs"]] == ["run1.json", "run2.json"]
    more = run("runs", "--runs", "3", "--baseline", "baseline.json", folder=tmp_path)
    assert (more.exit_code, "holds 2 runs" in more.stderr) == (2, True)
    del kept["more_runs"], kept["load"], kept["like"]["processor"], kept["like"]["cores"]
    (tmp_path / "old.json").write_text(json.dumps(kept))
    assert run("run2.json", "--baseline", "old.json", folder=tmp_path).exit_code == 0
    old = run("run2.json", "--baseline", "old.json", "--times", folder=tmp_path)
    assert (old.exit_code, "does not name its processor" in old.stdout) == (3, True)


def test_a_value_and_its_limit_have_the_digits_that_tell_them_apart() -> None:
    over = MeasureCheck("peak_bytes", "baseline", "over", 80_354_048.0, 80_353_024.0)
    page = as_text(RecordingCheck("run.json", None, (over,), ()))
    assert "76.632 MiB" in page
    assert "76.631 MiB" in page


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
        (["--baseline", "broken.toml"], "broken.toml"),
        (["--baseline", "run.json", "--runs", "0"], "--runs"),
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
    assert not set(Baseline.from_traces(trace).measures) & set(budgets)


def test_without_steps_a_budget_on_the_account_cannot_be_judged() -> None:
    [found] = check_recording(Trace(), budgets={"account.compute_ms": 1.0}).checked
    assert (found.state, found.now) == ("unknown", None)
