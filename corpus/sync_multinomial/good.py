import torch
from torch import nn


class Towers(nn.Module):
    """Users and items in one space, learned against items drawn by popularity."""

    def __init__(self, items, width, depth):
        super().__init__()
        self.items = nn.Embedding(items, width)
        self.user = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.user:
            x = x + torch.relu(layer(x))
        return x


def draw(popularity, count):
    noise = torch.empty_like(popularity).exponential_()
    return (popularity / noise).topk(count).indices


def build(knobs):
    device, width, items = knobs["device"], 64 * knobs["width"], 1024 * knobs["items"]
    towers = Towers(items, width, knobs["depth"]).to(device)
    optimizer = torch.optim.SGD(towers.parameters(), lr=1e-3, fused=True)
    popularity = 1.0 / torch.arange(1, items + 1, device=device, dtype=torch.float32)
    x = torch.randn(64 * knobs["batch"], width, device=device)
    bought = torch.randint(items, (x.shape[0],), device=device)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            users = towers(x)
            others = towers.items(draw(popularity, 64 * knobs["negatives"]))
            right = (users * towers.items(bought)).sum(-1, keepdim=True)
            scores = torch.cat([right, users @ others.T], dim=1).float()
        loss = -(scores / width**0.5).log_softmax(-1)[:, 0].mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
