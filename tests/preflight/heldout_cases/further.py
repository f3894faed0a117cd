"""Further programs: optimizers seldom met, distributions, sparse tables, the standard library."""

import collections
import contextlib
import random
import statistics
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import nn
from torch.distributions import (
    Bernoulli,
    Beta,
    Categorical,
    Gamma,
    LogNormal,
    OneHotCategorical,
    kl_divergence,
)
from torch.optim import swa_utils


def averaging_optimizer() -> None:
    """Keeps its counter on the device, reads it, uploads rates.

    Source: optim/asgd.py, _multi_tensor_asgd.
    """
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.ASGD(net.parameters(), lr=0.1)
    net(torch.randn(3, 4, device="cuda")).sum().backward()
    optimizer.step()  # waits: sync, copy_to_device


def seldom_met_optimizers() -> None:
    """Keep their counters on the host.

    Source: optim/radam.py, nadam.py, adamax.py, rprop.py, adadelta.py.
    """
    net = nn.Linear(4, 2, device="cuda")
    kinds = torch.optim
    net(torch.randn(3, 4, device="cuda")).sum().backward()
    for kind in (kinds.RAdam, kinds.NAdam, kinds.Adamax, kinds.Rprop, kinds.Adadelta):
        optimizer = kind(net.parameters(), lr=1e-3)
        optimizer.step()
        optimizer.step()


def orthogonal_optimizer() -> None:
    """Iterates matrices a known number of times: optim/_muon.py."""
    net = nn.Linear(4, 2, bias=False, device="cuda")
    optimizer = torch.optim.Muon(net.parameters(), lr=1e-3)
    net(torch.randn(3, 4, device="cuda")).sum().backward()
    optimizer.step()


def exponential_average_of_a_model() -> None:
    """Uploads its host counter.

    Source: optim/swa_utils.py, self.n_averaged.to(device), from the second on.
    """
    net = nn.Linear(4, 2, device="cuda")
    mean = swa_utils.AveragedModel(net, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.99))
    for _ in range(3):
        mean.update_parameters(net)  # waits: copy_to_device


def statistics_anew() -> None:
    """Divides by a counter.

    Source: swa_utils.update_bn sets momentum None; batchnorm.py, float(counter).
    """
    norm = nn.BatchNorm1d(3, device="cuda")  # waits: copy_to_device
    net = nn.Sequential(nn.Linear(4, 3, device="cuda"), norm)
    batches = [torch.randn(5, 4, device="cuda") for _ in range(2)]
    swa_utils.update_bn(batches, net)  # waits: sync


def scaler_kept() -> None:
    """Reads the scale: amp/grad_scaler.py, state_dict calls get_scale, item()."""
    scaler = torch.amp.GradScaler("cuda")
    scaler.scale(torch.ones(2, device="cuda"))
    state = scaler.state_dict()  # waits: sync
    assert state["scale"] > 0


def chances_that_validate() -> None:
    """Checks parameters on the host: distribution.py, __init__."""
    p = torch.rand(4, device="cuda")
    coin = Bernoulli(probs=p)  # waits: sync
    part = Beta(p + 1, p + 2)  # waits: sync
    assert coin.sample().shape == part.rsample().shape


def chances_that_trust() -> None:
    """Draws in kernels, but one_hot_categorical.py makes its Categorical with default checks."""
    p = torch.rand(4, device="cuda") + 0.1
    parts = [
        Bernoulli(probs=p / 2, validate_args=False).sample(),
        Gamma(p, p, validate_args=False).rsample(),
        Beta(p, p, validate_args=False).rsample(),
        LogNormal(p, p, validate_args=False).rsample(),
        OneHotCategorical(logits=p, validate_args=False).sample(),  # waits: sync
    ]
    assert torch.stack(parts).shape == (5, 4)


def divergence_of_categories() -> None:
    """Fills by mask with host numbers: kl.py, _kl_categorical_categorical."""
    p = Categorical(logits=torch.randn(3, 4, device="cuda"), validate_args=False)
    q = Categorical(logits=torch.randn(3, 4, device="cuda"), validate_args=False)
    assert kl_divergence(p, q).shape == (3,)


def searched_through_an_order() -> None:
    """Checks the order on the host: BucketizationUtils.h, sorter, aminmax item."""
    values = torch.rand(6, device="cuda")
    order = values.argsort()
    place = torch.searchsorted(values, torch.rand(3, device="cuda"), sorter=order)  # waits: sync
    assert place.shape == (3,)


