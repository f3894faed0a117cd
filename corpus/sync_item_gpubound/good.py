import torch
from torch import nn


class Trunk(nn.Module):
    """Wide layers, which keep a device busy."""

    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return x


class Probes(nn.Module):
    """One small classifier for each attribute, trained on what the trunk has learned."""

    def __init__(self, width, attributes):
        super().__init__()
        self.squeeze = nn.Linear(width, 64)
        self.heads = nn.ModuleList(nn.Linear(64, 8) for _ in range(attributes))

    def forward(self, features, labels):
        small = torch.relu(self.squeeze(features))
        losses = [
            nn.functional.cross_entropy(head(small), labels[:, i])
            for i, head in enumerate(self.heads)
        ]
        return torch.stack(losses).mean()


def build(knobs):
    device, width = knobs["device"], 64 * knobs["width"]
    rows, attributes = 64 * knobs["batch"], knobs["attributes"]
    trunk, probes = Trunk(width, knobs["depth"]).to(device), Probes(width, attributes).to(device)
    learn = torch.optim.SGD(trunk.parameters(), lr=1e-4, fused=True)
    probe = torch.optim.SGD(probes.parameters(), lr=1e-3, fused=True)
    x = torch.randn(rows, width, device=device)
    labels = torch.randint(8, (rows, attributes), device=device)
    history = []

    def step():
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            features = trunk(x)
            loss = (features - x).float().square().mean()
        learn.zero_grad()
        loss.backward()
        learn.step()
        history.append(loss.item())
        with torch.autocast(device, dtype=torch.bfloat16, enabled=device == "cuda"):
            probed = probes(features[:1024].detach(), labels[:1024])
        probe.zero_grad()
        probed.backward()
        probe.step()
        return probed.detach()

    return step
