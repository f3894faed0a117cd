"""The program of the demo and its repaired twin learn the same."""

import runpy
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.installed import needs
from tests.preloaded import Preloaded

torch = pytest.importorskip("torch")
needs("sklearn")
pytestmark = pytest.mark.torch

FOLDER = Path(__file__).parents[2] / "examples" / "digits"
STEPS = 6
BATCH = 32


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The names that both programs define, read as their interpreter would read them."""
    monkeypatch.syspath_prepend(FOLDER)
    yield runpy.run_path(str(FOLDER / "train.py")), runpy.run_path(str(FOLDER / "train_fixed.py"))
    monkeypatch.delitem(sys.modules, "network")


@pytest.mark.parametrize("name", ["train.py", "train_fixed.py"])
@pytest.mark.sweep(1)
def test_program_runs_and_says_how_long_an_epoch_took(preloaded: Preloaded, name: str) -> None:
    done = preloaded.run([name, "--epochs", "1", "--steps", "3"], cwd=FOLDER)
    assert done.returncode == 0, done.stderr
    assert "epoch 0:" in done.stdout
    assert "of the test images are right" in done.stdout
    assert done.stderr == ""


def test_same_images(programs: tuple[dict[str, Any], dict[str, Any]]) -> None:
    faulty, fixed = programs
    digits = import_module("sklearn.datasets").load_digits()
    prepared = fixed["prepare"](digits.images[:50], torch.device("cpu"))
    dataset = faulty["Digits"](digits.images, digits.target)
    one_by_one = torch.stack([torch.from_numpy(dataset[i][0]) for i in range(50)])
    assert one_by_one.dtype == torch.float64
    assert prepared.dtype == torch.float32
    torch.testing.assert_close(prepared.double(), one_by_one, rtol=0, atol=1e-6)


def learn(programs: tuple[dict[str, Any], dict[str, Any]], dtype: Any) -> dict[str, Any]:
    """Losses and parameters of both over the same batches, the twin computing in `dtype`."""
    faulty, fixed = programs
    digits = import_module("sklearn.datasets").load_digits()
    cpu = torch.device("cpu")
    order = torch.randperm(STEPS * BATCH, generator=torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    network = faulty["DigitNet"]().double()
    twin = fixed["DigitNet"]()
    twin.load_state_dict(network.state_dict())
    twin.to(dtype)
    start = parameters(network)

    dataset = faulty["Digits"](digits.images, digits.target)
    loader = torch.utils.data.DataLoader(dataset, batch_size=BATCH, sampler=order.tolist())
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    losses = faulty["train_epoch"](network, loader, optimizer, cpu)

    images = fixed["prepare"](digits.images, cpu).to(dtype)
    labels = torch.from_numpy(digits.target)
    fused = torch.optim.AdamW(twin.parameters(), lr=3e-3, fused=True)
    twin_losses = fixed["train_epoch"](twin, images, labels, fused, order).tolist()
    end = parameters(network)
    return {
        "losses": losses,
        "twin_losses": twin_losses,
        "moved": float((end - start).norm() / start.norm()),
        "apart": float((end - parameters(twin)).norm() / end.norm()),
    }


def parameters(network: Any) -> Any:
    return torch.nn.utils.parameters_to_vector(network.parameters()).detach().double()


def test_twin_in_double_precision_takes_the_same_steps(
    programs: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    """What is left is the rounding of the images to float32."""
    run = learn(programs, torch.float64)
    assert run["twin_losses"] == pytest.approx(run["losses"], rel=1e-6)
    assert run["moved"] > 1e-2
    assert run["apart"] < 1e-5


def test_twin_as_it_is_learns_the_same(
    programs: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    """Six steps of AdamW in float32 stay within a thousandth of those in float64."""
    run = learn(programs, torch.float32)
    assert run["twin_losses"] == pytest.approx(run["losses"], rel=1e-4)
    assert run["moved"] > 1e-2
    assert run["apart"] < 1e-3
