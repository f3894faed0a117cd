"""Programs of many fields, each as its own people write it."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional


def lovasz() -> None:
    """Skips absent classes by asking the device: is_nonzero reads item(); then sorts and sums."""
    probs = torch.rand(20, 3, device="cuda", requires_grad=True)
    labels = torch.randint(0, 3, (20,), device="cuda")
    losses = []
    for c in range(3):
        present = (labels == c).float()
        if present.sum() == 0:  # waits: sync
            continue
        error = (present - probs[:, c]).abs()
        error, order = torch.sort(error, descending=True)
        present = present[order]
        union = present.sum() + (1 - present).cumsum(0)
        jaccard = 1 - (present.sum() - present.cumsum(0)) / union
        jaccard = torch.cat((jaccard[:1], jaccard[1:] - jaccard[:-1]))
        losses.append(torch.dot(error, jaccard))
    torch.stack(losses).mean().backward()


def intersection_over_union() -> None:
    """Drops ignored pixels by a mask (nonzero) and counts by bincount (max().item())."""
    guess = torch.randint(0, 3, (4, 8, 8), device="cuda")
    label = torch.randint(0, 4, (4, 8, 8), device="cuda")
    kept = label != 3
    pair = label[kept] * 3 + guess[kept]  # waits: sync
    table = torch.bincount(pair, minlength=9).view(3, 3).float()  # waits: sync
    iou = table.diag() / (table.sum(0) + table.sum(1) - table.diag())
    assert iou.shape == (3,)


def farthest_points() -> None:
    """Walks a cloud on the device: rows are chosen by 1-dim indices, distances kept by minimum."""
    xyz = torch.randn(2, 30, 3, device="cuda")
    rows = torch.arange(2, device="cuda")
    chosen = torch.zeros(2, 5, dtype=torch.long, device="cuda")
    distance = torch.full((2, 30), 1e10, device="cuda")
    farthest = torch.randint(0, 30, (2,), device="cuda")
    for i in range(5):
        chosen[:, i] = farthest
        center = xyz[rows, farthest].view(2, 1, 3)
        distance = torch.minimum(distance, ((xyz - center) ** 2).sum(-1))
        farthest = distance.max(-1)[1]
    assert xyz[rows[:, None], chosen].shape == (2, 5, 3)


def ball_query() -> None:
    """Fills far ones by a number (masked_fill), then by a masked tensor (nonzero, twice)."""
    xyz, centers = torch.rand(20, 3, device="cuda"), torch.rand(4, 3, device="cuda")
    square = torch.cdist(centers, xyz) ** 2
    group = torch.arange(20, device="cuda").repeat(4, 1)
    group[square > 0.25] = 19
    group = group.sort(dim=-1)[0][:, :6]
    first = group[:, :1].repeat(1, 6)
    far = group == 19
    group[far] = first[far]  # waits: sync
    assert group.shape == (4, 6)


def importance_sampling() -> None:
    """Inverts a distribution by searchsorted and gather; all sizes are known."""
    weights = torch.rand(4, 8, device="cuda") + 1e-5
    cdf = torch.cumsum(weights / weights.sum(-1, keepdim=True), -1)
    cdf = torch.cat([torch.zeros_like(cdf[..., :1]), cdf], -1)
    u = torch.linspace(0.0, 1.0, 6, device="cuda").expand(4, 6).contiguous()
    above = torch.searchsorted(cdf, u, right=True).clamp(max=8)
    below = (above - 1).clamp(min=0)
    low, high = cdf.gather(1, below), cdf.gather(1, above)
    span = torch.where(high - low < 1e-5, torch.ones_like(low), high - low)
    assert ((u - low) / span).shape == (4, 6)


def best_path() -> None:
    """Walks back pointers in Python: each step reads item()."""
    emission = torch.randn(6, 4, device="cuda")
    move = torch.randn(4, 4, device="cuda")
    score, pointers = emission[0], []
    for t in range(1, 6):
        score, back = (score[:, None] + move).max(dim=0)
        score = score + emission[t]
        pointers.append(back)
    best = score.argmax().item()  # waits: sync
    path = [best]
    for back in reversed(pointers):
        best = back[best].item()  # waits: sync
        path.append(best)
    assert len(path) == 6


def best_path_at_once() -> None:
    """Walks back pointers by gather and copies the path once."""
    emission, move = torch.randn(6, 4, device="cuda"), torch.randn(4, 4, device="cuda")
    score, pointers = emission[0], []
    for t in range(1, 6):
        score, back = (score[:, None] + move).max(dim=0)
        score = score + emission[t]
        pointers.append(back)
    best = score.argmax(dim=0, keepdim=True)
    path = [best]
    for back in reversed(pointers):
        best = back.gather(0, best)
        path.append(best)
    words = torch.cat(path).flip(0).tolist()  # waits: copy_to_host
    assert len(words) == 6


def speech_to_text() -> None:
    """Collapses repeats (size by the data), drops blanks (mask), copies a list."""
    frames = torch.randn(12, 5, device="cuda")
    best = torch.unique_consecutive(frames.argmax(dim=-1))  # waits: sync
    best = best[best != 0]  # waits: sync
    text = "".join("-abcd"[i] for i in best.tolist())  # waits: copy_to_host
    assert len(text) <= 12


def routed_tokens() -> None:
    """Gives each token a place in its expert by a running sum; drops the overflow by weight."""
    x = torch.randn(10, 4, device="cuda")
    gate = torch.randn(10, 3, device="cuda").softmax(dim=-1)
    weight, expert = gate.max(dim=-1)
    hot = functional.one_hot(expert, 3)
    place = (hot.cumsum(0) - 1).gather(1, expert[:, None]).squeeze(1)
    fits = place < 4
    slots = torch.zeros(3 * 4 + 1, 4, device="cuda")
    slots[torch.where(fits, expert * 4 + place, 12)] = x
    out = slots[expert * 4 + place.clamp(max=3)] * (weight * fits)[:, None]
    balance = (hot.float().mean(0) * gate.mean(0)).sum() * 3
    assert out.shape == (10, 4)
    assert balance.shape == ()


def packed_attention() -> None:
    """Needs the longest length as a number for its kernel: item()."""
    lengths = torch.randint(1, 5, (3,), dtype=torch.int32, device="cuda")
    bounds = functional.pad(lengths.cumsum(0, dtype=torch.int32), (1, 0))
    longest = lengths.max().item()  # waits: sync
    assert bounds.shape == (4,)
    assert longest < 5


def paged_cache() -> None:
    """Writes by a table of the device; the table itself comes from a list each time."""
    pages = torch.zeros(8, 2, 4, device="cuda")
    table = [[3, 1], [0, 5]]
    for position in range(3):
        rows = [row[position // 2] for row in table]
        block = torch.tensor(rows, device="cuda")  # waits: copy_to_device
        pages[block, position % 2] = torch.randn(2, 4, device="cuda")
    assert pages.shape == (8, 2, 4)


def logit_bias() -> None:
    """Adds to a few words: a list of words is an index of the host; a dict is walked in Python."""
    logits = torch.randn(2, 9, device="cuda")
    bias = {2: -1.0, 5: 3.0}
    logits[:, list(bias)] += 1.0  # waits: copy_to_device
    for word, value in bias.items():
        logits[:, word] += value
    logits[0, 3] = -100.0  # waits: copy_to_device


def retrieval() -> None:
    """Ranks by dot products and copies the few best once."""
    bank = functional.normalize(torch.randn(30, 8, device="cuda"), dim=1)
    query = functional.normalize(torch.randn(2, 8, device="cuda"), dim=1)
    score, place = (query @ bank.T).topk(3)
    pairs = torch.stack((score, place.float()), dim=-1).cpu()  # waits: copy_to_host
    for row in pairs:
        assert row[0, 0].item() >= row[-1, 0].item()


def conjugate_gradients() -> None:
    """Stops by the residual: the comparison is asked by the host."""
    a = torch.randn(5, 5, device="cuda")
    a = a @ a.T + 5 * torch.eye(5, device="cuda")
    b, x = torch.ones(5, device="cuda"), torch.zeros(5, device="cuda")
    r = b - a @ x
    p, rs = r.clone(), r @ r
    for _ in range(5):
        ap = a @ p
        alpha = rs / (p @ ap)
        x, r = x + alpha * p, r - alpha * ap
        new = r @ r
        if new.sqrt() < 1e-6:  # waits: sync
            break
        p, rs = r + new / rs * p, new


def adaptive_steps() -> None:
    """Accepts a step by its error and takes the next width as a number."""
    y, t, h = torch.ones(3, device="cuda"), 0.0, 0.1
    for _ in range(3):
        k1 = -y
        k2 = -(y + h * k1)
        error = (h / 2 * (k2 - k1)).abs().max()
        if error < 1e-1:  # waits: sync
            y, t = y + h / 2 * (k1 + k2), t + h
        h = float(0.9 * h * (1e-1 / error).clamp(0.2, 2.0).sqrt())  # waits: sync
    assert t < 2


def fixed_steps() -> None:
    """Integrates with a known width."""
    y, h = torch.ones(3, device="cuda"), 0.1
    for _ in range(3):
        k1 = -y
        k2 = -(y + h / 2 * k1)
        k3 = -(y + h / 2 * k2)
        k4 = -(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    assert y.shape == (3,)


def gaussian_process() -> None:
    """Factorises a kernel matrix (its info is read) and differentiates through it."""
    x, y = torch.rand(8, 1, device="cuda"), torch.randn(8, device="cuda")
    scale = torch.zeros((), device="cuda", requires_grad=True)
    square = torch.cdist(x, x) ** 2
    kernel = torch.exp(-square / scale.exp()) + 0.1 * torch.eye(8, device="cuda")
    lower = torch.linalg.cholesky(kernel)  # waits: sync
    half = torch.linalg.solve_triangular(lower, y[:, None], upper=False)
    loss = half.square().sum() / 2 + lower.diagonal().log().sum()
    loss.backward()


def kalman() -> None:
    """Inverts a matrix at each step (its info is read)."""
    state, cover = torch.zeros(2, device="cuda"), torch.eye(2, device="cuda")
    look = torch.eye(2, device="cuda")
    for seen in torch.randn(3, 2, device="cuda"):
        cover = cover + 0.1 * look
        gain = cover @ torch.linalg.inv(cover + look)  # waits: sync
        state = state + gain @ (seen - state)
        cover = (look - gain) @ cover


def aligned_clouds() -> None:
    """Finds a rotation by svd (its info is read) and mends its sign by a determinant (not read)."""
    p, q = torch.randn(10, 3, device="cuda"), torch.randn(10, 3, device="cuda")
    u, _, v = torch.linalg.svd((p - p.mean(0)).T @ (q - q.mean(0)))  # waits: sync
    sign = torch.det(v.T @ u.T).sign()
    flip = torch.ones(3, device="cuda")
    flip[2:] = sign
    rotation = v.T @ torch.diag(flip) @ u.T
    assert rotation.shape == (3, 3)


def connected_regions() -> None:
    """Spreads labels until none changes: the question is asked each time."""
    image = torch.rand(8, 8, device="cuda") > 0.5
    label = torch.arange(1.0, 65, device="cuda").view(1, 1, 8, 8) * image
    for _ in range(3):
        new = functional.max_pool2d(label, 3, 1, 1) * image
        if torch.equal(new, label):  # waits: sync
            break
        label = new


def cellular_automaton() -> None:
    """Counts neighbours by a convolution; its kernel is made on the device."""
    board = (torch.rand(1, 1, 8, 8, device="cuda") > 0.5).float()
    kernel = torch.ones(1, 1, 3, 3, device="cuda")
    kernel[0, 0, 1, 1] = 0  # waits: copy_to_device
    for _ in range(3):
        near = functional.conv2d(board, kernel, padding=1)
        board = ((near == 3) | ((board == 1) & (near == 2))).float()


def conflicting_gradients() -> None:
    """Projects where two gradients disagree: the sign is asked by the host."""
    net = nn.Linear(4, 2, device="cuda")
    out = net(torch.randn(3, 4, device="cuda"))
    grads = [torch.autograd.grad(out[:, i].sum(), net.weight, retain_graph=True)[0] for i in (0, 1)]
    a, b = (g.flatten() for g in grads)
    if a @ b < 0:  # waits: sync
        a = a - (a @ b) / (b @ b) * b
    net.weight.grad = (a + b).view_as(net.weight)


def sharpness_aware() -> None:
    """Climbs by the gradient's norm, computed on the device, and steps back."""
    net = nn.Linear(4, 2, device="cuda")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    x = torch.randn(3, 4, device="cuda")
    net(x).square().mean().backward()
    with torch.no_grad():
        norm = torch.stack([p.grad.norm() for p in net.parameters()]).norm()
        moves = [p.grad * (0.05 / (norm + 1e-12)) for p in net.parameters()]
        torch._foreach_add_(list(net.parameters()), moves)
    optimizer.zero_grad()
    net(x).square().mean().backward()
    with torch.no_grad():
        torch._foreach_sub_(list(net.parameters()), moves)
    optimizer.step()


