"""The trace of a slow step is read by its own path, and never as one of its folder."""

import json
from pathlib import Path

import fsspec
import pytest
from tests.ledgers import Step, ledger_text

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.ingest.trace_paths import trace_files
from selftime.scale import survey
from selftime.tensorboard.logdir_watch import TraceFileSearch
from selftime.trace import Job, Trace
from selftime.web.sources import TracesAtPaths

MAIN, SLOW = "h_1_2.pt.trace.json", "h_1_2.slow-step.pt.trace.json"


def document(name: str, **facts: object) -> str:
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 10, "dur": 5}
    return json.dumps({"schemaVersion": 1, "traceEvents": [event], "selftime": facts})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run's folder, as `selftime run` leaves it."""
    (tmp_path / MAIN).write_text(document("aten::mm", ledger="h_1_2.run.jsonl"))
    (tmp_path / SLOW).write_text(document("aten::copy_"))
    lines = ledger_text([Step(8), Step(120, recorded=True), Step(8)])
    (tmp_path / "h_1_2.run.jsonl").write_text(lines)
    return tmp_path


def test_a_folder_has_the_other_trace_alone(folder: Path) -> None:
    found = load(folder)
    assert isinstance(found, Job)
    assert list(found.traces) == [str(folder / MAIN)]
    assert [one.paths for one in survey(str(folder)).ranks_by_key().values()] == [
        (str(folder / MAIN),)
    ]
    found_names = [Path(one.path).name for one in TraceFileSearch(str(folder)).files()]
    assert (MAIN in found_names, SLOW in found_names) == (True, False)
    sources = TracesAtPaths([str(folder)])
    assert [sources.path_of(one.id) for one in sources.listed_traces()] == [str(folder / MAIN)]


def test_its_own_path_is_read(folder: Path) -> None:
    found = load(folder / SLOW)
    assert isinstance(found, Trace)
    assert found.slices["name"].to_list() == ["aten::copy_"]
    sources = TracesAtPaths([str(folder / SLOW)])
    assert len(sources.listed_traces()) == 1


def test_a_glob_finds_it_if_it_says_so(folder: Path) -> None:
    def names(pattern: str) -> list[str]:
        return [Path(file).name for file in trace_files(folder / pattern).files]

    assert names("*.pt.trace.json*") == [MAIN]
    assert names("*.slow-step.*") == [SLOW]


def test_an_address_has_the_other_trace_alone() -> None:
    system = fsspec.filesystem("memory")
    for name in (MAIN, SLOW):
        with system.open(f"/slow-steps/{name}", "w") as file:
            file.write(document("aten::mm"))
    try:
        for address in ("memory://slow-steps", "memory://slow-steps/*.json*"):
            assert [file.rpartition("/")[2] for file in trace_files(address).files] == [MAIN]
        [own] = trace_files("memory://slow-steps/*.slow-step.*").files
        assert own.endswith(SLOW)
    finally:
        system.rm("/slow-steps", recursive=True)


def test_a_folder_without_other_traces_has_none(folder: Path) -> None:
    (folder / MAIN).unlink()
    (folder / "h_1_2.run.jsonl").unlink()
    with pytest.raises(UnreadableTrace, match="it has those of slow steps alone; name one of them"):
        load(folder)


def test_a_ledger_names_it_by_its_step(folder: Path) -> None:
    path = folder / "h_1_2.run.jsonl"
    starts = json.loads(path.read_text().splitlines()[-2])["segments"]["start"]
    told = [{"start": starts[2], "file": SLOW}, {"start": 7, "file": SLOW}, {"start": starts[3]}]
    escaping = {"start": starts[3], "file": "../other.json"}
    lines = [json.dumps({"recorded_slow_step": one}) for one in (*told, escaping)]
    path.write_text(path.read_text() + "\n".join(lines) + "\n")
    found = load(folder)
    assert isinstance(found, Job)
    assert dict(found.traces[str(folder / MAIN)].run.recorded_slow_steps) == {2: SLOW}
