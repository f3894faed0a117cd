"""Losses, with and without masks, and their backward."""

import torch
from torch.nn import functional


def masked_by_index() -> None:
    """Finds the positions on the host: IndexingUtils.h, expandTensors, nonzero(); backward too."""
    pred = torch.randn(4, 8, device="cuda", requires_grad=True)
    mask = torch.rand(4, 8, device="cuda") > 0.5
    kept = pred[mask]  # waits: sync
    kept.square().mean().backward()


def masked_by_weight() -> None:
    """Multiplies by the mask: all shapes are known."""
    pred = torch.randn(4, 8, device="cuda", requires_grad=True)
    mask = (torch.rand(4, 8, device="cuda") > 0.5).float()
    loss = (pred.square() * mask).sum() / mask.sum().clamp(min=1)
    loss.backward()


def masked_by_where() -> None:
    """Chooses in a kernel: TensorCompare.cpp, where with a Python number fills on the device."""
    pred = torch.randn(4, 8, device="cuda", requires_grad=True)
    mask = torch.rand(4, 8, device="cuda") > 0.5
    torch.where(mask, pred, 0.0).sum().backward()


def masked_select() -> None:
    """Sizes its result by the mask: IndexKernel.cpp of native/cuda, masked_select by index."""
    pred = torch.randn(4, 8, device="cuda")
    mask = pred > 0
    kept = torch.masked_select(pred, mask)  # waits: sync
    assert kept.ndim == 1


def ignored_labels() -> None:
    """Skips labels in the kernel: NLLLoss2d.cu and Loss.cu know ignore_index."""
    logits = torch.randn(6, 5, device="cuda", requires_grad=True)
    labels = torch.randint(0, 5, (6,), device="cuda")
    labels.masked_fill_(labels == 0, -100)
    functional.cross_entropy(logits, labels, ignore_index=-100).backward()


def smoothed_labels() -> None:
    """Scatters a Python number in the kernel: ScatterGatherKernel.cu, scatter_fill."""
    logits = torch.randn(6, 5, device="cuda", requires_grad=True)
    labels = torch.randint(0, 5, (6,), device="cuda")
    target = torch.full_like(logits, 0.02).scatter_(1, labels[:, None], 0.92)
    loss = -(target * logits.log_softmax(dim=1)).sum(dim=1).mean()
    loss.backward()


def one_hot_of_unknown_width() -> None:
    """Looks for the largest label: Onehot.cpp, max().item()."""
    labels = torch.randint(0, 5, (6,), device="cuda")
    target = functional.one_hot(labels)  # waits: sync
    assert target.ndim == 2


def one_hot_of_known_width() -> None:
    """Trusts num_classes: Onehot.cpp leaves the checks to the device on CUDA."""
    labels = torch.randint(0, 5, (6,), device="cuda")
    target = functional.one_hot(labels, num_classes=5).float()
    assert target.shape == (6, 5)


def hard_negatives_by_number() -> None:
    """Takes a size from the device: Tensor.__int__ reads item()."""
    losses = torch.rand(32, device="cuda")
    positive = losses > 0.8
    count = int(positive.sum())  # waits: sync
    hardest, _ = losses.topk(min(3 * count + 1, 32))
    assert hardest.ndim == 1


def hard_negatives_by_rank() -> None:
    """Compares ranks with a count on the device: sort, argsort and where read nothing."""
    losses = torch.rand(32, device="cuda")
    positive = losses > 0.8
    rank = losses.argsort(descending=True).argsort()
    keep = rank < 3 * positive.sum()
    loss = torch.where(keep, losses, torch.zeros_like(losses)).sum()
    assert loss.shape == ()


def focal() -> None:
    """Computes pointwise."""
    logits = torch.randn(6, 5, device="cuda", requires_grad=True)
    target = torch.rand(6, 5, device="cuda").round()
    bce = functional.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p = torch.exp(-bce)
    (0.25 * (1 - p) ** 2 * bce).mean().backward()


def dice_by_class() -> None:
    """Loops over known classes; each pass compares on the device."""
    probs = torch.rand(2, 3, 4, 4, device="cuda")
    target = torch.randint(0, 3, (2, 4, 4), device="cuda")
    total = torch.zeros((), device="cuda")
    for c in range(3):
        hit = (target == c).float()
        total = total + (probs[:, c] * hit).sum() / (probs[:, c] + hit).sum()
    assert total.shape == ()


def class_weights_from_numbers() -> None:
    """Copies a pageable tensor: tensor_new.cpp, internal_new_from_data, to(device) blocking."""
    logits = torch.randn(6, 3, device="cuda")
    labels = torch.randint(0, 3, (6,), device="cuda")
    weight = torch.tensor([0.2, 0.3, 0.5], device="cuda")  # waits: copy_to_device
    loss = functional.cross_entropy(logits, labels, weight=weight)
    assert loss.shape == ()


def class_weights_like_another() -> None:
    """Copies a pageable tensor: tensor_new.cpp, new_tensor, internal_new_from_data."""
    logits = torch.randn(6, 3, device="cuda")
    weight = logits.new_tensor([0.2, 0.3, 0.5])  # waits: copy_to_device
    flat = logits.new_full((3,), 0.33)
    assert (weight + flat).shape == (3,)


def skip_empty() -> None:
    """Branches on data: is_nonzero reads item()."""
    mask = torch.rand(8, device="cuda") > 0.5
    values = torch.rand(8, device="cuda")
    if mask.any():  # waits: sync
        values = values * mask
    loss = values.sum() * mask.any()
    assert loss.shape == ()


