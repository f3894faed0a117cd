import copy

import torch
from torch import nn

DECAY = 0.999


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def update_average(average, model):
    kept, new = list(average.parameters()), list(model.parameters())
    torch._foreach_lerp_(kept, new, 1 - DECAY)


def build(knobs):
    device, width = knobs["device"], knobs["width"]
    model = nn.Sequential(*(Block(width) for _ in range(knobs["blocks"])), nn.Linear(width, 10))
    model.to(device)
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(knobs["batch"], width, device=device)
    y = torch.randint(10, (knobs["batch"],), device=device)

    def step():
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            update_average(average, model)
        return loss.detach()

    return step
