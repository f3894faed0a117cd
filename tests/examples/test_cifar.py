"""Every stage of the loop over pictures like CIFAR's runs, and the stages turn them alike."""

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.installed import needs
from tests.preloaded import Preloaded

torch = pytest.importorskip("torch")
needs("scipy")
pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parents[2] / "examples" / "cifar"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """The names that the program defines, read as its interpreter would read them."""
    monkeypatch.syspath_prepend(FOLDER)
    yield runpy.run_path(str(FOLDER / "cifar_loop.py"))
    monkeypatch.delitem(sys.modules, "pictures")


@pytest.mark.parametrize("stage", [[], ["--autocast"], ["--turn", "batch"]], ids=str)
@pytest.mark.sweep(1)
def test_each_stage_runs_and_says_how_long_a_step_took(
    preloaded: Preloaded, tmp_path: Path, stage: list[str]
) -> None:
    few = ["--steps", "3", "--batch", "4", "--width", "4", "--data", str(tmp_path)]
    done = preloaded.run(["cifar_loop.py", *few, *stage], cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    assert "ms a step" in done.stdout
    assert done.stderr == ""


def test_a_picture_is_read_as_it_was_made(program: dict[str, Any], tmp_path: Path) -> None:
    files = program["make"](tmp_path, 12)
    picture, kind = program["read"](files[11])
    assert picture.shape == (3, 32, 32)
    assert kind == 1
    assert 0 <= picture.min() < picture.max() <= 1
    assert program["make"](tmp_path, 12) == files


def test_a_batch_is_turned_within_its_pictures(program: dict[str, Any]) -> None:
    torch.manual_seed(0)
    pictures = torch.rand(8, 3, 32, 32)
    turned = program["turn"](pictures)
    assert turned.shape == pictures.shape
    assert not torch.equal(turned, pictures)
    middle = (slice(None), slice(None), slice(12, 20), slice(12, 20))
    torch.testing.assert_close(turned[middle].mean(), pictures[middle].mean(), rtol=0, atol=0.02)
