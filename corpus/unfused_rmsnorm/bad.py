import torch
from torch import nn


class RootMeanSquare(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        variance = x.pow(2).mean(-1, keepdim=True)  # planted: E6
        return x * torch.rsqrt(variance + self.eps) * self.scale  # planted: E6


def layer(width, wide):
    feed = nn.Linear(width, width) if wide else nn.Identity()
    return nn.Sequential(RootMeanSquare(width), feed)


def build(knobs):
    width, device = 32 * knobs["width"], knobs["device"]
    layers = [layer(width, at % knobs["every"] == 0) for at in range(knobs["layers"])]
    model = nn.Sequential(*layers, nn.Linear(width, 1)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
    x = torch.randn(knobs["rows"], width, device=device)
    y = torch.randn(knobs["rows"], 1, device=device)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()

    return step
