"""The simulated device: what a program sees of it, and that nothing of it remains."""

import copy
import io
import threading
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")


from selftime.capture.preflight import preflight  # noqa: E402 - it imports torch

pytestmark = pytest.mark.torch

nn: Any = torch.nn


def test_there_is_a_device_inside_and_none_after() -> None:
    before = torch.cuda.is_available(), torch.cuda.device_count(), torch.compile, torch.Generator
    shown = torch.Tensor.__repr__, threading.Thread.start, torch.autocast.__enter__
    with preflight():
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 1
        assert "simulated" in torch.cuda.get_device_name()
        assert torch.accelerator.current_accelerator().type == "cuda"
        x = torch.zeros(2, device="cuda")
        assert str(x.device) == "cuda:0"
    assert before == (
        torch.cuda.is_available(),
        torch.cuda.device_count(),
        torch.compile,
        torch.Generator,
    )
    assert shown == (torch.Tensor.__repr__, threading.Thread.start, torch.autocast.__enter__)
    assert x.device.type == "cpu"
    assert (x + torch.ones(2)).tolist() == [1.0, 1.0]


def test_the_simulation_ends_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError), preflight():
        assert 1 / torch.zeros((), device="cuda").item()
    assert torch.ones(2).device.type == "cpu"
    with preflight() as found:
        torch.ones((), device="cuda").item()
    assert len(found.sites) == 1


def test_marks_follow_the_data() -> None:
    with preflight():
        x = torch.rand(4, 4, device="cuda")
        same = [x[1:], x.T, x.detach(), x.data, x.view(16), x.unsqueeze(0), x.expand(2, 4, 4)]
        made = [x + 1, x.sum(), torch.zeros_like(x), x.new_ones(3), copy.deepcopy(x), x.clone()]
        parts = [*x.chunk(2), *x.max(0), *torch.split(x, 1)]
        assert all(tensor.is_cuda for tensor in (*same, *made, *parts))
        assert not torch.zeros_like(x, device="cpu").is_cuda
        assert not x.cpu().is_cuda
        assert not x.to("cpu", non_blocking=True).is_cuda


def test_default_devices_are_heeded() -> None:
    with preflight():
        with torch.device("cuda"):
            layer = nn.Linear(2, 2)
        torch.set_default_device("cuda")
        try:
            made = torch.ones(2)
        finally:
            torch.set_default_device(None)
        assert layer.weight.is_cuda
        assert made.is_cuda
        assert not torch.ones(2).is_cuda


def test_a_module_keeps_its_parameters_when_it_is_moved() -> None:
    with preflight():
        net = nn.Linear(2, 2)
        weight = net.weight
        net.cuda()
        assert net.weight is weight
        assert weight.is_cuda
        net(torch.ones(1, 2, device="cuda")).sum().backward()
        assert weight.grad is not None
        assert weight.grad.is_cuda
        net.load_state_dict(nn.Linear(2, 2).state_dict())
        assert net.weight.is_cuda


def test_autocast_casts() -> None:
    with preflight():
        x = torch.rand(4, 4, device="cuda")
        with torch.autocast("cuda"):
            assert (x @ x).dtype is torch.float16
            with torch.autocast("cuda", enabled=False):
                assert (x @ x).dtype is torch.float32
        with torch.autocast("cuda", dtype=torch.bfloat16):
            assert (x @ x).dtype is torch.bfloat16
        assert (x @ x).dtype is torch.float32


def test_what_is_saved_loads_without_a_device() -> None:
    file = io.BytesIO()
    with preflight():
        torch.save(torch.ones(2, device="cuda"), file)
        file.seek(0)
        assert torch.load(file, map_location="cuda").is_cuda
    file.seek(0)
    assert torch.load(file).device.type == "cpu"


def test_a_generator_is_on_the_device() -> None:
    with preflight():
        generator = torch.Generator(device="cuda").manual_seed(1)
        assert generator.device.type == "cuda"
        assert torch.Generator().device.type == "cpu"
        assert isinstance(torch.default_generator, torch.Generator)
        assert torch.rand(2, device="cuda", generator=generator).is_cuda


