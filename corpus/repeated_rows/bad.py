import torch
from torch import nn


class Scorer(nn.Module):
    def __init__(self, asked, given, width):
        super().__init__()
        self.first = nn.Linear(asked + given, width)
        self.second = nn.Linear(width, 1)

    def forward(self, state, items):
        count = items.shape[1]
        states = state.repeat(count, 1, 1).transpose(0, 1)
        both = torch.cat([states, items], 2)
        hidden = self.first(both)  # planted: E19
        return self.second(torch.tanh(hidden)).squeeze(2)


def build(knobs):
    asked, given, batch = 32 * knobs["asked"], 16, 16
    model = Scorer(asked, given, 64)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    state = torch.randn(1, batch, asked)
    items = torch.randn(batch, 8 * knobs["items"], given)
    targets = torch.randn(batch, 8 * knobs["items"])

    def step():
        optimizer.zero_grad()
        loss = (model(state, items) - targets).square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