def low_rank_adapter() -> None:
    """Adds a product of two small matrices; only they are trained."""

    class Adapter(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner.requires_grad_(False)
            self.a = nn.Parameter(torch.randn(2, inner.in_features, device=inner.weight.device))
            self.b = nn.Parameter(torch.zeros(inner.out_features, 2, device=inner.weight.device))

        def forward(self, x):
            return self.inner(x) + x @ self.a.T @ self.b.T

    net = Adapter(nn.Linear(4, 3, device="cuda"))
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad])
    net(torch.randn(5, 4, device="cuda")).square().sum().backward()
    optimizer.step()


def codes_by_moving_average() -> None:
    """Keeps clusters by one-hots of known width; revives dead ones where a mask says (nonzero)."""
    codes = torch.randn(6, 4, device="cuda")
    size, z = torch.zeros(6, device="cuda"), torch.randn(10, 4, device="cuda")
    hot = functional.one_hot(torch.cdist(z, codes).argmin(1), 6).float()
    size.mul_(0.9).add_(hot.sum(0), alpha=0.1)
    codes = torch.where(size[:, None] > 0, hot.T @ z / size[:, None].clamp(min=1e-5), codes)
    dead = size < 0.05
    codes[dead] = z[torch.randint(0, 10, (int(dead.sum()),), device="cuda")]  # waits: sync
    assert codes.shape == (6, 4)


