"""Python, the command line and JSON give the same table for every view."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from typer.testing import CliRunner

from selftime.cli import app
from selftime.ingest.load import load
from selftime.reports.tables.tabular import nan_and_infinity_as_null
from selftime.trace import Trace
from selftime.views import VIEWS, View

EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 20.5},
    {"ph": "X", "cat": "cpu_op", "name": "aten::add", "pid": 1, "tid": 1, "ts": 12, "dur": 3.125},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 40, "dur": 1},
]

every_view = pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A small trace as a file."""
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": EVENTS}))
    return str(file)


def written(view: View[Any], path: str, *words: str) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["view", view.name, path, "--format", "json", *words])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def read_back(view: View[Any], document: dict[str, Any]) -> pl.DataFrame:
    schema = {column.name: column.dtype for column in view.columns}
    return pl.DataFrame(document["rows"], schema=schema, orient="row")


@every_view
@pytest.mark.sweep(10)
def test_the_command_line_gives_what_python_gives(view: View[Any], path: str) -> None:
    document = written(view, path)
    trace = load(path)
    assert isinstance(trace, Trace)
    assert document["view"] == view.name
    assert [c["name"] for c in document["columns"]] == [c.name for c in view.columns]
    assert_frame_equal(read_back(view, document), nan_and_infinity_as_null(trace.view(view.name)))


@every_view
@pytest.mark.sweep(4)
def test_words_are_the_options_of_python(view: View[Any], path: str) -> None:
    trace = load(path)
    assert isinstance(trace, Trace)
    for option in view.options.values():
        for value in option.choices or (option.default,):
            document = written(view, path, f"--{option.name.replace('_', '-')}={value}")
            assert document["options"][option.name] == value
            expected = nan_and_infinity_as_null(trace.view(view.name, **{option.name: value}))
            assert_frame_equal(read_back(view, document), expected)


@every_view
def test_help_lists_options_and_columns(view: View[Any]) -> None:
    done = CliRunner().invoke(app, ["view", view.name, "--help"])
    assert done.exit_code == 0
    for option in view.options:
        assert f"--{option.replace('_', '-')}" in done.stdout
    for column in view.columns:
        assert column.name in done.stdout
    assert "Example: " in done.stdout


def test_the_list_of_views_is_the_registry() -> None:
    done = CliRunner().invoke(app, ["views", "--format", "json"])
    document = json.loads(done.stdout)
    assert document["format"] == "selftime.views/1"
    assert [view["name"] for view in document["views"]] == sorted(VIEWS)
    lines = CliRunner().invoke(app, ["views"]).stdout.splitlines()
    names = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert names == sorted(VIEWS)
