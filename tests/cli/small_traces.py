"""Two small events as a trace, and a command on it, in this process."""

import json
from pathlib import Path

from typer.testing import CliRunner, Result

from selftime.cli import app

EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 10.0, "dur": 20.5},
    {"ph": "X", "cat": "cpu_op", "name": "=1+1", "pid": 1, "tid": 1, "ts": 40, "dur": 1},
]


def say(*words: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, list(words), env={"COLUMNS": "80", **(env or {})})


def write(path: Path, events: list[dict[str, object]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


def refused(done: Result) -> str:
    """The one sentence that a refused command leaves."""
    assert done.exit_code == 2
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert line.startswith("Error: ")
    return line
