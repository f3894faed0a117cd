"""The benchmarks measure what they say, and the page says what they measured."""

import json
import subprocess
import sys
from argparse import Namespace
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from document import PAGE, page
from frame_cpu import cpu_of_frames
from goals import GOALS, verdicts
from measure import Measured, measure
from medians import interval, middle
from open_trace import OPENED, Reader, partly, rotated, row
from peers.environments import PINNED
from sheets import Column, keep, kept, markdown, table, written
from sizes import row as grown_row

import selftime
from bench import words
from scale import scale

MB = 1_000_000
linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is sampled on Linux only")


def python(program: str, **limits: Any) -> Measured:
    return measure([sys.executable, "-c", program], **limits)


def from_a_small_process(program: str) -> dict[str, Any]:
    """What is measured of a program by a small process: the kernel adds what started it."""
    driver = (
        "import dataclasses, json, sys; from measure import measure; "
        "run = measure([sys.executable, '-c', sys.argv[1]]); "
        "print(json.dumps(dataclasses.asdict(run)))"
    )
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", driver, program],
        cwd=Path(measure.__code__.co_filename).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def test_a_process_is_measured_from_start_to_exit() -> None:
    run = python("import time; time.sleep(0.2); print('{\"rows\": 3}')")
    assert run.failure is None
    assert run.told == {"rows": 3}
    assert run.wall_s > 0.2
    assert 0 < run.cpu_s < run.wall_s
    assert run.memory > MB


@linux
@pytest.mark.timed
def test_memory_is_that_of_all_processes() -> None:
    program = """
import subprocess, sys, time
held = bytearray(b"1") * 60_000_000
if len(sys.argv) == 1:
    subprocess.run([sys.executable, "-c", sys.orig_argv[2], "child"], check=True)
time.sleep(0.3)
"""
    told = from_a_small_process(program)
    assert told["failure"] is None
    assert 120 * MB < told["own_memory"] <= told["memory"] < 220 * MB


@pytest.mark.parametrize(
    ("program", "limits", "why"),
    [
        ("import time; time.sleep(60)", {"limit_s": 0.2}, "stopped after 0 s"),
        ("import sys; sys.exit('no `/some/where/x.json`')", {}, "status 1: no `x.json`"),
        ("print('half a line'); import os; os.abort()", {}, "SIGABRT"),
    ],
)
def test_how_a_process_fails_is_told(program: str, limits: dict[str, Any], why: str) -> None:
    run = python(program, **limits)
    assert run.failure is not None
    assert run.failure.startswith(why)
    assert run.wall_s < 30


@linux
def test_a_process_that_takes_too_much_memory_is_stopped() -> None:
    program = "import time; held = bytearray(b'1') * 150_000_000; time.sleep(60)"
    run = python(program, limit_memory=100 * MB)
    assert run.failure is not None
    assert run.failure.startswith("stopped at 0.")
    assert run.wall_s < 30


SMALL = {
    "schemaVersion": 1,
    "traceEvents": [
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#7", "pid": 1, "tid": 1,
         "ts": 10.125, "dur": 90.5, "args": {"External id": 1}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 20.001,
         "dur": 30, "args": {"External id": 2, "Sequence number": 5, "Input Dims": [[2, 2], []]}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
         "ts": 30, "dur": 10, "args": {"correlation": 9}},
        {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 45, "dur": 20,
         "args": {"correlation": 9, "device": 0, "stream": 7}},
        {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 40, "pid": 1, "tid": 1, "ts": 30},
        {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 40, "pid": 0, "tid": 7, "ts": 45},
    ],
}  # fmt: skip


@pytest.fixture
def large(tmp_path: Path) -> Path:
    (tmp_path / "small.json").write_text(json.dumps(SMALL), "utf-8")
    scale(tmp_path / "small.json", tmp_path / "large.json", 20_000)
    return tmp_path / "large.json"


