"""The page's questions for the step after changes."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.recorded import written
from werkzeug.test import Client

import selftime
from selftime.reports.page_data.what_if import what_if_data
from selftime.trace import Trace
from selftime.web import PageApp, TracesAtPaths


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))
    return written(tmp_path / "trace.json")


def ask(file: Path, changes: str) -> Any:
    client = Client(PageApp(TracesAtPaths([str(file)])))
    listed: Any = client.get("/api/traces").json
    words = {".trace": listed["traces"][0]["id"], "changes": changes}
    return client.get("/api/what_if", query_string=words)


def test_the_page_is_told_what_python_says(file: Path) -> None:
    changes = [
        {"change": "scale", "pattern": "aten::mm", "kept_share": 0.5},
        {"change": "remove", "pattern": "data", "kept_share": 0},
    ]
    trace = selftime.load(str(file))
    assert isinstance(trace, Trace)
    found = selftime.what_if(trace, scale={"aten::mm": 0.5}, remove=["data"])
    told = ask(file, json.dumps(changes)).json
    assert told == json.loads(json.dumps(what_if_data(found)))
    assert told["step"]["after_ms"] == found.predicted_ms
    assert [one["text"].partition(":")[0] for one in told["changes"]] == [
        "Scale to 50.0 % aten",
        "Remove data",
    ]


def test_what_matches_nothing_is_an_answer(file: Path) -> None:
    answer = ask(file, '[{"change": "remove", "pattern": "aten::mn"}]')
    assert answer.status_code == 200
    assert "the nearest of" in answer.json["error"]


@pytest.mark.parametrize(
    "changes",
    [
        "",
        "{}",
        "[1]",
        '[{"change": "add", "pattern": "aten::mm"}]',
        '[{"change": "scale"}]',
        '[{"change": "scale", "pattern": "aten::mm", "kept_share": "x"}]',
        json.dumps([{"change": "remove", "pattern": f"{number}"} for number in range(21)]),
    ],
)
def test_what_is_no_list_of_changes_is_refused(file: Path, changes: str) -> None:
    answer = ask(file, changes)
    assert answer.status_code == 400
    assert "changes" in answer.json["error"]
