"""A temperature that cools from step to step goes into a compiled loss as a Python number."""

import torch
from torch import nn
from torch._dynamo import config


def build(knobs):
    # Past this many versions PyTorch would give up and run the function uncompiled.
    config.recompile_limit = 1000
    config.accumulated_recompile_limit = 1000
    config.specialize_float = True
    width = knobs["width"]
    layers = [nn.Linear(width, width) for _ in range(knobs["layers"])]
    model = nn.Sequential(*layers, nn.Linear(width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(knobs["batch"], width), torch.randint(0, 10, (knobs["batch"],))
    temperature = 4.0

    @torch.compile(backend="aot_eager")
    def softened(scores, labels, temperature):
        return nn.functional.cross_entropy(scores / temperature, labels) * temperature**2

    def step():
        nonlocal temperature
        temperature = 1 + (temperature - 1) * knobs["decay_permille"] / 1000
        optimizer.zero_grad()
        scores = model(x)
        loss = softened(scores, y, temperature)  # planted: H1
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
