"""`selftime repair`: clean JSON with the same events, and a report of what was wrong."""

import gzip
import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from polars.testing import assert_frame_equal
from tests.ingest.rough.case import Case, N, document, json_text
from tests.ingest.rough.case import events as made_events
from tests.ingest.rough.test_rough import cases_of
from typer.testing import CliRunner

from selftime.cli import app
from selftime.ingest.load import load
from selftime.ingest.text import trace_parsing as chunking
from selftime.trace import Trace

RUN: Final = CliRunner()

NO_SUCH_FILES: Final = {
    "3c": "what several ranks wrote at once is refused",
    "5": "likewise",
    "6j": "a memory snapshot is no JSON",
}
NOT_TOLD: Final = {"no time: kept, but not in totals"}
"""What a file lacks cannot be mended: what was no time is null."""

ALL: Final = [case for section in ("containers", "syntax") for case in cases_of(section)]
MENDED: Final = [
    case for case in ALL if case.outcome != "refuse" and case.entry not in NO_SUCH_FILES
]


def repaired(data: bytes, folder: Path, name: str = "clean.json") -> dict[str, Any]:
    (folder / "broken").write_bytes(data)
    words = ["repair", str(folder / "broken"), "-o", str(folder / name), "--format", "json"]
    done = RUN.invoke(app, words)
    assert done.exit_code == 0, done.output
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def read(path: Path) -> Trace:
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


@pytest.mark.parametrize("case", MENDED, ids=[case.id for case in MENDED])
@pytest.mark.sweep(8)
def test_what_is_mended_is_accepted(case: Case, tmp_path: Path) -> None:
    """Rule 7 of the catalogue: clean JSON, no fault left, the same tables."""
    told = repaired(case.data(), tmp_path)
    assert told["format"] == "selftime.repair/1"
    clean = tmp_path / "clean.json"
    json.loads(clean.read_bytes())
    before, after = read(tmp_path / "broken"), read(clean)
    of_text = {row["fault"] for row in told["mended"]}
    left = after.repairs.filter(~after.repairs["note"])["fault"]
    assert of_text.isdisjoint(left)
    assert set(left) <= set(before.repairs["fault"])
    if case.outcome != "limit":
        assert set(left) <= NOT_TOLD
    assert_same(after, before)
    assert told["events"] == int(before.events["count"].sum())
    assert told["lost"] == int(before.repairs["events_lost"].sum())


def assert_same(after: Trace, before: Trace) -> None:
    for name, table in before.tables().items():
        if name != "repairs":
            assert_frame_equal(after.tables()[name], table, categorical_as_str=True)
    assert after.metadata == before.metadata


def test_sound_events_are_copied_to_the_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", 300)
    exact = '{"ph": "X", "cat": "cpu_op", "name": "a\\/b", "ts": 1.10, "dur": 2.000, "mine": [1e5]}'
    written = [json.dumps(event) for event in made_events()]
    repaired(json_text([*written, exact, '{"ph": "X", "na', *written]), tmp_path)
    clean = msgspec.json.decode((tmp_path / "clean.json").read_bytes())
    texts = (tmp_path / "clean.json").read_text()
    assert exact in texts
    assert len(clean["traceEvents"]) == 2 * N + 1
    assert list(clean)[:2] == ["schemaVersion", "deviceProperties"]
    assert list(clean)[-2:] == ["traceEvents", "traceName"]


def test_a_sound_trace_stays_what_it_was(tmp_path: Path) -> None:
    told = repaired(document(), tmp_path, "clean.json.gz")
    assert told["mended"] == []
    assert msgspec.json.decode(
        gzip.decompress((tmp_path / "clean.json.gz").read_bytes())
    ) == msgspec.json.decode(document())


def test_a_value_in_the_place_of_the_events_does_not_stand_beside_them(tmp_path: Path) -> None:
    path, clean = tmp_path / "trace.json", tmp_path / "clean.json"
    path.write_bytes(document().replace(b'"traceEvents"', b'"traceEvents": 5, "traceEvents"'))
    done = RUN.invoke(app, ["repair", str(path), "-o", str(clean)])
    assert done.exit_code == 0
    assert "`traceEvents` that is no list: left out" in done.stdout
    assert clean.read_bytes().count(b'"traceEvents"') == 1


def test_text_names_each_kind_of_fault(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_bytes(document()[:-200])
    words = ["repair", str(tmp_path / "broken.json"), "-o", str(tmp_path / "clean.json")]
    done = RUN.invoke(app, words)
    assert f"{N - 2} events; 1 event could not be kept; repaired:" in done.stdout
    assert "the file ends inside an event, first at byte" in done.stdout


@pytest.mark.parametrize(
    ("given", "output", "word"),
    [
        ("broken.json", "broken.json", "is the trace itself"),
        ("broken.json", "link.json", "is the trace itself"),
        ("broken.json", "nowhere/clean.json", "cannot be written"),
        ("broken.json", ".", "is a folder"),
        ("broken.json", "clean.json.zst", "would be compressed with zstd"),
        ("none.json", "clean.json", "no such file"),
        ("blank.json", "clean.json", "white space"),
        ("keys.json", "clean.json", "no undamaged event"),
        ("snapshot", "clean.json", "memory snapshot"),
    ],
)
def test_refusals_are_one_sentence_and_leave_nothing(
    given: str, output: str, word: str, tmp_path: Path
) -> None:
    (tmp_path / "broken.json").write_bytes(document()[:-200])
    (tmp_path / "link.json").symlink_to(tmp_path / "broken.json")
    (tmp_path / "blank.json").write_text("  \n")
    (tmp_path / "keys.json").write_text('{"schemaVersion": 1, "traceEvents": []}')
    (tmp_path / "snapshot").write_bytes(b"\x80\x04N.")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    done = RUN.invoke(app, ["repair", str(tmp_path / given), "-o", str(tmp_path / output)])
    assert done.exit_code == 2
    assert word in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_what_several_ranks_wrote_at_once_is_refused(tmp_path: Path) -> None:
    """Written anew it would look like the trace of one."""
    [first, *_] = [case for case in ALL if case.entry == "5"]
    (tmp_path / "broken").write_bytes(first.data())
    done = RUN.invoke(app, ["repair", str(tmp_path / "broken"), "-o", str(tmp_path / "o.json")])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "cannot be rewritten: 4 ranks wrote to one file at once" in done.stderr
    assert not (tmp_path / "o.json").exists()


def test_of_a_folder_the_file_to_repair_is_asked_for(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for count, recordings in ((1, "1 recording"), (2, "2 recordings")):
        (folder / f"{count}.json").write_text("{")
        done = RUN.invoke(app, ["repair", str(folder), "-o", str(tmp_path / "clean.json")])
        assert done.exit_code == 2
        sentence = f"`{folder}` is a folder with {recordings}; name the file to repair"
        assert sentence in done.stderr
