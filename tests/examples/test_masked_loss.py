"""The masked loss and its repaired twin are the same number; both programs run."""

import re
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from tests.preloaded import Preloaded

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "segmentation"
TUTORIAL = ROOT / "docs" / "tutorial-masked-loss.md"
SHOWN = re.findall(
    r"^\$ selftime (preflight .*)\n((?:(?!```|\$).*\n)+)", TUTORIAL.read_text("utf-8"), re.MULTILINE
)
"""The commands of the tutorial whose output it shows, and that."""

Losses: TypeAlias = tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]


@pytest.fixture
def losses(monkeypatch: pytest.MonkeyPatch) -> Iterator[Losses]:
    monkeypatch.syspath_prepend(FOLDER)
    faulty = runpy.run_path(str(FOLDER / "masked_loss.py"))
    fixed = runpy.run_path(str(FOLDER / "masked_loss_fixed.py"))
    yield faulty["MaskedLoss"](), fixed["SteadyLoss"](), faulty
    for name in ("scenes", "masked_loss"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("name", ["masked_loss.py", "masked_loss_fixed.py"])
def test_program_runs_and_says_how_long_a_step_took(preloaded: Preloaded, name: str) -> None:
    done = preloaded.run([name, "--steps", "2", "--size", "16"], cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    assert "ms a step" in done.stdout
    assert done.stderr == ""


def test_the_twins_agree_in_value_and_gradient(losses: Losses) -> None:
    masked, steady, program = losses
    torch.manual_seed(0)
    _, labels = program["draw"](2, 16)
    assert {int(label) for label in labels.unique()} >= {program["IGNORED"], program["BACKGROUND"]}
    grads = []
    for loss in (masked, steady):
        torch.manual_seed(1)
        outputs = torch.randn(2, program["CLASSES"], 16, 16, requires_grad=True)
        value = loss(outputs, labels)
        value.backward()
        grads.append((value.detach(), outputs.grad))
    torch.testing.assert_close(grads[0], grads[1])
    assert grads[0][0] > 0


def test_scenes_of_one_kind_teach_nothing(losses: Losses) -> None:
    masked, steady, program = losses
    outputs = torch.randn(1, program["CLASSES"], 4, 4)
    labels = torch.full((1, 4, 4), 2)
    assert masked(outputs, labels).item() == steady(outputs, labels).item() == 0


@pytest.mark.parametrize(("command", "shown"), SHOWN, ids=["before", "after"])
@pytest.mark.sweep(1)
def test_the_tutorial_shows_what_preflight_says(
    preloaded: Preloaded, command: str, shown: str
) -> None:
    done = preloaded.run(["-m", "selftime", *command.split()], cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == shown.strip()
