"""Boxes, anchors and masks of images."""

import numpy as np
import torch
from torch.nn import functional


def filtered_by_score() -> None:
    """Indexes by a mask: IndexingUtils.h, expandTensors, nonzero()."""
    boxes, scores = torch.rand(12, 4, device="cuda"), torch.rand(12, device="cuda")
    keep = scores > 0.3
    boxes, scores = boxes[keep], scores[keep]  # waits: sync
    assert len(boxes) == len(scores)


def best_by_score() -> None:
    """Takes a known number by indices of the device."""
    boxes, scores = torch.rand(12, 4, device="cuda"), torch.rand(12, device="cuda")
    order = scores.topk(5).indices
    assert boxes[order].shape == (5, 4)


def suppression_in_python() -> None:
    """Indexes by a 0-dim tensor (item<int64_t>) and by a mask (nonzero())."""
    boxes = torch.rand(6, 4, device="cuda")
    order = torch.rand(6, device="cuda").argsort(descending=True)
    kept = []
    while order.numel() > 0:
        first, order = order[0], order[1:]
        kept.append(first)
        distance = (boxes[order] - boxes[first]).abs().sum(dim=1)  # waits: sync
        order = order[distance > 0.5]  # waits: sync
    assert kept


def clipped() -> None:
    """Clamps views in place."""
    boxes = torch.rand(6, 4, device="cuda") * 100
    boxes[:, 0::2].clamp_(0, 64)
    boxes[:, 1::2] = boxes[:, 1::2].clamp(max=48)
    widths = boxes[:, 2] - boxes[:, 0]
    assert widths.shape == (6,)


def pairwise_overlap() -> None:
    """Broadcasts and reduces."""
    a, b = torch.rand(6, 4, device="cuda"), torch.rand(3, 4, device="cuda")
    top = torch.maximum(a[:, None, :2], b[None, :, :2])
    low = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    shared = (low - top).clamp(min=0).prod(dim=-1)
    best, which = shared.max(dim=1)
    assert best.shape == which.shape == (6,)


def matched_to_anchors() -> None:
    """Marks by Python numbers: canDispatchToMaskedFill where the value is a host number."""
    overlap = torch.rand(8, 3, device="cuda")
    best, match = overlap.max(dim=1)
    match[best < 0.3] = -1
    match = torch.where((best >= 0.3) & (best < 0.5), -2, match)
    assert match.shape == (8,)


def best_anchor_of_each() -> None:
    """Assigns a number at indices.

    Source: TensorAdvancedIndexing.cpp, _index_put_impl_, value.to(device).
    """
    overlap = torch.rand(8, 3, device="cuda")
    labels = torch.zeros(8, dtype=torch.long, device="cuda")
    labels[overlap.argmax(dim=0)] = 1  # waits: copy_to_device
    labels.index_fill_(0, overlap.argmin(dim=0), 2)


def targets_by_mask() -> None:
    """Writes a tensor by mask: no masked_fill, so nonzero()."""
    targets = torch.zeros(8, 4, device="cuda")
    positive = torch.rand(8, device="cuda") > 0.4
    targets[positive] = torch.ones(4, device="cuda")  # waits: sync
    targets[~positive] = 0.0


def targets_by_device_scalar() -> None:
    """Writes a 0-dim device tensor by mask: canDispatchToMaskedFill asks for a host value."""
    targets = torch.zeros(8, device="cuda")
    positive = torch.rand(8, device="cuda") > 0.4
    targets[positive] = targets.new_ones(())  # waits: sync


def filled_by_device_scalar() -> None:
    """Reads the value: Indexing.cu, masked_fill__cuda, value.item()."""
    targets = torch.zeros(8, device="cuda")
    positive = torch.rand(8, device="cuda") > 0.4
    low = targets.min()
    targets.masked_fill_(positive, low)  # waits: sync


def positives_by_where() -> None:
    """Lists positions: TensorCompare.cpp, where(condition), nonzero_numpy."""
    labels = torch.randint(0, 3, (9,), device="cuda")
    (rows,) = torch.where(labels == 1)  # waits: sync
    corners = torch.argwhere(labels.view(3, 3) > 0)  # waits: sync
    assert rows.ndim == 1
    assert corners.ndim == 2


def positives_of_known_number() -> None:
    """Pads to a given size: Nonzero.cu, nonzero_static_cuda."""
    labels = torch.randint(0, 3, (9,), device="cuda")
    assert torch.nonzero_static(labels == 1, size=4).shape == (4, 1)


