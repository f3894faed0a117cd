import torch
from torch import nn


def build(knobs):
    device, width = knobs["device"], 512 * knobs["width"]
    rows = 64 * knobs["rows"] + 2 * knobs["more"] + 1
    layers = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(knobs["layers"])]
    model = nn.Sequential(*layers, nn.Linear(width, 512)).to(device, torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    x = torch.randn(rows, width, device=device, dtype=torch.bfloat16)
    y = torch.randint(512, (rows,), device=device)

    def step():
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
