"""Each example runs against its real framework and leaves one bounded file of its process."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import selftime

if TYPE_CHECKING:
    from tests.frameworks.conftest import Run

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[2] / "examples" / "frameworks"

ALONE = {
    "loop": "torch",
    "huggingface": "transformers",
    "lightning_trainer": "lightning",
}
"""Examples that one process runs, and what they need."""


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.sweep(1)
def test_an_example_leaves_one_file_with_its_rank(
    name: str, run: "Run", steps: Callable[[Any], int]
) -> None:
    pytest.importorskip(ALONE[name])

    ended = run("", str(EXAMPLES / f"{name}.py"), RANK="1", WORLD_SIZE="2")

    assert ended.status == 0, ended.stderr
    (file,) = ended.files
    assert "_rank1_" in file.name
    assert steps(ended.trace) == 5
    assert ended.said == [], "only the first rank speaks"


def test_under_run_the_program_tells_its_steps(run: "Run", steps: Callable[[Any], int]) -> None:
    ended = run("", "-m", "selftime", "run", "--quiet", str(EXAMPLES / "loop.py"))

    assert ended.status == 0, ended.stderr
    assert steps(ended.trace) == 5
    assert ended.trace.metadata["selftime"]["steps"]["source"] == "the program"


@pytest.mark.sweep
def test_each_process_of_a_job_leaves_its_own_file(run: "Run", steps: Callable[[Any], int]) -> None:
    pytest.importorskip("accelerate")
    launch = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")

    ended = run("", *launch, str(EXAMPLES / "accelerate_loop.py"))

    assert ended.status == 0, ended.stderr
    first, second = ended.files
    assert "_rank0_" in first.name
    assert "_rank1_" in second.name
    assert [steps(selftime.load(file)) for file in ended.files] == [5, 5]
    (line,) = ended.said
    assert line == f"selftime: recorded 5 steps; what to change: selftime advise {first}".replace(
        f"{ended.folder}/", ""
    )


def test_every_example_is_run() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*ALONE, "accelerate_loop"}
