import torch
from torch import nn


class Recurrent(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        self.cell = nn.GRUCell(size, size)
        self.out = nn.Linear(size, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(x.shape[1], x.shape[2])
        for t in range(x.shape[0]):
            h = self.cell(x[t], h)
            if bool(h.abs().max() > 10.0):
                h = h / 2
        return self.out(h)


torch.manual_seed(0)
scripted = torch.jit.script(Recurrent(64).eval())
traced = torch.jit.trace(nn.Sequential(nn.Linear(64, 64), nn.ReLU()).eval(), torch.randn(32, 64))
scripted.save("recurrent.pt")
loaded = torch.jit.load("recurrent.pt")

total = 0.0
with torch.no_grad():
    for request in range(200):
        signal = torch.randn(24, 32, 64)
        prepared = torch.stack([traced(frame) for frame in signal])
        total += loaded(prepared).mean().item()
print(total / 200)
