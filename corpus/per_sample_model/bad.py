import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.first = nn.Conv1d(channels, width, 3, padding=1)
        self.second = nn.Conv1d(width, width, 3, padding=1)
        self.out = nn.Linear(width, 32)

    def forward(self, x):
        x = nn.functional.relu(self.second(nn.functional.relu(self.first(x))))
        return nn.functional.normalize(self.out(x.mean(-1)), dim=-1)


def encoded(model, windows):
    found = []
    for window in windows:
        vector = model(window[None])  # planted: D10
        found.append(vector[0])
    return torch.stack(found)


def build(knobs):
    device = knobs["device"]
    model = Encoder(8, knobs["width"]).to(device).eval()
    windows = torch.randn(knobs["windows"], 8, 64, device=device)

    def step():
        with torch.inference_mode():
            return encoded(model, windows).cumsum(0)

    return step
