"""A trace as speedscope reads it, by the rules of its file format."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from tests.reports.export.drawn import REAL, everything, traces

from selftime.ingest.load import load
from selftime.reports.export import export
from selftime.testing import sketch
from selftime.trace import Trace


def exported(trace: Trace, path: Path) -> dict[str, Any]:
    export(trace, path, to="speedscope")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def slices_of(document: dict[str, Any]) -> Counter[tuple[str, int, int]]:
    """Name, begin and end of what a valid document holds; fails where it is not valid.

    A frame is closed as the last that was opened, times never go back, and nothing stays open.
    """
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    assert set(document) == {
        "$schema",
        "exporter",
        "name",
        "activeProfileIndex",
        "shared",
        "profiles",
    }
    frames = document["shared"]["frames"]
    assert all({"name"} <= set(one) <= {"name", "file", "line"} for one in frames)
    assert 0 <= document["activeProfileIndex"] < max(1, len(document["profiles"]))
    found: Counter[tuple[str, int, int]] = Counter()
    for profile in document["profiles"]:
        assert set(profile) == {"type", "name", "unit", "startValue", "endValue", "events"}
        assert (profile["type"], profile["unit"]) == ("evented", "nanoseconds")
        stack: list[tuple[int, int]] = []
        last = profile["startValue"]
        for event in profile["events"]:
            assert last <= event["at"] <= profile["endValue"]
            last = event["at"]
            if event["type"] == "O":
                stack.append((event["frame"], last))
                continue
            assert event["type"] == "C"
            frame, begin = stack.pop()
            assert frame == event["frame"]
            found[frames[frame]["name"], begin, last] += 1
        assert stack == []
    return found


def expected(trace: Trace) -> Counter[tuple[str, int, int]]:
    known = trace.slices.drop_nulls("duration")
    return Counter(
        (name, start, start + duration)
        for name, start, duration in known.select("name", "start", "duration").iter_rows()
    )


def test_nothing_recorded_is_a_valid_file(tmp_path: Path) -> None:
    assert slices_of(exported(Trace(), tmp_path / "a.json")) == {}


def test_a_thing_of_every_kind(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    assert slices_of(exported(trace, tmp_path / "a.json")) == expected(trace)


def test_it_says_what_it_leaves_out(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    assert export(trace, tmp_path / "a.json", to="speedscope").left_out == {
        "slices whose end is not known": 1,
        "samples of counters": 8,
        "allocations": 3,
        "marks": 1,
    }


def test_frames_have_their_file_and_line(tmp_path: Path) -> None:
    trace = sketch("python 1 | mm\nm = train.py(3): main")
    assert exported(trace, tmp_path / "a.json")["shared"]["frames"] == [
        {"name": "train.py(3): main", "file": "train.py", "line": 3}
    ]


def test_each_thread_and_stream_has_its_profile(tmp_path: Path) -> None:
    trace = sketch("cpu 1 | aa bb\ncpu 2 | c\ngpu 7 | dddd\ngpu 7 |   eeee")
    names = [profile["name"] for profile in exported(trace, tmp_path / "a.json")["profiles"]]
    assert sorted(names) == ["1", "2", "7", "7 (2)"]


@given(traces())
def test_drawn_traces_are_whole(tmp_path_factory: pytest.TempPathFactory, trace: Trace) -> None:
    document = exported(trace, tmp_path_factory.mktemp("drawn") / "a.json")
    assert slices_of(document) == expected(trace)


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", REAL)
def test_a_real_trace_is_whole(name: str, real_traces: Path, tmp_path: Path) -> None:
    trace = load(real_traces / f"{name}.json.gz")
    assert isinstance(trace, Trace)
    assert slices_of(exported(trace, tmp_path / "a.json")) == expected(trace)