def contrastive() -> None:
    """Multiplies matrices; the labels are made on the device."""
    a = functional.normalize(torch.randn(6, 8, device="cuda"), dim=1).requires_grad_()
    b = functional.normalize(torch.randn(6, 8, device="cuda"), dim=1)
    logits = torch.einsum("id,jd->ij", a, b) / 0.07
    functional.cross_entropy(logits, torch.arange(6, device="cuda")).backward()


def contrastive_without_diagonal() -> None:
    """Indexes by a mask: expandTensors, nonzero()."""
    sim = torch.randn(6, 6, device="cuda")
    off = ~torch.eye(6, dtype=torch.bool, device="cuda")
    negatives = sim[off].view(6, 5)  # waits: sync
    assert negatives.shape == (6, 5)


def contrastive_filled_diagonal() -> None:
    """Fills in place: Fill.cpp and fill_diagonal_ read nothing."""
    sim = torch.randn(6, 6, device="cuda")
    sim.fill_diagonal_(float("-inf"))
    assert sim.softmax(dim=1).shape == (6, 6)


def triplet() -> None:
    """Computes distances and a hinge."""
    anchor = torch.randn(6, 8, device="cuda", requires_grad=True)
    near, far = torch.randn(6, 8, device="cuda"), torch.randn(6, 8, device="cuda")
    functional.triplet_margin_loss(anchor, near, far).backward()
    hardest = torch.cdist(anchor, far).min(dim=1).values
    assert hardest.shape == (6,)


def gaussian() -> None:
    """Checks the variance on the host: functional.py, gaussian_nll_loss, torch.any(var < 0)."""
    mean, target = torch.randn(6, 2, device="cuda"), torch.randn(6, 2, device="cuda")
    var = torch.rand(6, 2, device="cuda") + 0.1
    loss = functional.gaussian_nll_loss(mean, target, var)  # waits: sync
    assert loss.shape == ()


def product_of_all() -> None:
    """Looks for zeros in the backward: FunctionsManual.cpp, prod_backward, nonzero()."""
    survival = torch.rand(6, device="cuda", requires_grad=True)
    alive = survival.prod()  # waits: sync
    alive.backward()


def product_of_all_without_gradient() -> None:
    """Multiplies in the forward only: ReduceOps.cpp, prod reads nothing."""
    survival = torch.rand(6, device="cuda")
    assert survival.prod().shape == ()


def product_along_a_dimension() -> None:
    """Counts zeros in the backward: FunctionsManual.cpp, prod_backward, slice_zero_count item."""
    survival = torch.rand(4, 6, device="cuda", requires_grad=True)
    alive = survival.prod(dim=1)  # waits: sync
    alive.sum().backward()


def transmittance() -> None:
    """Looks for zeros in the backward: ReduceOps.cpp, cumprod_backward, any().item()."""
    alpha = torch.rand(4, 6, device="cuda", requires_grad=True)
    left = torch.cumprod(1 - alpha, dim=1)  # waits: sync
    (left * alpha).sum().backward()


def transmittance_by_logarithms() -> None:
    """Sums logarithms: cumsum and its backward read nothing."""
    alpha = torch.rand(4, 6, device="cuda", requires_grad=True)
    left = torch.cumsum(torch.log1p(-alpha * 0.9), dim=1).exp()
    (left * alpha).sum().backward()


def adaptive_softmax() -> None:
    """Splits rows by cluster: nn/modules/adaptive.py, forward, nonzero()."""
    head = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs=[5, 10], device="cuda")
    hidden = torch.randn(12, 8, device="cuda")
    words = torch.randint(0, 20, (12,), device="cuda")
    out = head(hidden, words)  # waits: sync
    assert out.loss.shape == ()


def ctc() -> None:
    """Takes lengths to the host and back.

    Source: LossCTC.cpp, to(kCPU); LossCTC.cu, at::tensor(lengths).
    """
    frames = torch.randn(10, 2, 5, device="cuda").log_softmax(dim=2)
    words = torch.randint(1, 5, (2, 3), device="cuda")
    heard = torch.full((2,), 10, device="cuda")
    said = torch.full((2,), 3, device="cuda")
    ctc = functional.ctc_loss
    loss = ctc(frames, words, heard, said)  # waits: copy_to_host, copy_to_device
    assert loss.shape == ()


def gathered() -> None:
    """Gathers at indices of the device: ScatterGatherKernel.cu reads nothing."""
    logits = torch.randn(6, 5, device="cuda", requires_grad=True)
    labels = torch.randint(0, 5, (6, 1), device="cuda")
    (-logits.log_softmax(dim=1).gather(1, labels)).mean().backward()


def selected_rows() -> None:
    """Indexes by numbers on the device: Indexing.cu, index_put_with_sort_kernel in the backward."""
    table = torch.randn(6, 5, device="cuda", requires_grad=True)
    rows = torch.randint(0, 6, (9,), device="cuda")
    table[rows].sum().backward()


def per_sample_weight_on_mask() -> None:
    """Updates where a mask says: get and put by mask, expandTensors, nonzero()."""
    weight = torch.ones(8, device="cuda")
    hard = torch.rand(8, device="cuda") > 0.5
    weight[hard] *= 2.0  # waits: sync
    weight = weight / weight.sum()
