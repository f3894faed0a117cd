"""`selftime cut`: the part that was asked for, whole, with the same answers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import msgspec
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from tests.ingest.rough.case import annotation, document, kernel, launch, op
from typer.testing import CliRunner

from selftime.cli import app
from selftime.ingest.load import load
from selftime.ingest.text import trace_parsing as chunking
from selftime.rewrite.event_cutting import FlowArrowBuffer
from selftime.trace import Trace

RUN: Final = CliRunner()
Event = dict[str, Any]


def read(path: Path) -> Trace:
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


def cut(path: Path, *words: str) -> tuple[dict[str, Any], Path]:
    """What the command tells, and where the part lies."""
    part = path.parent / "part.json"
    done = RUN.invoke(app, ["cut", str(path), "-o", str(part), "--format", "json", *words])
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told, part


def events_in(path: Path) -> list[Event]:
    found: list[Event] = msgspec.json.decode(path.read_bytes())["traceEvents"]
    return found


def in_order(path: Path) -> list[str]:
    """All events, in an order that is not the file's: the ends of arrows wait for each other."""
    return sorted(json.dumps(one, sort_keys=True) for one in events_in(path))


def steps(count: int) -> list[Event]:
    """So many steps, each of three operators whose kernels run one step later."""
    made: list[Event] = []
    for number in range(3 * count):
        at = 100 * (number // 3) + 20 * (number % 3)
        if number % 3 == 0:
            made.append(annotation(number // 3, ts=1000 + at, dur=99))
        made += [op(number, ts=1002 + at), launch(number, ts=1003 + at)]
        made.append(kernel(number, ts=1104 + at))
    return made


def arrow(number: int, at: int) -> list[Event]:
    """From the launch to its kernel."""
    common = {"cat": "ac2g", "name": "ac2g", "id": number}
    return [
        {"ph": "s", "pid": 7, "tid": 7, "ts": 1003 + at, **common},
        {"ph": "f", "pid": 0, "tid": 7, "ts": 1104 + at, "bp": "e", **common},
    ]


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    made = steps(4)
    made += [one for n in range(12) for one in arrow(n, 100 * (n // 3) + 20 * (n % 3))]
    made += [
        {"ph": "X", "cat": "python_function", "name": "train.py(3): main", "pid": 7, "tid": 7,
         "ts": 990, "dur": 900, "args": {"Python id": 1}},
        {"ph": "M", "name": "process_name", "pid": 7, "tid": 0, "ts": 0, "args": {"name": "py"}},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "ts": 0,
         "args": {"name": "stream 7 "}},
        {"ph": "i", "name": "mark", "pid": 7, "tid": 7, "ts": 1150, "s": "t"},
        {"ph": "i", "name": "other mark", "pid": 7, "tid": 7, "ts": 1350, "s": "t"},
    ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_bytes(document(made, selftime={"format": "selftime.facts/1", **FACTS}))
    return path


FACTS: Final = {
    "host": "here",
    "lines": {
        "files": ["a.py"], "functions": ["f"], "id": list(range(1, 13)), "file": [0] * 12,
        "line": list(range(1, 13)), "function": [0] * 12, "how": [0] * 12,
    },
    "ops": {"id": [1, 5], "overload": ["a", "b"], "async": [4, 12],
            "flops": {"id": [4, 1], "value": [8, 9]}},
}  # fmt: skip


def test_work_counts_to_the_step_that_launched_it(trace: Path) -> None:
    told, part = cut(trace, "--steps", "1")
    names = [one["name"] for one in events_in(part) if one["ph"] == "X"]
    assert told["steps"] == [1]
    assert sorted(names) == sorted(
        ["ProfilerStep#1", "train.py(3): main", *["cudaLaunchKernel"] * 3]
        + [f"{kind}{number}" for kind in ("op", "kernel") for number in (3, 4, 5)]
    )


def test_frames_around_are_clipped(trace: Path) -> None:
    told, part = cut(trace, "--steps", "1:2")
    [frame] = [one for one in events_in(part) if one.get("cat") == "python_function"]
    assert (frame["ts"], frame["dur"]) == (1100, 199)
    assert frame["args"] == {"Python id": 1}
    assert told["clipped"] == 1


def test_arrows_marks_and_labels_of_the_part(trace: Path) -> None:
    _, part = cut(trace, "--steps", "1")
    found = events_in(part)
    arrows = Counter(one["id"] for one in found if one["ph"] in "sf")
    assert arrows == {3: 2, 4: 2, 5: 2}
    assert [one["name"] for one in found if one["ph"] == "i"] == ["mark"]
    assert {one["name"] for one in found if one["ph"] == "M"} == {"process_name", "thread_name"}


def test_facts_are_those_of_the_operators_that_are_left(trace: Path) -> None:
    _, part = cut(trace, "--steps", "1")
    facts = read(part).facts
    assert facts["host"] == "here"
    assert facts["lines"]["id"] == facts["lines"]["line"] == [4, 5, 6]
    assert facts["ops"] == {
        "id": [5], "overload": ["b"], "async": [4], "flops": {"id": [4], "value": [8]}
    }  # fmt: skip
    executing = read(part).lines.filter(pl.col("how") == "stack")
    assert set(executing["line"]) == {4, 5, 6}


def test_a_stretch_of_time_leaves_out_the_marks_of_steps_that_are_not_whole(trace: Path) -> None:
    told, part = cut(trace, "--time", "115us:0.25ms")
    names = [one["name"] for one in events_in(part) if one.get("cat") == "user_annotation"]
    assert names == []
    assert (told["begin_ns"], told["end_ns"], told["steps"]) == (115_000, 250_000, [])


def test_categories(trace: Path) -> None:
    _, part = cut(trace, "--category", "Kernel,cpu_op")
    kinds = {one["cat"] for one in events_in(part) if one["ph"] == "X"}
    assert kinds == {"kernel", "cpu_op"}
    _, part = cut(trace, "--without", "python_function")
    kinds = {one["cat"] for one in events_in(part) if one["ph"] == "X"}
    assert kinds == {"kernel", "cpu_op", "cuda_runtime", "user_annotation"}


def test_all_of_a_trace_is_all_of_it(trace: Path) -> None:
    told, part = cut(trace)
    assert told["events"] == told["events_before"]
    assert told["moved"] == told["clipped"] == 0
    assert in_order(part) == in_order(trace)
    same_tables(read(part), read(trace))


def same_tables(part: Trace, whole: Trace) -> None:
    for name, table in whole.tables().items():
        if name != "events":
            assert_frame_equal(part.tables()[name], table, categorical_as_str=True)


def crossing() -> list[Event]:
    """Kernels on one stream that cross, and an operator within one that crosses another."""
    return [
        op(0, ts=0, dur=10, name="first"),
        op(1, ts=5, dur=10, name="second"),
        op(2, ts=6, dur=8, name="inner"),
        kernel(0, ts=20, dur=10), kernel(1, ts=25, dur=10), kernel(2, ts=28, dur=40),
        kernel(3, ts=70, dur=1),
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": 7, "args": {"name": "stream 7 "}},
        {"ph": "M", "name": "thread_sort_index", "pid": 0, "tid": 7, "args": {"sort_index": 7}},
    ]  # fmt: skip


def test_what_crosses_goes_to_threads_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(document(crossing()))
    told, part = cut(path)
    found = events_in(part)
    assert told["moved"] == 4
    of = {one["name"]: one["tid"] for one in found if one["ph"] == "X"}
    assert of["kernel0"] == of["kernel3"] == 7
    assert len({of["kernel0"], of["kernel1"], of["kernel2"]}) == 3
    assert of["second"] == of["inner"] != of["first"]
    names = [one["args"]["name"] for one in found if one["name"] == "thread_name"]
    assert sorted(names) == ["stream 7 ", "stream 7 (2)", "stream 7 (3)", "thread 7 (2)"]
    same_tables(read(part), read(path))


def test_a_cut_of_a_cut_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(document(crossing()))
    _, part = cut(path)
    again = tmp_path / "again"
    again.mkdir()
    (again / "trace.json").write_bytes(part.read_bytes())
    told, second = cut(again / "trace.json")
    same_tables(read(second), read(path))
    assert told["events"] == told["events_before"]
    assert in_order(second) == in_order(part)


def test_a_thread_that_is_added_later_is_not_one_that_was_added_before(tmp_path: Path) -> None:
    """Of two cut threads, one no longer needs another when less of it is cut again."""
    two = [op(n, ts=10 * n, dur=15, tid=tid) for n, tid in ((1, 7), (2, 7), (3, 8), (4, 8))]
    path = tmp_path / "trace.json"
    path.write_bytes(document([{**two[0], "cat": "cuda_runtime"}, *two[1:]]))
    _, part = cut(path)
    again = tmp_path / "again"
    again.mkdir()
    (again / "trace.json").write_bytes(part.read_bytes())
    _, second = cut(again / "trace.json", "--category", "cpu_op")
    assert threads_of(read(path)) == {"op1": "7", "op2": "7", "op3": "8", "op4": "8"}
    assert threads_of(read(second)) == {"op2": "7", "op3": "8", "op4": "8"}


def threads_of(trace: Trace) -> dict[str, str]:
    tids = trace.tracks["tid"].gather(trace.slices["track"])
    return dict(zip(trace.slices["name"].cast(pl.String), tids, strict=True))


@pytest.mark.parametrize("process", ["--5", "-", "9" * 5_000, "²", "a\nb"])
def test_processes_whose_names_are_nearly_numbers(process: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(document([op(n, ts=n, dur=5, pid=process) for n in range(3)]))
    _, part = cut(path)
    assert read(part).slices.height == 3


def test_an_arrow_of_many_begins_costs_no_more_each() -> None:
    arrows, group = FlowArrowBuffer(), ("1", b"1")
    assert [list(arrows.add_point(group, "s", b"{}")) for _ in range(3)] == [[], [], []]
    assert list(arrows.add_point(group, "f", b"{}")) == [b"{}"] * 4
    assert {len(seen) for seen in arrows._seen.values()} == {2}


def test_chunks_of_any_size_give_the_same(trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, part = cut(trace, "--steps", "1:2")
    whole = in_order(part)
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", 300)
    _, part = cut(trace, "--steps", "1:2")
    assert in_order(part) == whole


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--steps", "7"], "no such step; its steps are 0 to 3"),
        (["--steps", "one"], "`one` is not a step number"),
        (["--time", "1s"], "has no end"),
        (["--time", "1s:2parsec"], "`2parsec` is not a time"),
        (["--time", "2us:1us"], "before it begins"),
        (["--time", "2s:"], "the trace ends"),
        (["--steps", "1", "--time", "1s:"], "give one of them"),
        (["--category", "kernels"], "no category `kernels`; it has cpu_op, cuda_runtime"),
    ],
)
def test_what_cannot_be_cut_is_one_sentence(trace: Path, words: list[str], told: str) -> None:
    output = trace.parent / "part.json"
    done = RUN.invoke(app, ["cut", str(trace), "-o", str(output), *words])
    assert done.exit_code == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in trace.parent.iterdir()] == ["trace.json"]
