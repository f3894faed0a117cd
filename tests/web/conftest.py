"""Traces as files, and the app over them."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from werkzeug.test import Client

from selftime.web import PageApp, TracesAtPaths

FOLDER = Path(os.environ.get("SELFTIME_TRACES", Path(__file__).parents[3] / "shared" / "traces"))

Write = Callable[..., Path]


def operator(name: str, start: float, duration: float) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": start,
        "dur": duration,
    }


EVENTS = [
    operator("aten::mm", 10.0, 20.5),
    operator("aten::add", 12, 3.125),
    operator("aten::mm", 40, 1),
    operator("<script>alert(1)</script>", 50, 2),
]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a trace of some events; its path."""

    def write(name: str = "trace.json", events: Any = EVENTS, **more: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"schemaVersion": 1, **more, "traceEvents": events}).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
        return path

    return write


@pytest.fixture
def client(write: Write) -> Client:
    """A browser at a server of one small trace."""
    return Client(PageApp(TracesAtPaths([str(write())])))


@pytest.fixture
def trace(client: Client) -> str:
    """The id of that trace."""
    told: Any = client.get("/api/traces").json
    return str(told["traces"][0]["id"])


@pytest.fixture(scope="session")
def real() -> Callable[[str], Path]:
    """The file of a real trace by its name."""

    def find(name: str) -> Path:
        if not FOLDER.is_dir():
            pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")
        return FOLDER / f"{name}.json.gz"

    return find
