"""What PyTorch tests of its own sync warnings, in our words: test_torch.py, test_sync_warning."""

import torch
from torch.nn import functional


def puts() -> None:
    """Says PyTorch: only a device value by a device mask, and a host index, warn."""
    x, value = torch.rand(4, device="cuda"), torch.rand((), device="cuda")
    index = torch.randint(4, (3,), device="cuda")
    mask = torch.randint(2, (4,), device="cuda", dtype=torch.bool)
    host_index, host_mask = torch.tensor([0, 1, 3]), torch.tensor([True, False, True, True])
    x[mask] = 1.0
    x[host_mask] = value
    x[index] = value
    x[mask] = value  # waits: sync
    x[host_index] = value  # waits: copy_to_device


def gets() -> None:
    """Says PyTorch: a device mask and a host index warn."""
    x = torch.rand(4, device="cuda")
    index = torch.randint(4, (3,), device="cuda")
    mask = torch.randint(2, (4,), device="cuda", dtype=torch.bool)
    host_index, host_mask = torch.tensor([0, 1, 3]), torch.tensor([True, False, True, True])
    a = x[host_mask]
    b = x[index]
    c = x[mask]  # waits: sync
    d = x[host_index]  # waits: copy_to_device
    assert a.ndim == b.ndim == c.ndim == d.ndim


def counted() -> None:
    """Says PyTorch: sizes that the data decide warn, unless they are given."""
    x = torch.rand(4, device="cuda")
    index = torch.randint(4, (3,), device="cuda")
    repeats = torch.full((1,), 2, device="cuda")
    a = functional.one_hot(index, num_classes=4)
    b = torch.repeat_interleave(x, 2, output_size=8)
    c = torch.repeat_interleave(x, repeats, output_size=8)
    d = functional.one_hot(index)  # waits: sync
    e = torch.repeat_interleave(x, repeats)  # waits: sync
    f = x.nonzero()  # waits: sync
    assert [t.ndim for t in (a, b, c, d, e, f)] == [2, 1, 1, 2, 1, 2]


def asked() -> None:
    """Says PyTorch: any() and a large randperm do not warn; `if` does."""
    x = torch.rand((), device="cuda")
    order = torch.randperm(20000, device="cuda")
    some = torch.any(x)
    if x:  # waits: sync
        some = ~some
    assert order.shape == (20000,)
