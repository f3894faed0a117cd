"""Copies between host and device, and what is made on the device."""

import copy
import io

import torch
from torch.utils.data import DataLoader, TensorDataset


def pageable_batches() -> None:
    """Copies pageable memory: Copy.cu, copy_kernel_cuda, memcpy_and_sync."""
    loader = DataLoader(TensorDataset(torch.randn(8, 3), torch.zeros(8)), batch_size=4)
    for x, y in loader:
        x, y = x.to("cuda"), y.cuda()  # waits: copy_to_device
        assert x.device == y.device


def pinned_batches() -> None:
    """Copies pinned memory without waiting: copy_kernel_cuda, non_blocking."""
    data = TensorDataset(torch.randn(8, 3), torch.zeros(8))
    for x, y in DataLoader(data, batch_size=4, pin_memory=True):
        x = x.to("cuda", non_blocking=True)
        y = y.cuda(non_blocking=True)
        assert x.device == y.device


def pinned_batches_waited_for() -> None:
    """Waits although pinned: copy_kernel_cuda, memcpy_and_sync unless non_blocking."""
    data = TensorDataset(torch.randn(8, 3))
    for (x,) in DataLoader(data, batch_size=4, pin_memory=True):
        x = x.to("cuda")  # waits: copy_to_device
        assert x.shape == (4, 3)


def nested_batch_pinned() -> None:
    """Copies each pinned part without waiting."""
    batch = {"x": torch.randn(4, 3).pin_memory(), "y": torch.zeros(4).pin_memory()}
    moved = {name: part.to(device="cuda", non_blocking=True) for name, part in batch.items()}
    assert moved["x"].is_cuda


def to_where_another_is() -> None:
    """Copies pageable memory to the other's device."""
    weight = torch.randn(3, device="cuda")
    offset = torch.ones(3).to(weight)  # waits: copy_to_device
    again = torch.ones(3).to(weight.device)  # waits: copy_to_device
    assert (weight + offset + again).shape == (3,)


def already_there() -> None:
    """Copies nothing: TensorConversions.cpp, to_will_alias."""
    x = torch.randn(3, device="cuda")
    y = x.to("cuda").cuda().to(x.device, non_blocking=True)
    assert y.data_ptr() == x.data_ptr()


def conversions() -> None:
    """Converts on the device: the copy kernel between two dtypes."""
    x = torch.randn(3, 4, device="cuda")
    parts = [x.half(), x.double(), x.to(torch.bfloat16), x.type(torch.int32), x.long().type_as(x)]
    parts.append(x.t().contiguous())
    parts.append(x.to(memory_format=torch.contiguous_format, copy=True))
    assert all(part.is_cuda for part in parts)


def back_without_waiting() -> None:
    """Copies to pinned memory: TensorConversions.cpp, _to_copy, pin_out for non_blocking."""
    x = torch.randn(3, device="cuda")
    host = x.to("cpu", non_blocking=True)
    assert host.device.type == "cpu"


def back_and_waiting() -> None:
    """Copies to pageable memory: copy_kernel_cuda, memcpy_and_sync."""
    x = torch.randn(3, device="cuda")
    host = x.to("cpu")  # waits: copy_to_host
    assert host.sum().item() == host.sum().item()


def into_host_buffer() -> None:
    """Copies into pageable memory: copy_kernel_cuda, memcpy_and_sync."""
    buffer = torch.empty(3)
    buffer.copy_(torch.randn(3, device="cuda"))  # waits: copy_to_host
    assert buffer.shape == (3,)


def into_pinned_buffer() -> None:
    """Copies into pinned memory without waiting."""
    buffer = torch.empty(3, pin_memory=True)
    buffer.copy_(torch.randn(3, device="cuda"), non_blocking=True)
    device = torch.empty(3, device="cuda")
    device.copy_(buffer, non_blocking=True)
    assert device.shape == (3,)


def into_device_buffer() -> None:
    """Copies pageable memory: copy_kernel_cuda, memcpy_and_sync."""
    static = torch.zeros(4, 3, device="cuda")
    static.copy_(torch.randn(4, 3))  # waits: copy_to_device
    static.copy_(torch.randn(4, 3, device="cuda"))
    static[:2] = torch.ones(2, 3)  # waits: copy_to_device