def test_threads_have_the_device_too() -> None:
    seen = []

    def work() -> None:
        seen.append(torch.ones((), device="cuda").item())

    with preflight() as found:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [1.0]
    assert [site.function for site in found.sites] == ["work"]


@pytest.mark.parametrize("workers", [0, 1])
def test_batches_of_a_loader_are_pinned(workers: int) -> None:
    with preflight() as found:
        data = torch.utils.data.TensorDataset(torch.rand(8, 2))
        for (batch,) in torch.utils.data.DataLoader(data, 4, pin_memory=True, num_workers=workers):
            assert batch.is_pinned()
            batch.to("cuda", non_blocking=True)
    assert found.sites == []
    assert found.harmless_copies == 2


def test_own_gradients_see_the_device() -> None:
    class Doubled(torch.autograd.Function):  # type: ignore[misc]  # torch is any here
        @staticmethod
        def forward(_ctx: object, x: Any) -> Any:
            assert x.is_cuda
            return x * 2

        @staticmethod
        def backward(_ctx: object, grad: Any) -> Any:
            assert grad.is_cuda
            grad.sum().item()
            return grad * 2

    with preflight() as found:
        Doubled.apply(torch.ones(2, device="cuda", requires_grad=True)).sum().backward()
    (site,) = found.sites
    assert (site.function, site.phase, site.how) == ("backward", "backward", "stack")


def test_a_gradient_is_told_by_the_line_of_its_forward() -> None:
    with preflight() as found:
        x = torch.rand(4, device="cuda", requires_grad=True) * 2
        mask = x.detach() > 0
        chosen = x[mask]
        chosen.sum().backward()
    forward, backward = sorted(found.sites, key=lambda site: site.phase, reverse=True)
    assert (forward.phase, forward.how) == ("forward", "stack")
    assert (backward.phase, backward.how) == ("backward", "backward")
    assert forward.line == backward.line


def test_a_condition_is_told_from_a_number_that_is_read() -> None:
    with preflight() as found:
        loss = torch.ones((), device="cuda")
        if loss > 0:
            assert f"{loss:.1f}" == "1.0"
    conditions = ["reads the condition" in site.fix for site in found.sites]
    assert conditions == [True, False]


def test_there_is_one_device() -> None:
    with preflight(), pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.zeros(1, device="cuda:1")


@pytest.mark.filterwarnings("ignore:`torch.jit.trace` is deprecated")
def test_what_cannot_be_judged_is_said() -> None:
    with preflight() as found:
        doubled = torch.compile(lambda x: x * 2)
        assert doubled(torch.ones(2, device="cuda")).is_cuda
        torch.cuda.CUDAGraph()
        torch.jit.trace(lambda x: x * 2, torch.ones(2, device="cuda"))
    said = " ".join(part.why for part in found.not_checked)
    assert "torch.compile" in said
    assert "CUDA graph" in said
    assert "TorchScript" in said


def test_short_floats_are_computed_where_the_cpu_has_no_kernel() -> None:
    with preflight():
        x = torch.rand(4, 4, device="cuda", dtype=torch.float16)
        assert torch.cdist(x, x).dtype is torch.float16


def test_the_gradient_of_an_assignment_waits_at_the_assignment() -> None:
    value = torch.ones(2, requires_grad=True)
    with preflight(own=[__file__]) as found:
        x, mask = torch.ones(4, device="cuda"), torch.tensor([True, False] * 2, device="cuda")
        x = x * 1
        x[mask] = value.cuda()
        read = x * 2
        read.sum().backward()
    [site] = [site for site in found.sites if site.phase == "backward" and site.kind == "sync"]
    [assignment] = [site for site in found.sites if site.op == "aten::index_put_"]

    assert site.line == assignment.line


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_torchscript_compiles_what_it_compiles_without_it() -> None:
    class Net(nn.Module):  # type: ignore[misc]  # torch is any here
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.relu(nn.functional.dropout(x, 0.5, False)).softmax(0)

    with preflight():
        result = torch.jit.script(Net())(torch.zeros(4, device="cuda"))
        assert result.is_cuda
    assert result.tolist() == [0.25] * 4
