"""Sentences of many lengths, and a cache that is emptied "to save memory"."""

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, hidden, layers, tags=17, words=1000):
        super().__init__()
        self.embed = nn.Embedding(words, hidden)
        self.mix = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.out = nn.Linear(hidden, tags)

    def forward(self, words):
        x = self.embed(words)
        for mix in self.mix:
            x = x + torch.nn.functional.gelu(mix(x))
        return self.out(x)


def build(knobs):
    device = torch.device(knobs["device"])
    model = Tagger(knobs["hidden"], knobs["layers"]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lengths = torch.randint(knobs["longest"] // 2, knobs["longest"] + 1, (256,)).tolist()
    sentences = [torch.randint(0, 1000, (knobs["batch"], n), device=device) for n in lengths]
    done = 0

    def step():
        nonlocal done
        words = sentences[done % len(sentences)]
        done += 1
        optimizer.zero_grad()
        scores = model(words)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), words.flatten() % 17)
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()  # planted: G1
        return loss.detach()

    return step