def elements() -> None:
    """Assigns numbers: TensorIndexing.h, copy_to fills rows, but copies into one element."""
    table = torch.zeros(4, 3, device="cuda")
    line = torch.zeros(4, device="cuda")
    table[0] = 1.0
    table[1, 2] = 1.0  # waits: copy_to_device
    line[0] = 1.0  # waits: copy_to_device
    line[1:2] = 5.0
    line[...] = 2.0


def host_scalars() -> None:
    """Passes 0-dim host tensors as kernel arguments: TensorIterator, is_cpu_scalar."""
    x = torch.randn(3, device="cuda")
    scale, shift = torch.tensor(2.0), torch.tensor(1.0)
    y = x * scale + shift
    y = y.clamp(max=torch.tensor(1.0)) / 3
    assert (y < scale).shape == (3,)


def host_scalar_in_where() -> None:
    """Copies the 0-dim host tensor: TensorCompare.cpp, where_self_out, other.to(device)."""
    x = torch.randn(3, device="cuda")
    y = torch.where(x > 0, x, torch.tensor(0.0))  # waits: copy_to_device
    assert y.shape == (3,)


def made_on_the_device() -> None:
    """Fills, counts and draws in kernels: factories with device= copy nothing."""
    parts = [
        torch.zeros(3, device="cuda"),
        torch.full((3,), 2.5, device="cuda"),
        torch.arange(0, 6, 2, device="cuda"),
        torch.linspace(0, 1, 3, device="cuda"),
        torch.eye(3, device="cuda")[0],
        torch.randint(0, 9, (3,), device="cuda"),
        torch.scalar_tensor(3.0, device="cuda").expand(3),
        torch.hann_window(3, device="cuda"),
    ]
    parts += [torch.rand_like(parts[0]), parts[0].new_zeros(3), torch.empty_like(parts[0])]
    assert torch.stack([part.float() for part in parts]).shape == (11, 3)


def one_number() -> None:
    """Copies even one number: internal_new_from_data, to(device) blocking."""
    temperature = torch.tensor(0.7, device="cuda")  # waits: copy_to_device
    assert (torch.randn(3, device="cuda") / temperature).shape == (3,)


def in_a_device_context() -> None:
    """Makes tensors on the device by context; numbers of the host are still copied."""
    with torch.device("cuda"):
        x = torch.randn(3)
        layer = torch.nn.Linear(3, 2)
        weight = torch.tensor([1.0, 2.0, 3.0])  # waits: copy_to_device
    assert layer(x * weight).is_cuda


def generator_of_the_device() -> None:
    """Keeps its state on the host: CUDAGeneratorImpl.cpp."""
    generator = torch.Generator(device="cuda").manual_seed(3)
    x = torch.randn(3, device="cuda", generator=generator)
    assert x.is_cuda


def made_on_the_host() -> None:
    """Stacks host tensors and copies the result once."""
    rows = [torch.randn(3) for _ in range(4)]
    batch = torch.stack(rows)
    batch = batch.to("cuda")  # waits: copy_to_device
    pad = torch.cat([batch, torch.zeros(1, 3, device="cuda")])
    assert pad.shape == (5, 3)


def module_moved() -> None:
    """Copies each parameter: nn/modules/module.py, _apply, to(device)."""
    net = torch.nn.Linear(3, 2)
    net = net.to("cuda")  # waits: copy_to_device
    assert net(torch.randn(1, 3, device="cuda")).shape == (1, 2)


def checkpoint_in_memory() -> None:
    """Clones on the device, copies to the host, copies back."""
    net = torch.nn.Linear(3, 2, device="cuda")
    twin = copy.deepcopy(net)
    kept = {name: value.clone() for name, value in net.state_dict().items()}
    host = {name: value.cpu() for name, value in net.state_dict().items()}  # waits: copy_to_host
    net.load_state_dict(kept)
    twin.load_state_dict(host)  # waits: copy_to_device


def checkpoint_to_file() -> None:
    """Copies storages to the host: serialization.py, _save, storage.cpu()."""
    net = torch.nn.Linear(3, 2, device="cuda")
    torch.save(net.state_dict(), io.BytesIO())  # waits: copy_to_host


def memory_questions() -> None:
    """Asks the allocator on the host: CUDACachingAllocator.cpp counts without the device."""
    x = torch.randn(64, device="cuda")
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.manual_seed_all(3)
    assert torch.cuda.memory_allocated() >= 0
    assert torch.cuda.is_available()
    assert x.element_size() == 4
