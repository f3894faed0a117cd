"""A small model proposes tokens, a large one accepts or rejects them."""

import torch
from torch import nn

VOCABULARY, AHEAD = 200, 4


def language_model(width, layers):
    parts = [nn.Embedding(VOCABULARY, width)]
    for _ in range(layers):
        parts += [nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)]
    return nn.Sequential(*parts, nn.Linear(width, VOCABULARY)).eval()


@torch.no_grad()
def speculate(draft, target, ids, length):
    rounds = accepted = 0
    while rounds < length:
        proposal = ids
        for _ in range(AHEAD):
            p = draft(proposal[-1:]).softmax(-1)[-1]
            proposal = torch.cat([proposal, torch.multinomial(p, 1)])
        fresh = proposal[len(ids) - 1 :]
        q = target(fresh[:-1]).softmax(-1)
        p = draft(fresh[:-1]).softmax(-1)
        chosen = fresh[1:, None]
        ratio = (q.gather(1, chosen) / p.gather(1, chosen)).squeeze(1)
        keep = int((torch.rand(AHEAD) < ratio).cumprod(0).sum())
        ids = torch.cat([ids, fresh[1 : keep + 1]])
        if keep < AHEAD:
            ids = torch.cat([ids, torch.multinomial((q[keep] - p[keep]).clamp(min=1e-9), 1)])
        rounds += 1
        accepted += keep
    return ids, accepted / (rounds * AHEAD)


torch.manual_seed(0)
small, large = language_model(32, 1), language_model(768, 6)
ids, rate = speculate(small, large, torch.tensor([1]), 150)
print(f"{len(ids)} tokens, {rate:.0%} accepted")
