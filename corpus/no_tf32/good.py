import torch
from torch import nn


def stage(inputs, outputs):
    return nn.Sequential(nn.Linear(inputs, outputs), nn.ReLU())


class Autoencoder(nn.Module):
    def __init__(self, width, stages):
        super().__init__()
        self.encoder = nn.Sequential(*(stage(width, width) for _ in range(stages)))
        self.decoder = nn.Sequential(*(stage(width, width) for _ in range(stages)))

    def forward(self, x):
        code = self.encoder(x)
        return self.decoder(code)


def build(knobs):
    torch.set_float32_matmul_precision("high")
    width, device = 256 * knobs["width"], knobs["device"]
    model = Autoencoder(width, knobs["stages"]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    batches = [torch.randn(256 * knobs["rows"], width, device=device) for _ in range(2)]

    def step():
        batches.reverse()
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(batches[0]), batches[0])
        loss.backward()
        optimizer.step()

    return step