def test_copies_of_a_trace_have_their_own_ids(large: Path) -> None:
    document = json.loads(large.read_text("utf-8"))
    events = document["traceEvents"]
    copies = sum(event["name"] == "aten::mm" for event in events)
    assert copies > 10
    assert sum(event["ph"] == "M" for event in events) == 1
    assert document["schemaVersion"] == 1
    for name, times in (("External id", 1), ("correlation", 2), ("Sequence number", 1)):
        found = Counter(e["args"][name] for e in events if name in e.get("args", {}))
        assert set(found.values()) <= {times, 1}
        assert len(found) >= copies
    flows = Counter(event["id"] for event in events if event["ph"] in "sf")
    assert set(flows.values()) <= {2, 1}
    steps = [event for event in events if event["name"].startswith("ProfilerStep#")]
    assert [step["name"] for step in steps] == [f"ProfilerStep#{7 + n}" for n in range(len(steps))]
    assert [step["ts"] for step in steps] == [
        pytest.approx(10.125 + n * 1090.5) for n in range(len(steps))
    ]


def test_links_stay_within_a_copy(large: Path) -> None:
    trace = selftime.load(large, cache=False)
    assert isinstance(trace, selftime.Trace)
    kernels = trace.slices.filter(trace.slices["category"].cast(str) == "kernel")
    calls = trace.slices[kernels["launch"].to_list()]
    assert kernels.height > 10
    assert (kernels["start"] - calls["start"]).unique().to_list() == [15_000]


def test_readers_are_compared_within_a_round() -> None:
    def run(wall_s: float, failure: str | None = None) -> Measured:
        return Measured(wall_s, wall_s, 10 * MB, None, failure)

    samples: dict[str, list[Measured | None]] = {
        OPENED: [run(1.0), run(2.0), run(4.0)],
        "peer": [run(10.0), run(20.0), None],
    }
    found = row("peer", Reader(("peer",), "reads"), samples)
    assert found["x_opened"] == 10
    assert found["wall_s"] == 15
    assert found["runs"] == 2
    broken = row("peer", Reader(("peer",), "reads"), {**samples, "peer": [run(1.0, "status 1")]})
    assert broken["failure"] == "status 1"
    assert "x_opened" not in broken


def test_every_reader_is_first_in_some_round() -> None:
    names = ["a", "b", "c"]
    orders = [rotated(names, turn) for turn in range(4)]
    assert [order[0] for order in orders] == ["a", "b", "c", "a"]
    assert all(sorted(order) == names for order in orders)


def test_answers_that_fail_are_told() -> None:
    run = Measured(1.0, 1.0, 1, None, None, {"failed": {"overlap": "IndexError: none"}})
    assert partly([run]) == "overlap: IndexError: none"
    assert partly([]) is None


def test_the_interval_of_a_median_is_that_of_the_sign_test() -> None:
    """Tables of it: of 15 values the 4th to the 12th, of 25 the 8th to the 18th."""
    assert interval(range(1, 16)) == (4, 12)
    assert interval(range(1, 26)) == (8, 18)
    assert interval([3.0, 1.0, 2.0]) == (1.0, 3.0)
    assert middle([None, 3.0, 1.0]) == 2.0
    assert middle([None]) is None


@pytest.mark.parametrize(
    ("low", "high", "met"), [(0.99, 1.01, True), (1.03, 1.2, False), (0.98, 1.3, None)]
)
def test_a_verdict_is_computed(low: float, high: float, met: bool | None) -> None:
    columns = [Column("program", "program")]
    told = {"program": "small", "flags": "none", "x_torch": 1.0, "low": low, "high": high}
    found = table("recording", "steps", "Steps", columns, [told])
    goal = next(goal for goal in GOALS if goal.part == "recording")
    assert [verdict.met for verdict in verdicts(goal, [found])] == [met]


def opened(**rows: dict[str, Any]) -> dict[str, Any]:
    named = [{"reader": name.replace("_", " "), **figures} for name, figures in rows.items()]
    about = {"kind": "cpu", "megabytes": 1000, "bytes": 1000 * MB}
    return table("open", "cpu-1000", "Opening", [Column("reader", "reader")], named, about)


