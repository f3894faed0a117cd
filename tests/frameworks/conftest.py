"""Runs programs against real frameworks, in processes of their own and without a network."""

import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.preloaded import Preloaded

import selftime

ROOT = Path(__file__).parents[2]

ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": str(ROOT / "src"),
}
RANKS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass
class Ended:
    """How a program ended and what it left."""

    status: int
    stdout: str
    stderr: str
    folder: Path

    @property
    def files(self) -> list[Path]:
        """Everything in the folder of recordings, temporary files too."""
        return sorted(self.folder.glob("selftime-runs/*.gz"))

    @property
    def trace(self) -> Any:
        (path,) = self.files
        return selftime.load(path)

    @property
    def said(self) -> list[str]:
        """What we said, a line each."""
        return [line for line in self.stderr.splitlines() if line.startswith("selftime: ")]


Run = Callable[..., Ended]


@pytest.fixture
def run(preloaded: Preloaded, tmp_path: Path) -> Run:
    """Runs a program, as text or as words for Python, in a folder of its own."""

    def run(program: str = "", *words: str, **environment: str) -> Ended:
        if program:
            path = tmp_path / "program.py"
            path.write_text(textwrap.dedent(program))
            words = (str(path), *words)
        kept = {name: value for name, value in os.environ.items() if name not in RANKS}
        done = preloaded.run(words, cwd=tmp_path, env={**kept, **ENVIRONMENT, **environment})
        return Ended(done.returncode, done.stdout, done.stderr, tmp_path)

    return run


def steps_of(trace: Any) -> int:
    """Whole steps in a trace."""
    return int(trace.view("steps").height)


@pytest.fixture
def steps() -> Callable[[Any], int]:
    return steps_of
