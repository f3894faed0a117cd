"""The file of a run's ledger: what is read of a whole one, of one cut off, of a damaged one."""

import json
from pathlib import Path
from typing import Any

import pytest

import selftime
from selftime.analysis.run.parts import run_parts
from selftime.errors import UnreadableTrace
from selftime.ingest.ledger import ledger_beside, read_ledger
from selftime.run import Run
from selftime.trace import Job, Trace

HEAD = {"format": "selftime.ledger/1", "process": 7, "process_began": 1_000, "began": 1_500}


def read(*lines: dict[str, Any], head: dict[str, Any] = HEAD, tail: bytes = b"") -> Run:
    text = b"".join(json.dumps(line).encode() + b"\n" for line in (head, *lines))
    return read_ledger(text + tail, "a.run.jsonl")


def segments(**columns: list[int]) -> dict[str, Any]:
    return {"segments": columns}


def test_a_ledger_without_segments() -> None:
    run = read()
    assert run.segments.height == run.readings.height == 0
    assert run.wall_ns == run.startup_ns == 500
    assert not run.is_whole


def test_segments_keep_their_order_kinds_and_counts() -> None:
    run = read(
        {"kind": 0, "name": "training"},
        segments(start=[1_500, 2_000], duration=[500, 100], kind=[-1, 0], data_wait=[0, 30]),
        segments(start=[2_100], duration=[40], kind=[-2]),
        {"end": 2_140, "status": "0"},
    )
    assert run.segments["start"].to_list() == [500, 1_000, 1_100]
    assert run.segments["kind"].to_list() == [None, "training", None]
    assert run.segments["data_wait"].to_list() == [0, 30, 0]
    assert run.wall_ns == 1_140
    assert run.is_whole
    assert run.facts == {"process": 7, "status": "0"}


def test_what_the_cpu_was_measured_to_do_is_read_from_the_end() -> None:
    told = {"threads": 2, "flops": {"float32": 1e11}, "copies": [[1048576, 2e10]]}
    run = read({"end": 2_140, "status": "ended", "cpu_peaks": told})
    assert run.cpu_peaks is not None
    assert run.cpu_peaks.as_json() == told
    assert run.facts["status"] == "ended"


@pytest.mark.parametrize(
    "told",
    [
        None,
        7,
        {},
        {"threads": 0, "flops": {}, "copies": []},
        {"threads": 1, "flops": {"float32": -1}, "copies": []},
        {"threads": 1, "flops": {}, "copies": [[1]]},
        {"threads": 1, "flops": {}, "copies": [["a", 1.0]]},
    ],
)
def test_a_cpu_that_was_not_measured_is_unknown(told: object) -> None:
    assert read({"end": 2_140, "status": "ended", "cpu_peaks": told}).cpu_peaks is None
    assert read({"end": 2_140, "status": "ended"}).cpu_peaks is None


def test_the_last_name_of_a_kind_counts_and_a_kind_without_one_is_no_step() -> None:
    """A loop that came before another one turned out to make the data of that one."""
    run = read(
        {"kind": 0, "name": "iteration"},
        segments(start=[1_500, 2_000, 2_100], duration=[500, 100, 90], kind=[-1, 0, 1]),
        {"kind": 1, "name": "iteration at a.py:7"},
        {"kind": 0, "name": None},
        {"kind": 1, "name": "iteration"},
    )
    assert run.segments["kind"].to_list() == [None, None, "iteration"]


def test_the_start_of_the_process_since_the_epoch() -> None:
    """The instant is known of the ledger's first line alone, on both clocks."""
    assert read(head={**HEAD, "clock": 1_900, "time": 5_000_000}).began_at == 5_000_000 - 900
    assert read().began_at is None
    assert read(head={**HEAD, "clock": "no", "time": 5}).began_at is None


def test_a_ledger_that_may_grow_has_no_end() -> None:
    assert read().may_grow
    assert not read({"end": 2_140, "status": "0"}).may_grow
    assert not Run().may_grow


def test_stacks_of_segments_that_are_one_phase_are_of_that_phase() -> None:
    run = read(
        {"kind": 0, "name": "inference"},
        {"kind": 1, "name": "training"},
        {"kind": 2, "name": "rollout"},
        {"activity": 0, "part": "program", "file": "a.py", "line": 3},
        {"superseded": {"start": 2_000, "end": 2_200, "by": 2, "is_phase": True}},
        {"segment": 2_100, "readings": [[0, 90, 2]]},
        segments(start=[2_000, 2_100, 2_200], duration=[100, 100, 50], kind=[0, 0, 1]),
    )
    assert run.segments["kind"].to_list() == ["rollout", "training"]
    assert run.readings.select("segment", "line", "duration").rows() == [(0, 3, 90)]


def test_readings_name_part_and_line() -> None:
    run = read(
        {"activity": 0, "part": "imports", "what": "torch"},
        {"activity": 1, "part": "program", "file": "/a.py", "line": 3, "function": "main"},
        segments(start=[1_500], duration=[500], kind=[-1]),
        {"segment": 1_500, "readings": [[0, 300, 3], [1, 100, 1], [9, 1, 1], "no"]},
    )
    assert run.readings.select("part", "what", "file", "line", "duration").rows() == [
        ("imports", "torch", None, None, 300),
        ("program", None, "/a.py", 3, 100),
    ]


