"""The small GPT learns."""

import re
from pathlib import Path

import pytest
from tests.preloaded import Preloaded

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = Path(__file__).parents[2] / "examples" / "gpt" / "small_gpt.py"


def test_program_learns_and_says_how_long_a_step_took(preloaded: Preloaded) -> None:
    done = preloaded.run([str(PROGRAM), "--steps", "51", "--batch", "4"], cwd=PROGRAM.parent)
    assert done.returncode == 0, done.stderr
    first, last = (float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout))
    assert last < first
    assert "ms a step" in done.stdout
    assert done.stderr == ""
