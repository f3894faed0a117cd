"""The same acts in the many spellings that programs use."""

import json
import warnings

import torch


def to_in_many_ways() -> None:
    """Copies pageable memory, however `to` is spelled: copy_kernel_cuda, memcpy_and_sync."""
    x = torch.randn(3)
    a = x.to(device="cuda", dtype=torch.float16)  # waits: copy_to_device
    b = x.to("cuda:0", torch.float64)  # waits: copy_to_device
    c = x.cuda(0)  # waits: copy_to_device
    d = x.to(torch.device("cuda", 0))  # waits: copy_to_device
    e = x.to(0)  # waits: copy_to_device
    assert len({t.device for t in (a, b, c, d, e)}) == 1


def pinned_in_many_ways() -> None:
    """Copies pinned memory without waiting, however it is spelled."""
    x = torch.empty(3, pin_memory=True).normal_()
    y = torch.randn(4, 3).pin_memory()
    a = x.to(torch.device("cuda:0"), non_blocking=True)
    b = x.cuda(non_blocking=True)
    c = x.to("cuda", torch.float32, True)
    d = y[1:3].to(a.device, non_blocking=True)
    assert y.is_pinned()
    assert (a + b + c + d).shape == (2, 3)


def devices_in_many_ways() -> None:
    """Makes tensors on the device by string, number and object: no copies."""
    device = torch.device("cuda", torch.cuda.current_device())
    a = torch.zeros(3, device=device) + torch.ones(3, device=0) + torch.rand(3, device="cuda:0")
    assert a.device == device
    assert a.get_device() == a.device.index == 0
    assert str(a.device) == "cuda:0"
    assert not a.is_cpu


def numbers_in_many_ways() -> None:
    """Reads a scalar: _local_scalar_dense_cuda, however it is spelled."""
    loss = torch.rand((), device="cuda")
    a = torch.Tensor.item(loss)  # waits: sync
    b = loss.detach().mean().item()  # waits: sync
    c = torch.is_nonzero(loss)  # waits: sync
    d = loss.__float__()  # waits: sync
    e = complex(loss)  # waits: sync
    assert [a, b, d] == [a, a, a]
    assert c == bool(e)


def text_in_many_ways() -> None:
    """Reads values for text: _tensor.py __format__ and _tensor_str.py; `%` asks __float__."""
    loss = torch.rand((), device="cuda")
    pattern, old_pattern = "{:.3f}", "%.3f"
    parts = [pattern.format(loss)]  # waits: sync
    parts.append(old_pattern % loss)  # waits: sync
    parts.append(str(loss))  # waits: sync
    parts.append(f"{loss=}")  # waits: sync
    parts.append(json.dumps({"loss": float(loss)}))  # waits: sync
    parts.append(f"{loss.shape} {loss.dtype} {loss.device}")
    assert all(parts)


def statement_over_lines() -> None:
    """Reads in one of several lines of a statement."""
    loss = torch.rand((), device="cuda")
    row = {
        "epoch": 3,
        "loss": loss.item(),  # waits: sync
        "rate": 0.1,
    }
    assert row


def quantifiers() -> None:
    """Asks each element: the builtins any and all read item() by __bool__."""
    flags = [torch.zeros((), dtype=torch.bool, device="cuda") for _ in range(3)]
    a = any(flags)  # waits: sync
    b = all(flag < 1 for flag in flags)  # waits: sync
    c = sum(torch.ones(3, device="cuda"))
    assert (a, b) == (False, True)
    assert c.shape == ()


def pairs_compared() -> None:
    """Asks each pair: is_nonzero reads item()."""
    best = 0
    for a, b in zip(torch.rand(3, device="cuda"), torch.rand(3, device="cuda"), strict=True):
        if a > b:  # waits: sync
            best += 1
    assert best <= 3


def list_of_device_scalars() -> None:
    """Reads each element and copies the result.

    Source: tensor_new.cpp, recursive_store, then to(device).
    """
    parts = [torch.rand((), device="cuda") for _ in range(3)]
    stacked = torch.tensor(parts, device="cuda")  # waits: sync, copy_to_device
    assert torch.stack(parts).shape == stacked.shape


def tensors_from_tensors() -> None:
    """Copies on the device: internal_new_from_data returns var.to(device) for a tensor."""
    x = torch.rand(3, device="cuda")
    y = torch.as_tensor(x, device="cuda")
    z = torch.zeros_like(x).copy_(y).clone().detach().requires_grad_()
    assert z.is_leaf
    assert y.is_cuda


def lists_with_index() -> None:
    """Asks Tensor.__index__ for the place in a list."""
    names = ["a", "b", "c"]
    best = torch.rand(3, device="cuda").argmax()
    name = names[best]  # waits: sync
    assert name in names


def out_arguments() -> None:
    """Writes into given tensors: no sizes are unknown but those of nonzero."""
    x = torch.randn(3, 3, device="cuda")
    y = torch.empty_like(x)
    torch.mm(x, x, out=y)
    torch.add(x, y, out=y)
    places = torch.empty(0, dtype=torch.long, device="cuda")
    torch.nonzero(x > 0, out=places)  # waits: sync
    assert y.shape == x.shape


def in_place_chain() -> None:
    """Changes a tensor in many ways on the device."""
    x = torch.randn(4, 4, device="cuda")
    x.add_(1).mul_(x.sigmoid()).clamp_(-1, 1).div_(x.abs().amax() + 1)
    x.data.mul_(0.5)
    x.triu_().t_()
    x.uniform_(-1, 1).exponential_().log_().random_(0, 3)
    x.copy_(x.flip(0)).roll(1, dims=0)
    assert x.shape == (4, 4)


