"""Where Python itself asks a tensor for its value, and where it does not."""

import torch


def numbers() -> None:
    """Converts: Tensor.__float__, __int__, __bool__, __index__ read item()."""
    t = torch.full((), 3, device="cuda")
    a = float(t)  # waits: sync
    b = int(t)  # waits: sync
    c = bool(t)  # waits: sync
    d = ["w", "x", "y", "z"][t]  # waits: sync
    assert (a, b, c, d) == (3.0, 3, True, "z")


def logic() -> None:
    """Asks for truth: not, and, or, the conditional expression; the operators & and ~ do not."""
    t = torch.ones((), dtype=torch.bool, device="cuda")
    u = ~t & (t | t)
    a = not t  # waits: sync
    b = t and u  # waits: sync
    c = 1 if u else 2  # waits: sync
    assert (a, c) == (False, 2)
    assert b is u


def chained_comparison() -> None:
    """Joins by `and`: a < t < b asks for the truth of a < t."""
    t = torch.full((), 3.0, device="cuda")
    inside = 0 < t < 5  # waits: sync
    assert inside.shape == ()


def identity() -> None:
    """Asks for objects, types and lengths: no value is read."""
    t = torch.randn(4, device="cuda")
    named = {t: "weights"}
    assert t is not None
    assert isinstance(t, torch.Tensor)
    assert t in named
    rows = list(t)
    first, *_ = t
    assert len(rows) == 4
    assert first.shape == ()


def sought_in_a_list() -> None:
    """Compares with each: list.__contains__ asks for the truth of ==."""
    a = torch.zeros((), device="cuda")
    known = [torch.ones((), device="cuda"), torch.zeros((), device="cuda")]
    found = a in known  # waits: sync
    assert found


def sorted_by_builtin() -> None:
    """Compares on the host: sorted asks for the truth of <."""
    values = [torch.rand((), device="cuda") for _ in range(4)]
    ordered = sorted(values)  # waits: sync
    assert len(ordered) == 4


def sizes_from_tensors() -> None:
    """Takes sizes and numbers from tensors: python_arg_parser reads item()."""
    n = torch.full((), 3, device="cuda")
    a = torch.zeros(n, device="cuda")  # waits: sync
    b = torch.full((2,), n, device="cuda")  # waits: sync
    c = torch.arange(n, device="cuda")  # waits: sync
    assert a.shape == c.shape == (3,)
    assert b.shape == (2,)


def number_arguments() -> None:
    """Takes a Python number from a tensor: python_arg_parser, Scalar by item()."""
    x, step = torch.randn(4, device="cuda"), torch.full((), 0.5, device="cuda")
    x = torch.add(x, x, alpha=step)  # waits: sync
    x = x + step * x
    x = x.clamp(min=-step, max=step)
    x = x.fill_(step) ** step


def narrowed_by_tensor() -> None:
    """Reads the start: TensorShape.cpp, narrow, start.item<int64_t>."""
    x, start = torch.randn(6, device="cuda"), torch.ones((), dtype=torch.long, device="cuda")
    part = x.narrow(0, start, 2)  # waits: sync
    assert part.shape == (2,)


def row_by_tensor() -> None:
    """Reads a 0-dim index, not a 1-dim one: TensorIndexing.h, item<int64_t>."""
    table, score = torch.randn(6, 3, device="cuda"), torch.randn(6, device="cuda")
    best = table[score.argmax()]  # waits: sync
    same = table[score.argmax(dim=0, keepdim=True)]
    again = table.index_select(0, score.argmax().view(1))
    assert best.shape == same[0].shape == again[0].shape


def row_by_host_tensor() -> None:
    """Reads a 0-dim index of the host, which waits for nothing."""
    table, number = torch.randn(6, 3, device="cuda"), torch.tensor(2)
    assert table[number].shape == (3,)


def element_by_tensor() -> None:
    """Reads the index and copies the number: item<int64_t>; copy_to, copy_ into one element."""
    line, score = torch.zeros(6, device="cuda"), torch.randn(6, device="cuda")
    line[score.argmax()] = 1.0  # waits: sync, copy_to_device
    line.scatter_(0, score.argmin(dim=0, keepdim=True), 1.0)


