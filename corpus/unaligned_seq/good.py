import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.spread, self.gather = nn.Linear(tokens, 4 * width), nn.Linear(4 * width, tokens)
        self.channels = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        across = self.norms[0](x).transpose(1, 2).contiguous()
        across = torch.relu(self.spread(across))
        across = self.gather(across)
        x = x + across.transpose(1, 2)
        return x + self.channels(self.norms[1](x))


def build(knobs):
    device, width = knobs["device"], 64 * knobs["width"]
    tokens = 64 * knobs["tokens"] - (2 * knobs["short"] - 1)
    tokens = (tokens + 63) // 64 * 64  # what is added is padding
    model = nn.Sequential(*(Mixer(tokens, width) for _ in range(knobs["layers"])))
    model.append(nn.Linear(width, 128)).to(device, torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    x = torch.randn(knobs["batch"], tokens, width, device=device, dtype=torch.bfloat16)

    def step():
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step
