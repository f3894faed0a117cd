"""Real traces by name, each loaded once."""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from selftime import Trace, load

FOLDER = Path(os.environ.get("SELFTIME_TRACES", Path(__file__).parents[3] / "shared" / "traces"))

ReadReal = Callable[[str], Trace]


@pytest.fixture(scope="session")
def real() -> ReadReal:
    """A real trace by its name, without the ending."""
    if not FOLDER.is_dir():
        pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")

    @cache
    def read(name: str) -> Trace:
        trace = load(FOLDER / f"{name}.json.gz")
        assert isinstance(trace, Trace)
        return trace

    return read


@pytest.fixture(scope="session")
def real_names() -> list[str]:
    if not FOLDER.is_dir():
        pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")
    return sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))
