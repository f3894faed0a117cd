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
def real_names() -> list[str]:
    """The names of all real traces."""
    if not FOLDER.is_dir():
        pytest.skip(f"there are no real traces in {FOLDER}; set SELFTIME_TRACES")
    return sorted(path.name.removesuffix(".json.gz") for path in FOLDER.glob("*.json.gz"))


@pytest.fixture(scope="session")
def real_files(real_names: list[str]) -> Callable[[str], Path]:
    """The file of a real trace by its name."""

    def find(name: str) -> Path:
        assert name in real_names
        return FOLDER / f"{name}.json.gz"

    return find


@pytest.fixture(scope="session")
def real(real_files: Callable[[str], Path]) -> ReadReal:
    """A real trace by its name."""

    @cache
    def read(name: str) -> Trace:
        trace = load(real_files(name))
        assert isinstance(trace, Trace)
        return trace

    return read