def buffers_of_a_module() -> None:
    """Moves parameters and buffers to the device: _apply, to(device); uses them there."""

    class Shift(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(3))
            self.register_buffer("mask", torch.ones(3, dtype=torch.bool))

        def forward(self, x):
            return x * self.weight + torch.arange(3, device=x.device) * self.mask

    net = Shift()
    net.cuda()  # waits: copy_to_device
    net(torch.randn(2, 3, device="cuda")).sum().backward()
    net.half().float()
    net.cpu()  # waits: copy_to_host


def mask_of_python_attribute() -> None:
    """Uses a tensor kept on the host by mistake: `to` each time copies pageable memory."""

    class Positions(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table = torch.arange(8.0)

        def forward(self, x):
            return x + self.table.to(x.device)[: x.shape[1]]  # waits: copy_to_device

    net = Positions().to("cuda")
    for _ in range(2):
        assert net(torch.randn(2, 5, device="cuda")).shape == (2, 5)


def plateau() -> None:
    """Converts the metric: optim/lr_scheduler.py, ReduceLROnPlateau.step, float(metrics)."""
    net = torch.nn.Linear(2, 1, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
    loss = net(torch.randn(4, 2, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    schedule.step(loss)  # waits: sync


def close_in_a_test() -> None:
    """Compares on the host: torch/testing/_comparison.py asks torch.all(...) for its truth."""
    x = torch.randn(3, device="cuda")
    torch.testing.assert_close(x + 0, x)  # waits: sync


def segments() -> None:
    """Checks the lengths on the host unless told not to: SegmentReduce.cpp, min().item()."""
    x = torch.randn(6, device="cuda")
    lengths = torch.full((3,), 2, device="cuda")
    a = torch.segment_reduce(x, "sum", lengths=lengths)  # waits: sync
    b = torch.segment_reduce(x, "sum", lengths=lengths, unsafe=True)
    assert a.shape == b.shape


def rows_that_differ() -> None:
    """Sizes its result by the data: native/cuda/Unique.cu, unique_dim_cuda."""
    x = torch.randint(0, 2, (6, 2), device="cuda")
    rows = torch.unique(x, dim=0)  # waits: sync
    assert rows.ndim == 2


def low_rank() -> None:
    """Decomposes a small matrix: _lowrank.py, svd_lowrank, torch.linalg.svd checks its info."""
    x = torch.randn(8, 5, device="cuda")
    u, s, v = torch.svd_lowrank(x, q=3)  # waits: sync
    values = torch.linalg.eigvalsh(x.T @ x)  # waits: sync
    condition = torch.linalg.cond(x)  # waits: sync
    assert (u * s @ v.T).shape == x.shape
    assert values.numel() == 5
    assert condition.ndim == 0


def largest_and_its_gradient() -> None:
    """Spreads the gradient over ties: FunctionsManual.cpp, evenly_distribute_backward, is_cuda."""
    x = torch.randn(6, device="cuda", requires_grad=True)
    (x.max() - x.min() + x.median() + x.amax(dim=0)).backward()


def norms_and_their_gradients() -> None:
    """Computes norms and their gradients pointwise."""
    x = torch.randn(6, 3, device="cuda", requires_grad=True)
    spread = torch.dist(x, x * 2) + x.std() + x.var(dim=0).sum()
    (x.norm() + x.norm(dim=1).sum() + spread).backward()
    y = torch.randn(6, 3, device="cuda", requires_grad=True)
    first = y[:, [0]]  # waits: copy_to_device
    sums = y.logsumexp(0).sum() + y.softmax(1).log().sum() + y.cumsum(0).sum()
    (first.sum() + sums).backward()


def rounding() -> None:
    """Rounds on the device; a Python int needs the value."""
    x = torch.rand(3, device="cuda") * 9
    whole = x.round().long()
    top = int(whole[0])  # waits: sync
    assert whole.dtype == torch.long
    assert top < 10


def spectral_norm() -> None:
    """Iterates vectors on the device: nn/utils/parametrizations.py, _SpectralNorm."""
    layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 2, device="cuda"))
    layer(torch.randn(4, 3, device="cuda")).sum().backward()


def questions_to_the_device() -> None:
    """Asks the driver and the allocator, which know without the device."""
    torch.cuda.set_device(0)
    assert torch.cuda.device_count() >= 1
    assert torch.cuda.get_device_name(0)
    assert torch.cuda.get_device_properties("cuda").total_memory > 0
    assert torch.cuda.max_memory_allocated() / 2**20 >= 0
    assert len(torch.cuda.get_device_capability()) == 2
    assert torch.cuda.is_bf16_supported() in (True, False)
    with torch.cuda.device(0):
        assert torch.zeros(1, device="cuda").is_cuda


def ranges_for_a_profiler() -> None:
    """Marks ranges on the host."""
    with torch.cuda.nvtx.range("step"), torch.profiler.record_function("step"):
        x = torch.randn(3, device="cuda") + 1
    assert x.is_cuda


def old_scaler() -> None:
    """Uses the names of old tutorials; step reads found_inf (amp/grad_scaler.py)."""
    net = torch.nn.Linear(2, 1, device="cuda")
    optimizer = torch.optim.Adam(net.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scaler = torch.cuda.amp.GradScaler()
        with torch.cuda.amp.autocast():
            loss = net(torch.randn(4, 2, device="cuda")).float().mean()
    scaler.scale(loss).backward()
    scaler.step(optimizer)  # waits: sync
    scaler.update()


def old_constructors() -> None:
    """Copies a list: legacy constructors, tensor_new.cpp, legacy_tensor_ctor from data."""
    x = torch.cuda.FloatTensor([1.0, 2.0])  # waits: copy_to_device
    assert x.is_cuda
