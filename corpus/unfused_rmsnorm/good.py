import torch
from torch import nn


def layer(width, wide):
    feed = nn.Linear(width, width) if wide else nn.Identity()
    return nn.Sequential(nn.RMSNorm(width, eps=1e-6), feed)


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
