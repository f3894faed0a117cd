import torch
from torch import nn


def forever(batches):
    while True:
        yield from batches()


def build(knobs):
    device, width, batch = knobs["device"], knobs["width"], 32 * knobs["batch"]
    data, target = torch.randn(8192, width), torch.randint(10, (8192,))
    model = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, 10))
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)

    def loaded():
        for chosen in torch.randperm(len(data)).split(batch):
            yield data[chosen], target[chosen]

    batches = forever(loaded)

    def step():
        x, y = next(batches)
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
