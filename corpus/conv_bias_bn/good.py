import torch
from torch import nn


def conv(inputs, outputs, stride=1):
    return [
        nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ]


def build(knobs):
    channels, device = 8 * knobs["channels"], knobs["device"]
    layers = conv(3, channels, 2)
    for _ in range(knobs["layers"]):
        layers += conv(channels, channels)
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))
    model = model.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    size = knobs["size"]
    images = torch.randn(knobs["batch"], 3, size, size, device=device)
    images = images.contiguous(memory_format=torch.channels_last)
    labels = torch.randint(10, (knobs["batch"],), device=device)

    def step():
        optimizer.zero_grad()
        with torch.autocast("cuda", torch.bfloat16, enabled=device == "cuda"):
            loss = nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()

    return step
