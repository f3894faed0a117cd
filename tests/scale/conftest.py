"""A small job of four ranks, of which one is late, in a folder."""

from pathlib import Path

import pytest

from selftime.testing.simulated_jobs import RankDelay, simulate_job

LATE = 2
RANKS = 4


@pytest.fixture(scope="session")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("job")
    simulated = simulate_job(ranks=RANKS, steps=8, late=RankDelay(LATE, 8_000_000, "compute"))
    for rank, data in simulated.traces.items():
        (folder / f"rank{rank}.json").write_bytes(data)
    return folder


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    """A folder that the processes of a test can all see."""
    folder = tmp_path / "marks"
    folder.mkdir()
    return folder