def sparse_table() -> None:
    """Counts distinct entries.

    Source: SparseCUDATensor.cu, _coalesce_sparse_cuda, thrust::unique_by_key.
    """
    index = torch.randint(0, 4, (2, 6), device="cuda")
    table = torch.sparse_coo_tensor(index, torch.ones(6, device="cuda"), (4, 4))
    table = table.coalesce()  # waits: sync
    assert table.shape == (4, 4)


def sparse_table_made_dense() -> None:
    """Adds entries into a dense table: SparseCUDATensorMath.cu, add into dense."""
    index = torch.randint(0, 4, (6,), device="cuda")
    table = torch.zeros(4, 3, device="cuda")
    table.index_add_(0, index, torch.ones(6, 3, device="cuda"))
    assert table.sum(dim=0).shape == (3,)


def older_names_of_algebra() -> None:
    """Checks like the newer names: inverse, svd, cholesky call _linalg_check_errors."""
    a = torch.eye(4, device="cuda") * 2
    b = a.inverse()  # waits: sync
    u, s, v = torch.svd(a)  # waits: sync
    c = torch.cholesky(a)  # waits: sync
    d = a.logdet() + a.det()
    assert b.shape == u.shape == v.shape == c.shape
    assert s.ndim == d.ndim + 1


def eigenvalues_of_any_matrix() -> None:
    """Reads the info: BatchLinearAlgebra.cpp, linalg_eigvals_out, _linalg_check_errors."""
    a = torch.randn(3, 3, device="cuda")
    values = torch.linalg.eigvals(a)  # waits: sync
    size = torch.linalg.matrix_norm(a, ord="nuc")  # waits: sync
    assert values.is_complex()
    assert size.ndim == 0


def gradients_through_algebra() -> None:
    """Solves again by the kept factors.

    Source: FunctionsManual.cpp, linalg_solve_backward, linalg_lu_solve.
    """
    a = (torch.randn(4, 4, device="cuda") + 4 * torch.eye(4, device="cuda")).requires_grad_()
    x, _ = torch.linalg.solve_ex(a, torch.ones(4, device="cuda"))
    q, r = torch.linalg.qr(a)
    (x.sum() + q.sum() + r.sum()).backward()


def identity_kernels() -> None:
    """Assigns one element at a time: nn/init.py, dirac_; orthogonal_ factorises without a check."""
    layer = nn.Conv1d(2, 2, 3, device="cuda")
    nn.init.dirac_(layer.weight)  # waits: copy_to_device
    nn.init.orthogonal_(layer.weight)
    nn.init.zeros_(layer.bias)


def pool_of_threads() -> None:
    """Copies and reads in threads of a pool; each waits for itself."""
    hosts = [torch.randn(3) for _ in range(3)]
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda t: t.to("cuda"), hosts))  # waits: copy_to_device
        sums = list(pool.map(lambda t: t.sum().item(), parts))  # waits: sync
    assert len(sums) == 3


def standard_library() -> None:
    """Asks for numbers in many ways: each reads item() or copies."""
    x = torch.randint(0, 3, (6,), device="cuda")
    parts = x.float().unbind()
    mean = statistics.mean(map(float, parts))  # waits: sync
    kinds = collections.Counter(x.tolist())  # waits: copy_to_host
    low = min(parts, key=lambda t: t.item())  # waits: sync
    text = ", ".join(str(int(t)) for t in x)  # waits: sync
    total = sum(t.item() for t in parts)  # waits: sync
    chosen = random.choice(parts)  # noqa: S311 - no secret
    with contextlib.suppress(ValueError):
        float(chosen)  # waits: sync
    assert mean * 6 == total
    assert kinds
    assert text
    assert low.is_cuda


def property_of_a_class() -> None:
    """Reads in a property, where its caller does not show it."""

    class Scores:
        def __init__(self, values):
            self.values = values

        @property
        def best(self):
            return self.values.max().item()  # waits: sync

        def __len__(self):
            return int(self.values.numel())

    scores = Scores(torch.rand(4, device="cuda"))
    assert scores.best >= 0
    assert len(scores) == 4


