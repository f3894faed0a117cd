"""Longer pieces, as programs put them together."""

import copy
import io
import pickle
import threading

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset


class _Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        x = torch.full((3,), float(index))
        return {"x": x, "y": x.sum() > 4}


def epoch() -> None:
    """Trains and evaluates; only the uploads, the report and the best score wait."""
    net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))
    net = net.to("cuda")  # waits: copy_to_device
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=0.1)
    loader = DataLoader(_Squares(), batch_size=4, shuffle=True)
    best, state = -1.0, None
    for _ in range(2):
        net.train()
        for batch in loader:
            x = batch["x"].to("cuda")  # waits: copy_to_device
            y = batch["y"].long().to("cuda")  # waits: copy_to_device
            loss = functional.cross_entropy(net(x), y)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
        net.eval()
        hits = torch.zeros((), device="cuda")
        with torch.no_grad():
            for batch in loader:
                x = batch["x"].to("cuda")  # waits: copy_to_device
                y = batch["y"].to("cuda")  # waits: copy_to_device
                hits += (net(x).argmax(dim=1) == y).sum()
        score = hits.item() / 8  # waits: sync
        if score > best:
            best, state = score, copy.deepcopy(net.state_dict())
    net.load_state_dict(state)


def loader_with_workers() -> None:
    """Reads in a worker, which has no device; copies pinned batches without waiting."""
    loader = DataLoader(_Squares(), batch_size=4, num_workers=1, pin_memory=True)
    for batch in loader:
        x = batch["x"].to("cuda", non_blocking=True)
        y = batch["y"].to("cuda", non_blocking=True)
        assert (x.sum(dim=1) * y).shape == (4,)


def loader_with_own_collate() -> None:
    """Copies inside the collate function: pageable, so blocking."""

    def collate(rows):
        stacked = torch.stack([row["x"] for row in rows])
        return stacked.to("cuda")  # waits: copy_to_device

    for x in DataLoader(_Squares(), batch_size=4, collate_fn=collate):
        assert x.is_cuda


def generator_of_batches() -> None:
    """Copies ahead on a side stream from pinned memory; nothing waits on the host."""

    def ahead(batches):
        stream = torch.cuda.Stream()
        after = None
        for host in batches:
            with torch.cuda.stream(stream):
                device = host.pin_memory().to("cuda", non_blocking=True)
            torch.cuda.current_stream().wait_stream(stream)
            if after is not None:
                yield after
            after = device
        yield after

    total = torch.zeros((), device="cuda")
    for x in ahead([torch.randn(3) for _ in range(3)]):
        total += x.sum()


def read_in_a_thread() -> None:
    """Reads in another thread: item() blocks that thread on the device."""
    loss = torch.rand((), device="cuda")
    seen = []

    def report():
        seen.append(loss.item())  # waits: sync

    thread = threading.Thread(target=report)
    thread.start()
    thread.join()
    assert len(seen) == 1


def made_in_a_thread() -> None:
    """Makes and copies tensors in another thread; pinned, so it does not wait."""
    made = []

    def prefetch():
        host = torch.ones(3).pin_memory()
        made.append(host.to("cuda", non_blocking=True) + torch.ones(3, device="cuda"))

    thread = threading.Thread(target=prefetch)
    thread.start()
    thread.join()
    assert made[0].is_cuda


def saved_and_loaded() -> None:
    """Copies each way: serialization.py, storage.cpu() and map_location."""
    net = nn.Linear(3, 2)
    kept = io.BytesIO()
    torch.save(net.state_dict(), kept)
    kept.seek(0)
    state = torch.load(kept, map_location="cuda")  # waits: copy_to_device
    twin = nn.Linear(3, 2, device="cuda")
    twin.load_state_dict(state)
    assert state["weight"].is_cuda


def pickled() -> None:
    """Copies to the host: torch/storage.py, __reduce__ saves by torch.save."""
    x = torch.ones(3, device="cuda")
    text = pickle.dumps(x)  # waits: copy_to_host
    assert text


def student_and_teacher() -> None:
    """Distils without a read; the teacher follows by an average."""
    student = nn.Linear(4, 3, device="cuda")
    teacher = copy.deepcopy(student).eval().requires_grad_(False)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(2):
        x = torch.randn(5, 4, device="cuda")
        with torch.inference_mode():
            soft = teacher(x).softmax(dim=1)
        loss = functional.kl_div(student(x).log_softmax(dim=1), soft.clone(), reduction="batchmean")
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters(), strict=True):
                slow.mul_(0.9).add_(fast, alpha=0.1)


def adversaries() -> None:
    """Trains two nets in turn; each step is on the device, the report is not."""
    maker, judge = nn.Linear(2, 3, device="cuda"), nn.Linear(3, 1, device="cuda")
    a = torch.optim.Adam(maker.parameters(), betas=(0.5, 0.9))
    b = torch.optim.Adam(judge.parameters(), betas=(0.5, 0.9))
    real, bce = torch.ones(4, 1, device="cuda"), nn.BCEWithLogitsLoss()
    for step in range(2):
        fake = maker(torch.randn(4, 2, device="cuda"))
        worth = bce(judge(torch.randn(4, 3, device="cuda")), real)
        worth = worth + bce(judge(fake.detach()), 1 - real)
        b.zero_grad()
        worth.backward()
        b.step()
        lie = bce(judge(fake), real)
        a.zero_grad()
        lie.backward()
        a.step()
        if step % 2 == 1:
            print(f"{worth.item():.3f} {lie.item():.3f}")  # waits: sync


