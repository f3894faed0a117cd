"""A compiled model whose batches have several lengths, so that it is compiled again."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(1000, 96)
        self.mix = nn.Conv1d(96, 96, 5, padding=2)
        self.tag = nn.Linear(96, 12)

    def forward(self, tokens):
        x = self.embed(tokens).transpose(1, 2)
        x = torch.relu(self.mix(x)) + x
        return self.tag(x.transpose(1, 2))


def main():
    torch.manual_seed(0)
    model = Tagger()
    compiled = torch.compile(model, backend="aot_eager", dynamic=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(200):
        length = 32 if step < 60 else 40 if step < 130 else 48
        tokens = torch.randint(0, 1000, (16, length))
        loss = nn.functional.cross_entropy(compiled(tokens).flatten(0, 1), tokens.flatten() % 12)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(step, loss.item())


main()