def mel_bank() -> None:
    """Copies a filter bank of the host at each call."""
    bank = np.abs(np.random.default_rng(0).normal(size=(4, 9))).astype(np.float32)
    window = torch.hann_window(16, device="cuda")
    for _ in range(2):
        sound = torch.randn(1, 128, device="cuda")
        power = torch.stft(sound, 16, window=window, return_complex=True).abs() ** 2
        filters = torch.from_numpy(bank).to(power.device)  # waits: copy_to_device
        assert (filters @ power).clamp(min=1e-5).log10().shape[1] == 4


def warped_image() -> None:
    """Rotates an image by an angle of the host: the matrix is a list."""
    image, angle = torch.rand(1, 3, 8, 8, device="cuda"), math.pi / 6
    rows = [[math.cos(angle), -math.sin(angle), 0.0], [math.sin(angle), math.cos(angle), 0.0]]
    matrix = torch.tensor([rows], device="cuda")  # waits: copy_to_device
    grid = functional.affine_grid(matrix, [1, 3, 8, 8], align_corners=False)
    assert functional.grid_sample(image, grid, align_corners=False).shape == image.shape


def similarity_of_images() -> None:
    """Convolves with a window that is made on the device."""
    a, b = torch.rand(1, 1, 12, 12, device="cuda"), torch.rand(1, 1, 12, 12, device="cuda")
    line = torch.exp(-((torch.arange(5, device="cuda") - 2.0) ** 2) / 4.5)
    window = torch.outer(line, line)[None, None] / line.sum() ** 2
    mean_a, mean_b = functional.conv2d(a, window), functional.conv2d(b, window)
    cover = functional.conv2d(a * b, window) - mean_a * mean_b
    assert (2 * cover + 0.01).mean().shape == ()


