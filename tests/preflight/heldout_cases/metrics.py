"""Numbers that a training loop reads, prints and gathers."""

import logging
import math

import torch


def running_loss_as_number() -> None:
    """Reads a scalar: CUDAScalar.cu, _local_scalar_dense_cuda, memcpy_and_sync."""
    model = torch.nn.Linear(4, 1, device="cuda")
    total = 0.0
    for _ in range(3):
        loss = model(torch.randn(8, 4, device="cuda")).square().mean()
        loss.backward()
        total += loss.item()  # waits: sync


def running_loss_on_the_device() -> None:
    """Adds on the device: no value is read."""
    model = torch.nn.Linear(4, 1, device="cuda")
    total = torch.zeros((), device="cuda")
    for _ in range(3):
        loss = model(torch.randn(8, 4, device="cuda")).square().mean()
        loss.backward()
        total += loss.detach()


def accuracy() -> None:
    """Reads a count: CUDAScalar.cu, _local_scalar_dense_cuda."""
    logits = torch.randn(8, 5, device="cuda")
    labels = torch.randint(0, 5, (8,), device="cuda")
    right = logits.argmax(dim=1) == labels
    hits = int(right.sum())  # waits: sync
    assert hits <= len(labels)


def top_k_accuracy_on_the_device() -> None:
    """Sorts, compares and sums in kernels: Sorting.cpp reads nothing."""
    logits = torch.randn(8, 5, device="cuda")
    labels = torch.randint(0, 5, (8, 1), device="cuda")
    _, best = logits.topk(3, dim=1)
    hits = (best == labels).any(dim=1).float().mean()
    assert hits.shape == ()


def formatted() -> None:
    """Formats a scalar: _tensor.py, Tensor.__format__, item()."""
    loss = torch.randn(16, device="cuda").square().mean()
    text = f"step 3 loss {loss:.4f}"  # waits: sync
    assert "loss" in text


def printed() -> None:
    """Prints values: _tensor_str.py copies and reads them."""
    norms = torch.randn(3, device="cuda").abs()
    print(norms)  # waits: sync
    print(norms.shape, norms.dtype, norms.device)


def logged_below_the_level() -> None:
    """Formats nothing: logging, Logger.debug ends at isEnabledFor."""
    loss = torch.randn(16, device="cuda").mean()
    log = logging.getLogger("heldout.quiet")
    log.setLevel(logging.WARNING)
    log.debug("loss %s", loss)


def confusion_by_bincount() -> None:
    """Sizes a result by the data: SummaryOps.cu, _bincount_cuda_template, max().item()."""
    guess = torch.randint(0, 4, (32,), device="cuda")
    label = torch.randint(0, 4, (32,), device="cuda")
    table = torch.bincount(label * 4 + guess, minlength=16)  # waits: sync
    table = table.view(4, 4)


def confusion_by_scatter() -> None:
    """Adds at indices of the device: Indexing.cu, index_put_with_sort_kernel reads nothing."""
    guess = torch.randint(0, 4, (32,), device="cuda")
    label = torch.randint(0, 4, (32,), device="cuda")
    table = torch.zeros(4, 4, device="cuda")
    table.index_put_((label, guess), torch.ones(32, device="cuda"), accumulate=True)


def history_as_list() -> None:
    """Copies to a list: tensor_list.cpp, tensor_to_list, toBackend(CPU)."""
    losses = [torch.randn(4, device="cuda").mean() for _ in range(5)]
    stacked = torch.stack(losses)
    history = stacked.tolist()  # waits: copy_to_host
    assert len(history) == len(losses)


def history_stays() -> None:
    """Stacks and reduces on the device."""
    losses = [torch.randn(4, device="cuda").mean() for _ in range(5)]
    worst = torch.stack(losses).amax()
    mean = sum(losses) / len(losses)
    assert worst.shape == mean.shape


def prediction_for_numpy() -> None:
    """Copies to the host: Copy.cu, copy_kernel_cuda, memcpy_and_sync."""
    model = torch.nn.Linear(4, 2, device="cuda")
    out = model(torch.randn(3, 4, device="cuda"))
    array = out.detach().cpu().numpy()  # waits: copy_to_host
    assert array.shape == (3, 2)


def forced_numpy() -> None:
    """Copies to the host.

    Source: python_variable_methods.cpp / tensor_numpy.cpp, force is detach().cpu().
    """
    scores = torch.randn(3, 4, device="cuda")
    array = scores.softmax(dim=-1).numpy(force=True)  # waits: copy_to_host
    assert array.shape == (3, 4)


def nan_guard() -> None:
    """Converts to a Python number: _local_scalar_dense_cuda by Tensor.__float__."""
    loss = torch.randn(8, device="cuda").mean()
    if math.isnan(loss):  # waits: sync
        raise ValueError


def finite_guard() -> None:
    """Converts to a Python bool: Scalar.cpp, is_nonzero reads item()."""
    grad = torch.randn(8, device="cuda")
    if not torch.isfinite(grad).all():  # waits: sync
        grad.zero_()


