"""Recordings that mean harm, as files."""

from pathlib import Path

import pytest
from tests.security.adversary import PAYLOADS, recording, snapshot

from selftime.ingest.load import load
from selftime.trace import Trace


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an adversary's recordings, which is the one that is worked in."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "trace.json").write_bytes(recording())
    (folder / "steady.json").write_bytes(recording((PAYLOADS[0],) * 12))
    (folder / "snapshot.pickle").write_bytes(snapshot())
    return folder


@pytest.fixture(scope="session")
def traces(folder: Path) -> dict[str, Trace]:
    """The recordings, read."""
    found = {}
    for path in folder.iterdir():
        trace = load(path)
        assert isinstance(trace, Trace)
        found[path.stem] = trace
    return found