def choice_by_numpy() -> None:
    """Copies probabilities to draw on the host, and the draw back."""
    probs = torch.rand(4, dtype=torch.float64, device="cuda")
    probs = probs / probs.sum()
    weight = probs.cpu().numpy()  # waits: copy_to_host
    drawn = np.random.default_rng(0).choice(4, size=3, p=weight / weight.sum())
    index = torch.from_numpy(drawn).pin_memory().to("cuda", non_blocking=True)
    assert probs[index].shape == (3,)


def asserted_equality() -> None:
    """Asks whether two tensors are one: assert a == b reads item() of a 0-dim tensor."""
    a, b = torch.ones((), device="cuda"), torch.ones((), device="cuda")
    assert a == b  # waits: sync
    assert a.shape == b.shape


def early_stopping() -> None:
    """Compares by the host's best, read once an epoch; counts on the host."""
    best, bad = float("inf"), 0
    losses = torch.rand(3, device="cuda").unbind()
    for loss in losses:
        value = loss.item()  # waits: sync
        if value < best:
            best, bad = value, 0
        else:
            bad += 1
        if bad > 2:
            break


def curriculum_by_host() -> None:
    """Branches on host numbers only; schedules on the host; draws on the device."""
    net = nn.Linear(4, 2, device="cuda")
    for step in range(3):
        width = 2 if step < 2 else 4
        x = torch.randn(5, 4, device="cuda")
        x[:, width:] = 0
        if torch.rand(()).item() < 0.5 and x.requires_grad is False:
            x = x + 0.1 * torch.randn_like(x)
        net(x).square().mean().backward()
    net.zero_grad()


def mixup() -> None:
    """Draws on the host by NumPy and shuffles on the device; a Python number mixes."""
    x, y = torch.randn(6, 3, device="cuda"), torch.rand(6, 2, device="cuda")
    share = float(np.random.default_rng(0).beta(0.2, 0.2))
    order = torch.randperm(6, device="cuda")
    x = share * x + (1 - share) * x[order]
    y = torch.lerp(y[order], y, share)
    assert x.shape[0] == y.shape[0]


def mixup_by_device() -> None:
    """Draws the share as a tensor and takes a width from it: int() reads item()."""
    x = torch.randn(6, 3, 8, 8, device="cuda")
    share = torch.rand((), device="cuda")
    width = int(8 * (1 - share).sqrt())  # waits: sync
    x[:, :, :width, :width] = x.flip(0)[:, :, :width, :width]
    assert x.shape == (6, 3, 8, 8)


def memory_bank() -> None:
    """Writes a ring on the device; the place is a host number."""
    bank, place = torch.zeros(8, 4, device="cuda"), 0
    for _ in range(3):
        keys = nn.functional.normalize(torch.randn(4, 4, device="cuda"), dim=1)
        bank[place : place + 4] = keys
        place = (place + 4) % 8
    assert (bank @ bank.T).shape == (8, 8)


def memory_bank_with_buffer() -> None:
    """Keeps its place in a buffer, as MoCo does.

    Source: int(tensor) reads item(); tensor[0] = n uploads.
    """
    bank = torch.zeros(8, 4, device="cuda")
    place = torch.zeros(1, dtype=torch.long, device="cuda")
    keys = torch.randn(4, 4, device="cuda")
    start = int(place)  # waits: sync
    bank[start : start + 4] = keys
    place[0] = (start + 4) % 8  # waits: copy_to_device


def volume_rendering() -> None:
    """Composites along rays by exclusive cumulative products, without gradients."""
    density = torch.rand(5, 8, device="cuda")
    with torch.no_grad():
        alpha = 1 - torch.exp(-density * 0.1)
        left = torch.cumprod(torch.cat([torch.ones_like(alpha[:, :1]), 1 - alpha], dim=1), dim=1)
        color = (alpha * left[:, :-1])[..., None] * torch.rand(5, 8, 3, device="cuda")
        hit = left[:, -1] < 0.5
        image = torch.where(hit[:, None], color.sum(dim=1), 1.0)
    assert image.shape == (5, 3)


def voxels() -> None:
    """Marks cells by device indices: a Python number is uploaded, a tensor is not."""
    grid = torch.zeros(4, 4, 4, device="cuda")
    i, j, k = torch.randint(0, 4, (10, 3), device="cuda").unbind(dim=1)
    grid[i, j, k] = 1.0  # waits: copy_to_device
    grid[i, j, k] = torch.ones(10, device="cuda")
    grid.index_put_((i, j, k), grid.new_ones(()), accumulate=True)
    filled = grid.nonzero()  # waits: sync
    assert filled.shape[1] == 3
