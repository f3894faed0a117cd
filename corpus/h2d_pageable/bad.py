import torch
from torch import nn


class Mixer(nn.Module):
    """Signals of many sensors: mixed over time, then over sensors."""

    def __init__(self, sensors, length, hidden, depth):
        super().__init__()
        self.time = nn.Linear(length, hidden)
        self.deep = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(depth))
        self.last = nn.Linear(sensors * 8, 16)
        self.narrow = nn.Linear(hidden, 8)

    def forward(self, x):
        x = self.time(x)
        for layer in self.deep:
            x = x + nn.functional.gelu(layer(x))
        return self.last(self.narrow(x).flatten(1))


def build(knobs):
    device, sensors, length = knobs["device"], 8 * knobs["sensors"], 64 * knobs["length"]
    model = Mixer(sensors, length, 128 * knobs["hidden"], knobs["depth"]).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    batches = [torch.randn(16 * knobs["batch"], sensors, length) for _ in range(4)]
    targets = torch.randint(16, (16 * knobs["batch"],), device=device)
    at = 0

    def step():
        nonlocal at
        at = (at + 1) % len(batches)
        x = batches[at].to(device)  # planted: C1
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            logits = model(x)
        loss = nn.functional.cross_entropy(logits.float(), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