def page_rank() -> None:
    """Iterates a table until the change is small, asked each fifth time."""
    links = (torch.rand(8, 8, device="cuda") > 0.5).float()
    table = links / links.sum(0, keepdim=True).clamp(min=1)
    rank = torch.full((8,), 1 / 8, device="cuda")
    for i in range(10):
        new = 0.15 / 8 + 0.85 * table @ rank
        if i % 5 == 4 and (new - rank).abs().sum().item() < 1e-6:  # waits: sync
            break
        rank = new


def pooled_best_nodes() -> None:
    """Keeps the best half of each graph by sort and a mask: the number of nodes is data."""
    score, batch = torch.rand(9, device="cuda"), torch.arange(9, device="cuda") // 3
    order = (batch.float() * 10 - score).argsort()
    place = torch.arange(9, device="cuda") - batch[order] * 3
    kept = order[place < 2]  # waits: sync
    assert kept.shape == (6,)


def sliding_windows() -> None:
    """Cuts windows by unfold, predicts, detaches the state, and collects on the device."""
    series = torch.randn(2, 20, device="cuda")
    cell, head = nn.LSTMCell(4, 6, device="cuda"), nn.Linear(6, 1, device="cuda")
    state, outs = None, []
    for window in series.unfold(1, 4, 4).unbind(1):
        state = cell(window, state)
        outs.append(head(state[0]))
        state = tuple(part.detach() for part in state)
    torch.cat(outs, dim=1).mean().backward()