def finite_kept_as_tensor() -> None:
    """Multiplies by the flag: nothing is read."""
    grad = torch.randn(8, device="cuda")
    ok = torch.isfinite(grad).all()
    grad.mul_(ok)
    grad.nan_to_num_(0.0)


def asserted() -> None:
    """Converts to a Python bool: is_nonzero reads item()."""
    probs = torch.rand(8, device="cuda")
    assert (probs >= 0).all(), "negative"  # waits: sync
    assert probs.ndim == 1


def asserted_on_the_device() -> None:
    """Checks in a kernel: TensorCompare.cu, _assert_async_cuda."""
    probs = torch.rand(8, device="cuda")
    torch._assert_async((probs >= 0).all())


def best_so_far() -> None:
    """Compares on the host: is_nonzero reads item()."""
    best = torch.full((), 1e9, device="cuda")
    for _ in range(2):
        loss = torch.rand((), device="cuda")
        if loss < best:  # waits: sync
            best = loss * 1.0


def best_so_far_on_the_device() -> None:
    """Takes the smaller one in a kernel."""
    best = torch.full((), 1e9, device="cuda")
    for _ in range(2):
        loss = torch.rand((), device="cuda")
        best = torch.minimum(best, loss)


def worst_by_builtin() -> None:
    """Compares on the host: the builtin max asks for the truth of b > a."""
    parts = [torch.rand((), device="cuda"), torch.rand((), device="cuda")]
    worst = max(parts)  # waits: sync
    assert worst.shape == ()


def report_of_numbers() -> None:
    """Reads each metric: _local_scalar_dense_cuda."""
    metrics = {"a": torch.rand((), device="cuda"), "b": torch.rand((), device="cuda")}
    numbers = {name: value.item() for name, value in metrics.items()}  # waits: sync
    assert len(numbers) == len(metrics)


def histogram_of_unknown_range() -> None:
    """Finds the range first: SummaryOps.cu, _histc_cuda_template, min().cpu()."""
    weights = torch.randn(64, device="cuda")
    counts = torch.histc(weights, bins=8)  # waits: sync
    assert counts.numel() == 8


def histogram_of_known_range() -> None:
    """Takes the range from the host: _histc_cuda_template reads only where min equals max."""
    weights = torch.randn(64, device="cuda")
    counts = torch.histc(weights, bins=8, min=-3.0, max=3.0)
    assert counts.numel() == 8


def robust_statistics() -> None:
    """Sorts and interpolates: Sorting.cpp checks q on the host only for CPU tensors."""
    values = torch.randn(65, device="cuda")
    middle = values.median()
    edge = torch.quantile(values, 0.9)
    spread = values.std() + values.var()
    assert middle.shape == edge.shape == spread.shape


def covariance() -> None:
    """Asks whether the degrees of freedom are positive.

    Source: Correlation.cpp, at::equal on the device.
    """
    features = torch.randn(4, 32, device="cuda")
    table = torch.cov(features)  # waits: sync
    assert table.shape == (4, 4)


def shapes_only() -> None:
    """Reads sizes, which the host knows."""
    batch = torch.randn(8, 3, device="cuda")
    rows = len(batch) + batch.numel() + batch.size(0)
    if batch.is_cuda and batch.device.type == "cuda" and batch.shape[1] == 3:
        rows += 1
    assert rows


def number_of_the_host() -> None:
    """Reads tensors that are on the host anyway."""
    counter = torch.zeros(())
    counter += 1
    text = f"{counter:.1f} {counter.item()}"
    assert bool(counter > 0)
    assert text


def compared_as_a_whole() -> None:
    """Returns a Python bool: Equal.cpp of native/cuda, cuda_equal, item()."""
    a = torch.randn(8, device="cuda")
    b = a.clone()
    same = torch.equal(a, b)  # waits: sync
    close = torch.allclose(a, b)  # waits: sync
    assert same
    assert close


def membership() -> None:
    """Asks a Python question: _tensor.py, Tensor.__contains__, any().item()."""
    tokens = torch.randint(0, 9, (16,), device="cuda")
    found = 3 in tokens  # waits: sync
    assert found in (True, False)


def grad_norms_one_by_one() -> None:
    """Reads each norm: _local_scalar_dense_cuda."""
    model = torch.nn.Linear(4, 2, device="cuda")
    model(torch.randn(3, 4, device="cuda")).sum().backward()
    norms = []
    for parameter in model.parameters():
        norm = parameter.grad.norm().item()  # waits: sync
        norms.append(norm)
    assert len(norms) == 2


def grad_norms_together() -> None:
    """Computes all norms in kernels."""
    model = torch.nn.Linear(4, 2, device="cuda")
    model(torch.randn(3, 4, device="cuda")).sum().backward()
    norms = torch._foreach_norm([p.grad for p in model.parameters()])
    total = torch.linalg.vector_norm(torch.stack(norms))
    assert total.shape == ()
