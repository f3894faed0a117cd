"""What CUDA refuses, the simulated device refuses too; the CPU would compute it."""

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")


from selftime.capture.preflight import preflight  # noqa: E402 - it imports torch

pytestmark = pytest.mark.torch

nn: Any = torch.nn

MIXED = "Expected all tensors to be on the same device"

REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "add": (lambda: torch.rand(3, device="cuda") + torch.rand(3), MIXED),
    "matmul": (lambda: torch.rand(3, 3, device="cuda") @ torch.rand(3, 3), MIXED),
    "cat": (lambda: torch.cat([torch.rand(3, device="cuda"), torch.rand(3)]), MIXED),
    "module": (lambda: nn.Linear(3, 3, device="cuda")(torch.rand(3)), MIXED),
    "module on the host": (lambda: nn.Linear(3, 3)(torch.rand(3, device="cuda")), MIXED),
    "index of a host tensor": (
        lambda: torch.rand(3)[torch.tensor([0], device="cuda")],
        "indices should be either on cpu",
    ),
    "lengths": (
        lambda: nn.utils.rnn.pack_padded_sequence(
            torch.rand(3, 2, 1, device="cuda"), torch.tensor([3, 2], device="cuda")
        ),
        "CPU int64 tensor",
    ),
    "places to split at": (
        lambda: torch.rand(3, device="cuda").tensor_split(torch.tensor([1], device="cuda")),
        "to be on cpu",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_devices_are_not_mixed(name: str) -> None:
    act, message = REFUSED[name]
    with preflight(), pytest.raises(RuntimeError, match=message):
        act()


def test_a_tensor_on_the_device_is_no_array() -> None:
    with preflight(), pytest.raises(TypeError, match="can't convert cuda:0 device type tensor"):
        torch.rand(3, device="cuda").numpy()


def test_host_scalars_and_empty_tensors_mix() -> None:
    with preflight():
        x = torch.rand(3, device="cuda")
        assert (x + torch.tensor(1.0)).is_cuda
        assert torch.cat([x, torch.tensor([])]).is_cuda