def detector_loss() -> None:
    """Matches, lists positives, and normalises by their number."""
    scores = torch.randn(2, 9, 3, device="cuda", requires_grad=True)
    deltas = torch.randn(2, 9, 4, device="cuda", requires_grad=True)
    labels = torch.randint(-1, 3, (2, 9), device="cuda")
    positive = labels > 0
    count = max(1, positive.sum().item())  # waits: sync
    target = functional.one_hot(labels.clamp(min=0), 3).to(scores.dtype)
    focal = functional.binary_cross_entropy_with_logits(scores, target, reduction="none")
    focal = (focal * (labels >= 0)[..., None]).sum() / count
    matched = deltas[positive]  # waits: sync
    near = functional.smooth_l1_loss(matched, torch.zeros_like(matched))
    (focal + near).backward()


def language_step() -> None:
    """Shifts tokens, ignores padding, and divides by the number of words on the device."""
    table, head = nn.Embedding(11, 8, device="cuda"), nn.Linear(8, 11, device="cuda")
    tokens = torch.randint(0, 11, (2, 6), device="cuda")
    x, y = tokens[:, :-1], tokens[:, 1:].clone()
    y[y == 0] = -100
    hidden = table(x)
    hidden = functional.scaled_dot_product_attention(hidden, hidden, hidden, is_causal=True)
    logits = head(hidden)
    words = logits.flatten(0, 1)
    loss = functional.cross_entropy(words, y.flatten(), ignore_index=-100, reduction="sum")
    loss = loss / (y != -100).sum().clamp(min=1)
    loss.backward()


def graph_layer() -> None:
    """Normalises by degree, passes messages, pools by graph; then counts the graphs on the host."""
    x = torch.randn(7, 4, device="cuda")
    edges = torch.randint(0, 7, (2, 12), device="cuda")
    batch = torch.arange(7, device="cuda") // 3
    weight = torch.randn(4, 4, device="cuda", requires_grad=True)
    degree = torch.ones(7, device="cuda").index_add_(0, edges[1], torch.ones(12, device="cuda"))
    norm = degree.rsqrt()
    message = (x @ weight)[edges[0]] * (norm[edges[0]] * norm[edges[1]])[:, None]
    out = torch.zeros(7, 4, device="cuda").index_add(0, edges[1], message)
    graphs = int(batch[-1]) + 1  # waits: sync
    pooled = torch.zeros(graphs, 4, device="cuda").index_add(0, batch, out)
    pooled.logsumexp(dim=1).sum().backward()


def rollout() -> None:
    """Acts in an environment on the host, then learns on the device."""
    net = nn.Linear(2, 3, device="cuda")
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    state, logs, rewards = [0.0, 1.0], [], []
    for _ in range(3):
        seen = torch.tensor(state, device="cuda")  # waits: copy_to_device
        log = net(seen).log_softmax(dim=0)
        action = torch.multinomial(log.exp(), 1)
        logs.append(log.gather(0, action))
        state = [state[1], float(action)]  # waits: sync
        rewards.append(state[1])
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    returns = returns.pin_memory().to("cuda", non_blocking=True)
    loss = -(torch.cat(logs) * (returns - returns.mean())).sum()
    loss.backward()
    optimizer.step()


def diffusion_step() -> None:
    """Draws times and noise on the device and looks up the schedule by index."""
    schedule = torch.linspace(1e-4, 0.02, 10, device="cuda")
    kept = torch.cumsum(torch.log1p(-schedule), dim=0).exp()
    net = nn.Conv2d(2, 2, 3, padding=1, device="cuda")
    x = torch.randn(3, 2, 4, 4, device="cuda")
    t = torch.randint(0, 10, (3,), device="cuda")
    noise = torch.randn_like(x)
    a = kept[t].view(-1, 1, 1, 1)
    functional.mse_loss(net(a.sqrt() * x + (1 - a).sqrt() * noise), noise).backward()


def diffusion_sampler() -> None:
    """Walks the schedule in Python; each coefficient is read from the device."""
    kept = torch.linspace(0.99, 0.1, 4, device="cuda")
    x = torch.randn(1, 2, 4, 4, device="cuda")
    for t in reversed(range(4)):
        a = kept[t].item()  # waits: sync
        x = (x - (1 - a) ** 0.5 * torch.tanh(x)) / a**0.5
    x = x.clamp(-1, 1)


def image_to_host() -> None:
    """Converts on the device and copies once."""
    x = torch.rand(2, 3, 4, 4, device="cuda")
    pixels = (x * 255).round().to(torch.uint8).permute(0, 2, 3, 1)
    array = pixels.contiguous().cpu().numpy()  # waits: copy_to_host
    assert array.shape == (2, 4, 4, 3)


def meter() -> None:
    """Keeps an average in a class of its own; the reader waits."""

    class Meter:
        def __init__(self):
            self.total, self.count = 0.0, 0

        def update(self, value, n=1):
            self.total += float(value) * n  # waits: sync
            self.count += n

    losses = Meter()
    for _ in range(2):
        losses.update(torch.rand((), device="cuda"), n=4)
    assert losses.count == 8
