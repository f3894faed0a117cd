import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        for layer in self.layers:
            x = x + nn.functional.gelu(layer(x))
        return self.norm(x)


class Tagger(nn.Module):
    """Encodes documents whose missing parts are NaN, then tags each field with its own head."""

    def __init__(self, width, depth, fields):
        super().__init__()
        self.encoder = Encoder(width, depth)
        self.reduce = nn.Linear(width, 64)
        self.fields = nn.ModuleList(
            nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4)) for _ in range(fields)
        )

    def forward(self, x, missing):
        states = self.encoder(x)
        gap = missing & (states.abs().sum(-1) > 0)
        if gap.any():  # planted: B2
            states = states.masked_fill(gap.unsqueeze(-1), 0.0)
        small = self.reduce(states.mean(1))
        return torch.stack([field(small) for field in self.fields], dim=1)


def build(knobs):
    device, width = knobs["device"], 64 * knobs["width"]
    model = Tagger(width, knobs["depth"], knobs["fields"]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    shape = (knobs["batch"], 16 * knobs["length"])
    x = torch.randn(*shape, width, device=device)
    missing = torch.rand(shape, device=device) < 0.1
    target = torch.randint(4, (knobs["batch"] * knobs["fields"],), device=device)

    def step():
        optimizer.zero_grad()
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            logits = model(x, missing)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1).float(), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