def test_samples_are_of_the_segment_of_their_instant() -> None:
    run = read(
        {"activity": 0, "part": "program", "file": "/a.py", "line": 3, "function": "main"},
        {"activity": 1, "part": "data_wait"},
        segments(start=[1_500, 2_000], duration=[500, 500], kind=[-1, 0]),
        {"samples": {"at": [2_001, 2_400, 9_999], "activity": [0, 1, 0]}},
        {"samples": {"at": [1_600, 2_100], "activity": [1, 7]}},
        {"samples": {"at": [1_600], "activity": []}},
        {"samples": "none"},
    )
    assert run.samples.rows() == [
        (1, "program", "/a.py", 3, "main"),
        (1, "data_wait", None, None, None),
        (0, "data_wait", None, None, None),
    ]


def test_a_segment_whose_readings_have_no_time() -> None:
    run = read(
        {"activity": 0, "part": "imports", "what": "torch"},
        segments(start=[1_500], duration=[500], kind=[-1]),
        {"segment": 1_500, "readings": [[0, 0, 3]]},
    )
    assert run_parts(run)["duration"].sum() == run.wall_ns


def test_a_compilation_and_its_reason() -> None:
    told = {"start": 1_700, "duration": 50, "function": "f", "reason": "x grew"}
    run = read({"compilation": told}, {"compilation": {"line": "no"}}, {"compilation": 1})
    assert run.compilations.select("start", "duration", "reason").rows() == [
        (700, 50, "x grew"),
        (None, None, None),
    ]


def test_iterators_of_loaders() -> None:
    told = {"start": 1_700, "duration": 50, "workers": 2, "starts_workers": True}
    place = {"file": "/a.py", "line": 9, "function": "main"}
    damaged: list[dict[str, Any]] = [
        {"iterator": {**told, "workers": "2"}},
        {"iterator": {}},
        {"iterator": 1},
    ]
    run = read({"iterator": told | place | {"ahead": 8, "cpu": 30}}, {"iterator": told}, *damaged)
    assert run.iterators.rows() == [
        (700, 50, 2, True, "/a.py", 9, "main", 8, 30),
        (700, 50, 2, True, None, None, None, None, None),
    ]


def test_nodes_of_evaluations() -> None:
    damaged: list[dict[str, Any]] = [{"evaluation": {"start": 1, "nodes": "2"}}, {"evaluation": 3}]
    told = [{"evaluation": {"start": 1_700, "nodes": count}} for count in (40, 0)]
    assert read(*told, *damaged).evaluation_nodes == (40, 0)


@pytest.mark.parametrize("tail", [b'{"segments":{"sta', b"\xff\xfe", b"null\n[1]\n", b"\n\n"])
def test_what_a_killed_process_left_half_written_is_left_out(tail: bytes) -> None:
    run = read(segments(start=[1_500], duration=[500], kind=[-1]), tail=tail)
    assert run.segments.height == 1
    assert not run.is_whole


@pytest.mark.parametrize(
    "columns",
    [
        {"start": [1], "duration": [1, 2], "kind": [0]},
        {"start": [1.5], "duration": [1], "kind": [0]},
        {"start": [1 << 63], "duration": [1], "kind": [0]},
        {"start": [True], "duration": [1], "kind": [0]},
        {"start": [1], "duration": [1]},
    ],
)
def test_columns_that_do_not_fit_are_left_out(columns: dict[str, list[Any]]) -> None:
    assert read(segments(**columns)).segments.height == 0


def test_another_file_is_refused() -> None:
    with pytest.raises(UnreadableTrace, match="not the ledger"):
        read(head={"format": "other"})


def test_a_ledger_opens_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "any name"
    path.write_text(json.dumps(HEAD, separators=(",", ":")) + "\n")
    for _ in range(2):  # from the file, and not from a cache that has no runs
        trace = selftime.load(path)
        assert isinstance(trace, Trace)
        assert trace.run.source == str(path)
        assert trace.slices.height == 0


def test_a_ledger_outside_the_folder_of_its_trace_is_not_read(tmp_path: Path) -> None:
    runs, ledger = tmp_path / "runs", tmp_path / "other.run.jsonl"
    runs.mkdir()
    ledger.write_text(json.dumps(HEAD, separators=(",", ":")) + "\n")
    (runs / "a.run.jsonl").symlink_to(ledger)
    assert ledger_beside(str(runs / "a.json"), {"ledger": "a.run.jsonl"}).source == ""
    assert ledger_beside(str(tmp_path / "a.json"), {"ledger": "other.run.jsonl"}).source


def test_the_ledger_of_a_linked_trace_lies_beside_the_linked_file(tmp_path: Path) -> None:
    trace, ledger = tmp_path / "a.json", tmp_path / "a.run.jsonl"
    trace.write_text("{}")
    ledger.write_text(json.dumps(HEAD, separators=(",", ":")) + "\n")
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "a.json"
    link.symlink_to(trace)
    assert ledger_beside(str(link), {"ledger": "a.run.jsonl"}).source == str(ledger)


def test_a_folder_without_traces_opens_its_ledger(tmp_path: Path) -> None:
    (tmp_path / "a.run.jsonl").write_text(json.dumps(HEAD, separators=(",", ":")) + "\n")
    (tmp_path / "notes.txt").write_text("no")
    job = selftime.load(tmp_path)
    assert isinstance(job, Job)
    assert [Path(path).name for path in job.traces] == ["a.run.jsonl"]