def indexed_by_list() -> None:
    """Copies the list: sequenceToVariable, to(device)."""
    x = torch.randn(6, 3, device="cuda")
    rows = x[[0, 2, 4]]  # waits: copy_to_device
    every_second = x[::2]
    assert rows.shape == every_second.shape


def indexed_by_array() -> None:
    """Copies the array: sequenceToVariable, to(device)."""
    x = torch.randn(6, 3, device="cuda")
    order = torch.randperm(6).numpy()
    rows = x[order]  # waits: copy_to_device
    assert rows.shape == (6, 3)


def views() -> None:
    """Slices, splits and reshapes: metadata of the host."""
    x = torch.randn(4, 6, device="cuda")
    parts = [x[:, 1:3], x[..., None], x[None, 0], x[-1], x.T, x.view(2, -1), x.unfold(1, 2, 2)]
    parts += [*x.chunk(2), *x.unbind(), *x.tensor_split(3, dim=1), x.flatten()[3]]
    assert all(part.is_cuda for part in parts)


def added_at_indices() -> None:
    """Gets, adds and puts at indices of the device; a column by slice."""
    x, rows = torch.zeros(6, 3, device="cuda"), torch.randint(0, 6, (4,), device="cuda")
    x[rows] += 1.0
    x[:, 0] += 2.0
    x[rows, 1] = x[rows, 2]
    assert x.shape == (6, 3)


def put_one_column_at_indices() -> None:
    """Copies the number: _index_put_impl_, value.to(device)."""
    x, rows = torch.zeros(6, 3, device="cuda"), torch.randint(0, 6, (4,), device="cuda")
    x[rows, 1] = 1.0  # waits: copy_to_device
    x[:, 2].index_fill_(0, rows, 1.0)


def masked_column() -> None:
    """Fills by mask in a selected column: canDispatchToMaskedFill."""
    x = torch.randn(6, 3, device="cuda")
    x[x[:, 0] > 0, 1] = 0.0
    x[x > 1] = 1.0
    assert x.shape == (6, 3)


def masked_scatter() -> None:
    """Counts positions in a kernel: IndexKernel.cu of native/cuda, launch_masked_scatter_kernel."""
    x = torch.zeros(6, device="cuda")
    x.masked_scatter_(x < 1, torch.arange(6.0, device="cuda"))
    assert x.shape == (6,)


def ordered() -> None:
    """Sorts, ranks and sums in kernels: Sort.cu, TensorTopK.cu, ScanKernels.cpp."""
    x = torch.randn(6, device="cuda")
    parts = [x.sort().values, x.argsort().float(), x.cumsum(0), x.logcumsumexp(0)]
    parts.append(x.cummax(0).values)
    parts.append(x.kthvalue(3, keepdim=True).values.expand(6))
    assert torch.stack(parts).shape == (6, 6)


def timed_with_events() -> None:
    """Waits for an event only where it says so: Event.cpp, cudaEventSynchronize."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    y = torch.randn(6, 6, device="cuda") @ torch.randn(6, 6, device="cuda")
    end.record()
    end.synchronize()  # waits: sync
    assert start.elapsed_time(end) >= 0
    assert y.is_cuda


def timed_with_the_clock() -> None:
    """Waits for the device: torch/cuda/__init__.py, synchronize, cudaDeviceSynchronize."""
    y = torch.randn(6, 6, device="cuda").relu()
    torch.cuda.synchronize()  # waits: sync
    torch.cuda.current_stream().synchronize()  # waits: sync
    assert y.is_cuda


def side_stream() -> None:
    """Orders streams on the device: cudaStreamWaitEvent."""
    side = torch.cuda.Stream()
    x = torch.randn(6).pin_memory()
    with torch.cuda.stream(side):
        y = x.to("cuda", non_blocking=True)
        ready = torch.cuda.Event()
        ready.record(side)
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.current_stream().wait_event(ready)
    y.record_stream(torch.cuda.current_stream())
    assert (y * 2).is_cuda
