"""A kill loses at most the last second of a ledger: the segment in progress is written, too."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from selftime.capture.ledger import activities
from selftime.capture.ledger import ledger as ledger_module
from selftime.capture.ledger.file import ended_status, write_end
from selftime.capture.ledger.ledger import Ledger
from selftime.capture.ledger.stacks import Activity
from selftime.ingest.ledger import read_ledger
from selftime.run import Run

MS = 1_000_000
IMPORTING = Activity("imports", "numpy", "/a.py", 1, "main")
COMPUTING = Activity("program", "", "/a.py", 7, "main")


class Clock:
    """The ledger's clock, told by the test."""

    def __init__(self) -> None:
        self.ms = 1_000

    def __call__(self) -> int:
        return self.ms * MS


@contextmanager
def ledger_with_clock(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[tuple[Ledger, Clock]]:
    clock = Clock()
    for module in (ledger_module, activities):
        patch.setattr(module, "perf_counter_ns", clock)
    ledger = Ledger(folder, process_start=900 * MS)
    ledger.is_written = True
    yield ledger, clock
    ledger.file.close()


def read(ledger: Ledger) -> Run:
    assert ledger.file.path is not None
    return read_ledger(ledger.file.path.read_bytes(), str(ledger.file.path))


def test_a_long_setup_is_written_while_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_with_clock(tmp_path, monkeypatch) as (ledger, clock):
        for second in range(1, 6):
            ledger.add_reading(ledger.segment, IMPORTING if second < 3 else COMPUTING, 1_000 * MS)
            clock.ms += 1_000
            ledger.flush()
        run = read(ledger)
    assert not run.is_whole
    assert run.wall_ns == 5_100 * MS
    assert run.segments.select("start", "duration", "kind").rows() == [(100 * MS, 5_000 * MS, None)]
    assert run.readings.select("part", "line", "duration", "count").rows() == [
        ("imports", 1, 2_000 * MS, 2),
        ("program", 7, 3_000 * MS, 3),
    ]


def test_what_is_being_timed_is_written_as_far_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_with_clock(tmp_path, monkeypatch) as (ledger, clock):
        ledger.end_segment(ledger.segment + 500 * MS, "training", is_usual=True)
        clock.ms = 2_000
        ledger.activities.enter("data_wait")
        clock.ms = 5_000
        ledger.flush()
        run = read(ledger)
    assert run.segments["kind"].to_list() == ["training", None]
    assert run.segments["duration"].to_list() == [500 * MS, 3_500 * MS]
    assert run.segments["data_wait"].to_list() == [0, 3_000 * MS]


def test_a_segment_that_ended_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_with_clock(tmp_path, monkeypatch) as (ledger, clock):
        ledger.add_reading(ledger.segment, COMPUTING, 2_000 * MS)
        clock.ms = 3_000
        ledger.flush()
        ledger.begin_first_step(clock())
        clock.ms = 3_100
        ledger.end_segment(clock(), "training", is_usual=True)
        ledger.finish("ended")
        run = read(ledger)
    assert run.is_whole
    assert run.segments["duration"].to_list() == [2_000 * MS, 100 * MS, 0]
    assert run.readings["duration"].to_list() == [2_000 * MS]


def test_a_short_step_in_progress_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_with_clock(tmp_path, monkeypatch) as (ledger, clock):
        clock.ms = 1_020
        ledger.end_segment(clock(), "training", is_usual=True)
        clock.ms = 1_040
        ledger.flush()
        assert ledger.file.path is not None
        assert b'"open"' not in ledger.file.path.read_bytes()


HEAD = {"format": "selftime.ledger/1", "process": 7, "process_began": 1_000, "began": 1_500}


def written(folder: Path, *lines: dict[str, Any], tail: bytes = b"") -> Path:
    path = folder / "a.run.jsonl"
    text = b"".join(json.dumps(line).encode() + b"\n" for line in (HEAD, *lines))
    path.write_bytes(text + tail)
    return path


@pytest.mark.parametrize("tail", [b"", b'{"segments":{"st'])
def test_the_end_that_another_process_saw_ends_the_last_segment(
    tmp_path: Path, tail: bytes
) -> None:
    step = {"segments": {"start": [1_500, 2_000], "duration": [500, 100], "kind": [-1, 0]}}
    path = written(tmp_path, {"kind": 0, "name": "training"}, step, tail=tail)
    assert ended_status(path) is None
    write_end(path, "ended by SIGKILL", 4_100)
    run = read_ledger(path.read_bytes(), str(path))
    assert ended_status(path) == "ended by SIGKILL"
    assert run.is_whole
    assert run.facts["status"] == "ended by SIGKILL"
    assert run.wall_ns == 3_100
    assert run.segments["kind"].to_list() == [None, "training", None]


@pytest.mark.parametrize(
    "line",
    [
        {"open": 1_500, "until": "no", "kind": -1},
        {"open": 1_500, "until": 1_400, "kind": -1},
        {"open": 9, "until": 2_000, "kind": -1},
        {"open": 1_500},
    ],
)
def test_a_damaged_line_of_a_segment_in_progress_is_left_out(
    tmp_path: Path, line: dict[str, Any]
) -> None:
    path = written(tmp_path, line)
    assert read_ledger(path.read_bytes(), str(path)).segments.height == 0


def test_times_of_a_segment_in_progress_are_at_most_its_own(tmp_path: Path) -> None:
    line = {"open": 1_500, "until": 2_500, "kind": -1, "readings": [["no"], [0, 1], 3]}
    path = written(tmp_path, line | {"counted": {"compile": 900, "data_wait": 400, "x": "no"}})
    run = read_ledger(path.read_bytes(), str(path))
    assert run.segments.select("duration", "compile", "data_wait").rows() == [(1_000, 900, 100)]


def test_a_long_phase_has_its_name_while_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger_with_clock(tmp_path, monkeypatch) as (ledger, clock):
        ledger.kinds.number("rollout")
        ledger.begin_uncounted_steps("rollout")
        clock.ms += 2_000
        ledger.flush()
        run = read(ledger)
    assert run.segments["kind"].to_list() == ["rollout"]
