"""Perfetto shows of every file what was recorded, slice by slice: nothing lost, nothing doubled."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import FOLDER
from tests.perfetto import Shown, ask, recorded, shown
from typer.testing import CliRunner

from selftime.cli import app
from selftime.ingest.load import load
from selftime.reports.export import export
from selftime.rewrite.event_times import base_time_of_written_file
from selftime.trace import Trace

FIRST = "h100-2025-vit"
"""Has times that a double of microseconds did not hold, and links of every kind; small."""
NAMES = sorted(
    {FIRST} | {path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz")},
    key=lambda name: (name != FIRST, name),
)


def file_of(name: str) -> Path:
    path = FOLDER / f"{name}.json.gz"
    if not path.is_file():
        pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")
    return path


def read(name: str) -> Trace:
    trace = load(file_of(name))
    assert isinstance(trace, Trace)
    return trace


def zero_of_json(trace: Trace) -> int:
    """The time in a written file that is time 0 of the trace."""
    return 0 if trace.origin is None else trace.origin - base_time_of_written_file(trace.origin)


def assert_whole(found: Shown, told: Shown) -> None:
    assert found.lost == []
    assert found.spans == told.spans
    assert found.tracks == told.tracks
    assert found.arrows == told.arrows
    assert found.samples == told.samples


@pytest.mark.traces
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sweep(1)
def test_chrome(name: str, tmp_path: Path) -> None:
    trace = read(name)
    export(trace, tmp_path / "a.json", to="chrome")
    assert_whole(shown(tmp_path / "a.json", zero_of_json(trace)), recorded(trace, as_json=True))


@pytest.mark.traces
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sweep(1)
def test_perfetto(name: str, tmp_path: Path) -> None:
    trace = read(name)
    export(trace, tmp_path / "a.pftrace", to="perfetto")
    assert_whole(shown(tmp_path / "a.pftrace"), recorded(trace, as_json=False))


@pytest.mark.traces
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sweep(1)
def test_a_cut_of_all(name: str, tmp_path: Path) -> None:
    """Its events are those of the file: its arrows, and marks on the tracks of their scope."""
    trace, part = read(name), tmp_path / "a.json"
    done = CliRunner().invoke(app, ["cut", str(file_of(name)), "-o", str(part)])
    assert done.exit_code == 0, done.output
    found, told = shown(part, zero_of_json(trace)), recorded(trace, as_json=True)
    assert found.lost == []
    assert marks_without_depth(found) == marks_without_depth(told)
    assert found.samples == told.samples


def marks_without_depth(shown: Shown) -> Counter[Any]:
    """Each span; of those without length, which marks are, not how deep they lie."""
    spans: Counter[Any] = Counter()
    for (name, start, length, depth), count in shown.spans.items():
        spans[name, start, length, depth if length else None] += count
    return spans


@pytest.mark.traces
@pytest.mark.parametrize("command", ["repair", "redact"])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sweep(2)
def test_repair_and_redact_copy_what_the_file_shows(
    command: str, name: str, tmp_path: Path
) -> None:
    path, copy = file_of(name), tmp_path / "a.json"
    done = CliRunner().invoke(app, [command, str(path), "-o", str(copy)])
    assert done.exit_code == 0, done.output
    figures = "select track_id, ts, dur, depth from slice order by 1, 2, 3, 4"
    flows = "select count(*) from flow"
    assert ask(copy, figures, flows) == ask(path, figures, flows)
