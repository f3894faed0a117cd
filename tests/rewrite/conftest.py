"""Real traces, where they are at hand."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_traces() -> Path:
    folder = os.environ.get("SELFTIME_TRACES")
    if not folder:
        pytest.skip("needs real traces: set SELFTIME_TRACES to their folder")
    return Path(folder)
