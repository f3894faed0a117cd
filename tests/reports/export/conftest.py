"""Real traces, where they are at hand; Perfetto's own engine."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests import perfetto

Ask: TypeAlias = Callable[..., list[list[list[Any]]]]


@pytest.fixture(scope="session")
def real_traces() -> Path:
    folder = os.environ.get("SELFTIME_TRACES")
    if not folder:
        pytest.skip("needs real traces: set SELFTIME_TRACES to their folder")
    return Path(folder)


@pytest.fixture(scope="session")
def in_perfetto() -> Ask:
    """Asks Perfetto's trace processor about a file."""
    return perfetto.ask
