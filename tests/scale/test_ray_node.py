"""A node that dies takes no file with it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.installed import needs

needs("ray")
pytestmark = pytest.mark.xdist_group("tests/scale")  # two clusters at once are late
ROOT = Path(__file__).parents[2]


@pytest.mark.sweep
def test_what_a_dead_node_read_is_read_by_another(marks: Path, tmp_path: Path) -> None:
    """In a process of its own: a cluster that waits for its dead holds whoever started it."""
    answer = tmp_path / "answer.json"
    command = [sys.executable, "-m", "tests.scale.losing_a_node", str(marks), str(answer)]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=480, check=True)  # noqa: S603 - our own interpreter and program
    told = json.loads(answer.read_text("utf-8"))
    assert told["alive"] == 1
    places = [f"rank{number}" for number in range(4)]
    assert sorted(told["answers"]) == [[place, place] for place in places]
    tried = [mark.name.split(".")[:2] for mark in marks.iterdir()]
    [died] = [place for place, node in tried if node == "doomed"]
    assert sorted(tried) == sorted([*([place, "other"] for place in places), [died, "doomed"]])
