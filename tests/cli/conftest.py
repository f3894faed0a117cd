from pathlib import Path

import pytest
from tests.cli.small_traces import EVENTS, write


@pytest.fixture
def trace(tmp_path: Path) -> str:
    return str(write(tmp_path / "trace.json", EVENTS))


@pytest.fixture
def job(tmp_path: Path) -> str:
    """A folder of two traces and a file that is none."""
    for rank in range(2):
        write(tmp_path / "job" / f"rank{rank}.json", EVENTS[: rank + 1])
    (tmp_path / "job" / "notes.json").write_text('{"a": 1}')
    return str(tmp_path / "job")
