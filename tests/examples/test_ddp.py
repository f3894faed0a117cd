"""The loop of several processes runs in two of them, and the first speaks."""

from pathlib import Path

import pytest
from tests.preloaded import Preloaded

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parents[2] / "examples" / "ddp"


@pytest.mark.sweep
def test_the_program_trains_in_two_processes(preloaded: Preloaded) -> None:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = preloaded.run([*launch, "ddp_loop.py", "--steps", "2"], cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("after 2 steps") == 1