def weights_of_tasks() -> None:
    """Weighs tasks by learned numbers; prints them once at the end."""
    log = nn.Parameter(torch.zeros(2, device="cuda"))
    optimizer = torch.optim.Adam([log], lr=0.1)
    for _ in range(3):
        losses = torch.rand(2, device="cuda")
        (losses * (-log).exp() + log).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    print("weights", [round(v, 3) for v in log.detach().exp().tolist()])  # waits: copy_to_host


def tokens_by_threshold() -> None:
    """Accepts drafted tokens one by one: each comparison is asked; then slices by a host number."""
    p, q = torch.rand(4, device="cuda"), torch.rand(4, device="cuda")
    draft, accepted = torch.randint(0, 9, (4,), device="cuda"), 0
    for i in range(4):
        if torch.rand(1, device="cuda") > q[i] / p[i]:  # waits: sync
            break
        accepted += 1
    assert draft[:accepted].shape[0] == accepted


def lagged_report() -> None:
    """Copies the loss without waiting and reads it a step later, after its event."""
    host = torch.zeros(1, pin_memory=True)
    done, waiting = torch.cuda.Event(), False
    for _ in range(3):
        loss = torch.rand(1, device="cuda").square()
        if waiting:
            done.synchronize()  # waits: sync
            assert host.item() >= 0
        host.copy_(loss, non_blocking=True)
        done.record()
        waiting = True
