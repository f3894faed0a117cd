"""Stop with a status when the loss is no number."""

import math
import sys

import torch


def main():
    torch.manual_seed(0)
    layers = torch.nn.Sequential(torch.nn.Linear(50, 200), torch.nn.Tanh(), torch.nn.Linear(200, 1))
    optimizer = torch.optim.SGD(layers.parameters(), lr=0.05)
    for step in range(10_000):
        x = torch.randn(256, 50)
        target = x.sum(1, keepdim=True) if step < 200 else torch.full((256, 1), float("nan"))
        loss = torch.nn.functional.mse_loss(layers(x), target)
        if not math.isfinite(loss.item()):
            print(f"the loss is {loss.item()} at step {step}", file=sys.stderr)
            return 3
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return 0


sys.exit(main())