def boxes_by_class() -> None:
    """Sizes its result by the data: UniqueCub.cu, item<int64_t>; then a mask."""
    labels = torch.randint(0, 3, (9,), device="cuda")
    boxes = torch.rand(9, 4, device="cuda")
    sizes = []
    for c in labels.unique():  # waits: sync
        chosen = boxes[labels == c]  # waits: sync
        sizes.append(len(chosen))
    assert sum(sizes) == 9


def boxes_by_class_offset() -> None:
    """Separates classes by an offset, as batched suppression does."""
    labels = torch.randint(0, 3, (9,), device="cuda")
    boxes = torch.rand(9, 4, device="cuda")
    offset = labels.to(boxes) * (boxes.max() + 1)
    assert (boxes + offset[:, None]).shape == (9, 4)


def anchors_from_numbers() -> None:
    """Copies numbers of the host: internal_new_from_data, to(device) blocking."""
    sizes = torch.as_tensor([8.0, 16.0, 32.0], device="cuda")  # waits: copy_to_device
    y, x = torch.meshgrid(
        torch.arange(4, device="cuda"), torch.arange(5, device="cuda"), indexing="ij"
    )
    centers = torch.stack((x, y), dim=-1).reshape(-1, 2)
    assert (centers[:, None] + sizes[None, :, None]).shape == (20, 3, 2)


def assigned_on_the_host() -> None:
    """Copies the cost to the host and the answer back: copy_kernel_cuda, memcpy_and_sync."""
    cost = torch.rand(5, 5, device="cuda")
    table = cost.cpu().numpy()  # waits: copy_to_host
    columns = torch.from_numpy(np.argmin(table, axis=1)).to("cuda")  # waits: copy_to_device
    assert cost.gather(1, columns[:, None]).shape == (5, 1)


def feature_sampling() -> None:
    """Samples, pools and resizes in kernels."""
    image = torch.rand(1, 3, 8, 8, device="cuda", requires_grad=True)
    grid = torch.rand(1, 4, 4, 2, device="cuda") * 2 - 1
    patch = functional.grid_sample(image, grid, align_corners=False)
    big = functional.interpolate(patch, scale_factor=2.0, mode="bilinear")
    small, where = functional.max_pool2d(big, 2, return_indices=True)
    functional.max_unpool2d(small, where, 2).sum().backward()


def mask_paste() -> None:
    """Writes a block at host positions: copy_kernel_cuda on one device."""
    canvas = torch.zeros(16, 16, device="cuda")
    canvas[2:6, 3:9] = torch.rand(4, 6, device="cuda")
    canvas[8:12, 1:3] = 1.0
    assert canvas.shape == (16, 16)


def crops_by_device_boxes() -> None:
    """Slices by tensors: Tensor.__index__ reads item()."""
    image = torch.rand(3, 16, 16, device="cuda")
    corner = torch.randint(0, 8, (2,), device="cuda")
    crop = image[:, corner[0] : corner[0] + 4]  # waits: sync
    assert crop.shape == (3, 4, 16)


def crops_by_list() -> None:
    """Copies all corners at once: tensor_to_list, toBackend(CPU)."""
    image = torch.rand(3, 16, 16, device="cuda")
    corners = torch.randint(0, 8, (2, 2), device="cuda")
    crops = []
    for y, x in corners.tolist():  # waits: copy_to_host
        crops.append(image[:, y : y + 4, x : x + 4])
    assert torch.stack(crops).shape == (2, 3, 4, 4)


def sampled_subset() -> None:
    """Shuffles on the device.

    Source: Randperm.cu reads nothing (PyTorch's own test of sync warnings says so).
    """
    positives = torch.arange(20, device="cuda")
    some = positives[torch.randperm(20, device="cuda")[:5]]
    assert some.shape == (5,)


def sampled_subset_by_host() -> None:
    """Indexes by a host tensor: expandTensors, index.to(self.device()) blocking."""
    positives = torch.arange(20, device="cuda")
    some = positives[torch.randperm(20)[:5]]  # waits: copy_to_device
    assert some.shape == (5,)


def masked_by_host() -> None:
    """Finds positions on the host and copies from pinned memory: expandTensors, non_blocking."""
    boxes = torch.rand(6, 4, device="cuda")
    keep = torch.tensor([True, False, True, True, False, True])
    assert boxes[keep].shape == (4, 4)


def class_histogram_of_mask() -> None:
    """Counts in kernels: ReduceSumProdKernel and scatter_add read nothing."""
    labels = torch.randint(0, 4, (2, 8, 8), device="cuda")
    counts = torch.zeros(4, device="cuda")
    counts.scatter_add_(0, labels.flatten(), torch.ones(128, device="cuda"))
    share = torch.count_nonzero(labels) / labels.numel()
    assert share.shape == ()