def test_goals_of_a_gigabyte_are_read_from_tables_of_a_gigabyte() -> None:
    found = opened(
        selftime={"memory": 900 * MB},
        simdjson={"x_opened": 0.4},
        HolisticTraceAnalysis={"x_answered": 19.0},
        Perfetto={"failure": "status 1: out of memory"},
    )
    told = {
        goal.text: [verdict.met for verdict in verdicts(goal, [found])]
        for goal in GOALS
        if goal.part == "open"
    }
    assert told["opening takes at most twice what simdjson needs to parse"] == [False]
    assert told["opening takes at most 1.0 times the file's size in memory"] == [True]
    assert told["at least 20 times as fast as HTA, breakdowns and all"] == [False]
    assert told["at least 4 times as fast as Perfetto"] == [None]
    smaller = {**found, "about": {**found["about"], "megabytes": 100}}
    assert not any(verdicts(goal, [smaller]) for goal in GOALS)


@pytest.mark.parametrize(("last", "met"), [(5.2, True), (9.0, False)])
def test_the_largest_trace_must_not_hide_behind_the_smallest(last: float, met: bool) -> None:
    loads = {10: 1.0, 100: 1.0, 1000: 1.0, 5000: last}
    rows: list[dict[str, Any]] = []
    for size, load in loads.items():
        run = Measured(load, load, MB, None, None, {"load_s": load, "events": 10})
        rows.append(grown_row(size, size * MB, [run], rows[-1] if rows else None))
    found = table("sizes", "cpu", "Each megabyte", [], rows, {"kind": "cpu"})
    goal = next(goal for goal in GOALS if goal.part == "sizes")
    assert [verdict.met for verdict in verdicts(goal, [found])] == [met]


def test_a_part_is_told_what_it_understands() -> None:
    given = Namespace(sizes=["10", "100"], kinds=None, events=["10000"], n=["2"])
    assert words("open", given) == ["--sizes", "10", "100", "-n", "2"]
    assert words("views", given) == ["--sizes", "10", "100"]
    assert words("averages", given) == ["--events", "10000", "-n", "2"]
    assert words("import", given) == ["-n", "2"]


def test_the_time_of_a_frame_is_all_that_its_thread_did_since_the_last_one() -> None:
    def event(name: str, begin: int, took: int, cpu: int, thread: int = 1) -> dict[str, Any]:
        return {
            "name": name, "ph": "X", "pid": 7, "tid": thread, "ts": begin, "dur": took, "tdur": cpu
        }  # fmt: skip

    calls = [("FireAnimationFrame", at, 5, 5) for at in (101, 111, 301, 501, 511)]
    tasks = [("RunTask", 100, 50, 40), ("RunTask", 200, 90, 3000), ("RunTask", 300, 50, 1000)]
    tasks += [("RunTask", 400, 90, 2000), ("RunTask", 500, 50, 7000)]
    other = event("RunTask", 410, 50, 9000, thread=2)
    recorded = [*(event(*one) for one in calls + tasks), other]
    # the frame at 300 has no call but that of the one who measures
    assert cpu_of_frames(recorded) == [9.0]
    assert cpu_of_frames(recorded, others=0) == [4.0, 9.0]


def test_a_table_survives_being_kept(tmp_path: Path) -> None:
    columns = [Column("reader", "reader"), Column("wall_s", "time", "s"), Column("none", "none")]
    found = table("open", "cpu-10", "10 MB", columns, [{"reader": "a|b", "wall_s": 1.234}])
    keep(found, tmp_path)
    assert kept(tmp_path) == [found]
    assert markdown(found) == "| reader | time |\n|---|---:|\n| a\\|b | 1.23 s |\n"
    assert "a\\|b | 1.23 s" in page([found])


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", ""),
        (0.01234, "s", "0.0123 s"),
        (0.0000971, "s", "0.0971 ms"),
        (123.4, "ms", "123 ms"),
        (1234567, "count", "1,234,567"),
        (12.34e9, "bytes", "12.34 GB"),
        (12.34e6, "bytes", "12 MB"),
        (20.04, "x", "20 x"),
    ],
)
def test_figures_are_written_with_three_digits(value: Any, unit: str, text: str) -> None:
    assert written(value, unit) == text


def test_the_page_tells_what_was_kept() -> None:
    assert PAGE.read_text("utf-8") == page(kept()), "write it: python benchmarks/bench.py page"


def test_peers_are_pinned() -> None:
    assert all("==" in package for packages in PINNED.values() for package in packages)
