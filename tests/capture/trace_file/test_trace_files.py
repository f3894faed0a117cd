import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from selftime.capture.trace_file import trace_files
from selftime.errors import RecordingError

if TYPE_CHECKING:
    from tests.capture.conftest import ReadTrace


def body(folder: Path, events: int = 3) -> Path:
    path = folder / "body.json"
    rows = [{"name": f"event {number}"} for number in range(events)]
    path.write_text(json.dumps({"traceEvents": rows, "traceName": str(path)}) + "\n")
    return path


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
@pytest.mark.parametrize("events", [0, 100_000])
def test_facts_are_added_to_the_recorders_text(
    tmp_path: Path, read_trace: "ReadTrace", name: str, events: int
) -> None:
    trace_files.write_trace_with_facts(
        body(tmp_path, events), tmp_path / name, {"a": [1, None], "b": "ü"}
    )
    trace = read_trace(tmp_path / name)

    assert trace["selftime"] == {"a": [1, None], "b": "ü"}
    assert len(trace["traceEvents"]) == events
    assert trace["traceName"] == str(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["body.json", name]


def test_numbers_that_json_lacks_are_unknown(tmp_path: Path, read_trace: "ReadTrace") -> None:
    facts = {"a": float("nan"), "b": [float("inf")], "c": {"d": 0.5}}
    trace_files.write_trace_with_facts(body(tmp_path), tmp_path / "trace.json", facts)

    assert read_trace(tmp_path / "trace.json")["selftime"] == {
        "a": None,
        "b": [None],
        "c": {"d": 0.5},
    }


def test_a_text_that_ends_early_is_not_written(tmp_path: Path) -> None:
    path = body(tmp_path)
    path.write_text(path.read_text()[:40])

    with pytest.raises(RecordingError, match="ends early"):
        trace_files.write_trace_with_facts(path, tmp_path / "trace.json", {})
    assert [path.name for path in tmp_path.iterdir()] == ["body.json"]


def test_a_name_that_is_taken_gets_a_number(tmp_path: Path) -> None:
    name = "host_1_time.pt.trace.json.gz"
    (tmp_path / name).touch()
    second = trace_files.unused_trace_path(tmp_path, name)
    second.touch()

    assert second.name == "host_1_time-1.pt.trace.json.gz"
    assert trace_files.unused_trace_path(tmp_path, name).name == "host_1_time-2.pt.trace.json.gz"


def test_a_recordings_name_tells_host_rank_process_and_time() -> None:
    assert "_rank3_" in trace_files.trace_file_name(3)
    assert "rank" not in trace_files.trace_file_name(None)
    assert trace_files.trace_file_name(None).endswith(".pt.trace.json.gz")
