"""What a repair achieved, against what was predicted."""

import json
from dataclasses import replace
from typing import Any

import jsonschema
import polars as pl
import pytest
from typer.testing import CliRunner

from selftime.advice.verify import FORMAT, verify
from selftime.bench.result import (
    Bench,
    BenchMetric,
    BenchRound,
    EstimateWithInterval,
    ProgramRun,
    ProgramTimes,
    StopReason,
)
from selftime.cli import app
from selftime.errors import UsageError
from selftime.reports.schemas import schema
from selftime.reports.verify import as_text
from selftime.testing import sketch
from selftime.trace import Trace

LOADING = """
    column = 1 ms
    mark 1 | {s}
    mark 1 | {d}
    cpu 1  | {a}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:9 main
"""


def program(loading: int, step: int, unprofiled: list[int] | None = None) -> Trace:
    """Four steps of `step` ms that begin with `loading` ms of data loading."""
    marks = "".join(letter * step for letter in "stuv")
    one = "d" * loading + " " * (step - loading)
    work = " " * loading + "a" * (step - loading)
    facts: dict[str, Any] = {"cores": {"effective": 8}, "threads": 1}
    if unprofiled:
        facts["steps"] = {"unprofiled_ns": [t * 1_000_000 for t in unprofiled]}
    drawing = LOADING.format(s=marks, d=one * 4, a=work * 4)
    return sketch(drawing, metadata={"selftime": facts})


def test_two_recordings_alone_say_that_their_interval_holds_no_drift_between_runs() -> None:
    found = verify(program(20, 40), program(1, 21))
    assert "no drift from one run to the next" in " ".join(as_text(found).split())
    assert json.loads(found.to_json())["limits"] == list(found.limits)


def test_a_repair_is_held_against_its_promise() -> None:
    found = verify(program(20, 40), program(1, 21))
    assert [promise.rule for promise in found.gone] == ["slow_input"]
    assert found.left == found.new == ()
    assert found.achieved.recorded
    assert found.achieved.saved_ms == pytest.approx(19)
    assert found.predicted_ms == pytest.approx(19, abs=1)
    assert "19.0 ms a step" in as_text(found)


def test_steps_that_nobody_recorded_count_first() -> None:
    found = verify(program(20, 40, [30, 30, 32]), program(1, 21, [12, 11, 12]))
    assert not found.achieved.recorded
    assert (found.achieved.before_ms, found.achieved.after_ms) == (30, 12)
    assert found.achieved.low_ms <= 18 <= found.achieved.high_ms


def with_facts(trace: Trace, **facts: Any) -> Trace:
    return replace(trace, metadata={"selftime": {**trace.facts, **facts}})


def checkout(trace: Trace, folder: str, script: str) -> Trace:
    """The recording as one of a program in a checkout of its own."""
    lines = trace.lines.with_columns(
        file=pl.lit(f"{folder}/src/train.py", trace.lines["file"].dtype)
    )
    return with_facts(replace(trace, lines=lines), argv=[script], cwd=folder)


def test_findings_of_two_checkouts_match_by_their_paths_within_them() -> None:
    slow, fast = program(20, 40), program(1, 21)
    before, after = (checkout(slow, f"/job/{at}", "src/train.py") for at in ("old", "new"))
    found = verify(before, after)
    assert (found.gone, found.new, found.predicted_ms) == ((), (), 0.0)
    assert [one.file for one in found.left] == ["/job/old/src/train.py"]
    repaired = verify(before, checkout(fast, "/job/new", "src/train.py"))
    assert [one.file for one in repaired.gone] == ["/job/old/src/train.py"]
    other = verify(before, checkout(slow, "/job/new", "train.py"))
    assert len(other.gone) == len(other.new) == 1


def test_differences_between_the_recordings_are_told() -> None:
    def usage(own: float) -> dict[str, Any]:
        workers = {"count": 0, "cpu_s": 0}
        return {"wall_s": 1.0, "process_s": own, "workers": workers, "busy": 1.0, "steal": 0}

    cores = {"effective": 2, "affinity": 2, "logical": 2}
    before, after = (
        with_facts(program(*size), settings={"threads": threads}, cores=cores, usage=usage(own))
        for size, threads, own in (((20, 40), 1, 1.9), ((1, 21), 2, 0.6))
    )
    found = verify(before, after)
    threads = "PyTorch's threads differ: `1` before, `2` after"
    load = "other programs used 0.1 cores before and 1.4 cores after"
    assert found.notes == (threads, load)
    assert f"DIFFERENCES BETWEEN THE RECORDINGS\n- {threads}\n- {load}\n" in as_text(found)
    assert json.loads(found.to_json())["notes"] == [threads, load]
    jsonschema.validate(json.loads(found.to_json()), schema("verification"))
    assert verify(before, before).notes == ()


def timed(before: float, after: float, reach: float | None, **changed: Any) -> Bench:
    """A bench of six rounds; the interval of what is saved reaches so far to either side."""
    saved = before - after
    low, high = (None, None) if reach is None else (saved - reach, saved + reach)
    sides = [
        ProgramTimes(f"{name}.py", ms, ms, ms, ms, ms, 1000.0)
        for name, ms in (("train", before), ("train_fixed", after))
    ]
    given = {
        "metric": BenchMetric.step,
        "precision": 0.02,
        "stop": StopReason.precise,
        "seconds": 60.0,
        "before": sides[0],
        "after": sides[1],
        "speedup": EstimateWithInterval(before / after, None, None),
        "saved_ms": EstimateWithInterval(saved, low, high),
        "reached": 0.01,
        "failure": None,
        "notes": (),
        "rounds": (BenchRound("before", ProgramRun(1000.0, before), ProgramRun(1000.0, after)),)
        * 6,
    }
    return Bench(**{**given, **changed})


