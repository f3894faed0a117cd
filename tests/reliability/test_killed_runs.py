"""Recorded programs that are killed at any instant: what lies in the folder can be read."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Final

import pytest
from tests.reliability.conftest import ROOT, TRAINING, processes_marked

PROGRAM: Final = TRAINING + textwrap.dedent("""
    for number in range(400):
        step()
        time.sleep(0.005)
""")
LONGEST_S: Final = 12.0


def selftime(folder: Path, *words: str) -> "subprocess.Popen[bytes]":
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "OMP_NUM_THREADS": "1",
        "TMPDIR": str(folder / "temporary"),
        "SELFTIME_CACHE": str(folder / "cache"),
        "RELIABILITY_MARK": str(folder),
    }
    return subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "selftime", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@pytest.mark.torch
@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(100))
def test_a_killed_run_leaves_files_that_can_be_read(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "temporary").mkdir()
    (tmp_path / "program.py").write_text(PROGRAM)
    process = selftime(tmp_path, "run", "--steps", "2", "-o", "runs", "program.py")
    chance = random.Random(seed)  # noqa: S311 - no secret
    time.sleep(chance.uniform(0, LONGEST_S))
    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert not processes_marked(str(tmp_path))
    runs = tmp_path / "runs"
    left = [path for path in runs.rglob("*") if path.is_file()] if runs.exists() else []
    assert [path.name for path in left if path.name.startswith(".")] == []
    for path in left:
        answer = selftime(tmp_path, "view", "health", str(path))
        _stdout, stderr = answer.communicate(timeout=120)
        assert answer.returncode == 0, (path.name, stderr.decode())
    if left:
        answer = selftime(tmp_path, "advise", "runs")
        _stdout, stderr = answer.communicate(timeout=120)
        assert answer.returncode == 0, ([path.name for path in left], stderr.decode())
