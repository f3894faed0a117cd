"""The small GPT learns."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

PROGRAM = Path(__file__).parents[2] / "examples" / "gpt" / "small_gpt.py"


def test_program_learns_and_says_how_long_a_step_took() -> None:
    command = [sys.executable, str(PROGRAM), "--steps", "51", "--batch", "4"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own file
    first, last = (float(loss) for loss in re.findall(r"loss ([\d.]+)", done.stdout))
    assert last < first
    assert "ms a step" in done.stdout
    assert done.stderr == ""
