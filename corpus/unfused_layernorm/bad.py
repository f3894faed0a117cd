import torch
from torch import nn


class Normalise(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)  # planted: E6
        variance = x.var(-1, unbiased=False, keepdim=True)  # planted: E6
        x = (x - mean) / torch.sqrt(variance + 1e-5)  # planted: E6
        return self.weight * x + self.bias  # planted: E6


class Residual(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.norm = Normalise(width)
        self.inner = nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))

    def forward(self, x):
        return x + self.inner(self.norm(x))


def build(knobs):
    width, device = 32 * knobs["width"], knobs["device"]
    blocks = [Residual(width, 16 * knobs["inner"]) for _ in range(knobs["blocks"])]
    model = nn.Sequential(*blocks, Normalise(width), nn.Linear(width, 8)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(knobs["rows"], width, device=device)
    y = torch.randint(8, (knobs["rows"],), device=device)

    def step():
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