@pytest.mark.parametrize(
    ("saved", "reach", "verdict"),
    [(19, 1, "kept"), (500, 1, "exceeded"), (1, 0.5, "missed"), (19, None, "unknown")],
)
def test_a_bench_is_held_against_the_promise(
    saved: float, reach: float | None, verdict: str
) -> None:
    found = verify(program(20, 40), program(1, 21), timed(600, 600 - saved, reach))
    assert found.benched is not None
    assert found.benched.verdict == verdict
    [gone] = found.gone
    assert (found.benched.promised_low_ms, found.benched.promised_high_ms) == (
        gone.low_ms,
        gone.high_ms,
    )


def test_recorded_and_unprofiled_steps_stand_apart() -> None:
    found = verify(program(20, 40), program(1, 21), timed(30, 12, 1))
    assert (found.achieved.before_ms, found.achieved.after_ms) == (40, 21)
    assert found.achieved.recorded
    assert found.benched is not None
    assert (found.benched.before_ms, found.benched.after_ms) == (30, 12)
    text = as_text(found)
    assert (
        text.index("(recorded)") < text.index("WITHOUT THE PROFILER") < text.index("30.0 ms before")
    )
    assert max(map(len, text.splitlines())) <= 80
    assert json.loads(found.to_json())["benched"]["saved_ms"] == 18


def test_without_a_gone_finding_nothing_was_promised() -> None:
    found = verify(program(20, 40), program(20, 40), timed(30, 12, 1))
    assert found.benched is not None
    assert found.benched.verdict == "unknown"
    assert found.benched.promised_low_ms is None


def test_a_bench_of_processes_is_refused() -> None:
    with pytest.raises(UsageError, match="timed whole processes"):
        verify(program(20, 40), program(1, 21), timed(30, 12, 1, metric=BenchMetric.process))


def test_a_bench_of_other_programs_is_told() -> None:
    before = program(20, 40)
    facts = {**before.facts, "argv": ["/code/infer.py", "--x"]}
    found = verify(replace(before, metadata={"selftime": facts}), program(1, 21), timed(30, 12, 1))
    assert found.benched is not None
    [note] = found.benched.notes
    assert "`infer`" in note


def test_the_command_reads_a_bench(tmp_path: Any) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 9}
    trace, bench = tmp_path / "trace.json", tmp_path / "bench.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    bench.write_text(timed(30, 12, 1).to_json())
    words = ["verify", str(trace), str(trace), "--bench", str(bench), "--format", "json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["benched"]["rounds"] == 6
    jsonschema.validate(told, schema("verification"))


def test_nothing_changed() -> None:
    found = verify(program(20, 40), program(20, 40))
    assert found.gone == found.new == ()
    assert [promise.rule for promise in found.left] == ["slow_input"]
    assert found.achieved.saved_ms == found.predicted_ms == 0
    assert "nothing: no finding is gone" in as_text(found)
    assert "Saved      no difference" in as_text(found)


def test_what_got_worse_is_new_and_saves_less_than_nothing() -> None:
    found = verify(program(1, 21), program(20, 40))
    assert [promise.rule for promise in found.new] == ["slow_input"]
    assert found.achieved.saved_ms == pytest.approx(-19)
    assert "NEW" in as_text(found)


def test_a_recording_without_steps_is_refused() -> None:
    with pytest.raises(UsageError, match="the second recording has no steps"):
        verify(program(1, 21), Trace())


def test_json_is_one_line_and_the_same_twice() -> None:
    first, second = (verify(program(20, 40), program(1, 21)).to_json() for _ in range(2))
    assert first == second
    assert "\n" not in first
    assert json.loads(first)["format"] == FORMAT


def test_the_command_keeps_what_it_found(tmp_path: Any) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 9}
    trace, kept = tmp_path / "trace.json", tmp_path / "kept.jsonl"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    for _ in range(2):
        words = ["verify", str(trace), str(trace), "--keep", str(kept), "--format", "json"]
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    assert kept.read_text() == done.stdout * 2


def test_the_repair_of_one_finding_is_held_against_its_promise_alone() -> None:
    found = verify(program(20, 40), program(1, 21), finding="slow_input").repaired
    assert found is not None
    assert found.id.startswith("slow_input-")
    assert found.is_gone
    assert found.saved_ms == pytest.approx(19)
    assert (found.basis, found.verdict) == ("recorded", "kept")
    assert found.promise == verify(program(20, 40), program(1, 21)).gone[0]
    missed = verify(program(20, 40), program(19, 39), finding=found.id).repaired
    assert missed is not None
    assert not missed.is_gone
    assert missed.verdict == "missed"


def test_a_finding_that_is_left_is_not_among_the_promises_that_are_gone() -> None:
    told = verify(program(20, 40), program(19, 39), finding="slow_input")
    text = as_text(told)
    assert "REPAIRED: slow_input-" in text
    assert "missed, it saves less; the finding is still there" in text
    jsonschema.validate(json.loads(told.to_json()), schema("verification"))


@pytest.mark.parametrize(
    ("name", "message"), [("data_parallel", "nothing was promised"), ("nothing", "no finding")]
)
def test_a_finding_that_is_not_there_is_an_error(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        verify(program(20, 40), program(1, 21), finding=name)


def test_the_command_takes_the_finding(tmp_path: Any) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 9}
    trace = tmp_path / "trace.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [event]}))
    words = ["verify", str(trace), str(trace), "--finding", "slow_input"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "`slow_input` is no finding of the first recording" in done.stderr
