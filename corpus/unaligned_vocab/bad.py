import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, vocabulary, width, layers):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.body = nn.Sequential(
            *(nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(layers))
        )
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.body(self.table(tokens))
        return self.head(x)  # planted: E3


def build(knobs):
    device = knobs["device"]
    vocabulary = 64 * knobs["vocabulary"] - (2 * knobs["short"] - 1)
    model = Model(vocabulary, 64 * knobs["width"], knobs["layers"]).to(device, torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    tokens = torch.randint(vocabulary, (knobs["batch"], 65), device=device)

    def step():
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step
