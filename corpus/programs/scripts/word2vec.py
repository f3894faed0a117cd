import random
from collections import Counter

import torch
from torch import nn

random.seed(0)
torch.manual_seed(0)
words = "the a king queen man woman walks runs to from castle river with sword crown and".split()
text = [words[int(random.triangular(0, len(words), 2))] for _ in range(60_000)]

counts = Counter(text)
index = {word: number for number, (word, _) in enumerate(counts.most_common())}
ids = torch.tensor([index[word] for word in text])
frequency = torch.tensor([counts[word] for word in index], dtype=torch.float) ** 0.75

pairs = []
for offset in (-2, -1, 1, 2):
    shifted = ids.roll(-offset)
    pairs.append(torch.stack([ids, shifted], 1)[2:-2])
pairs = torch.cat(pairs)
pairs = pairs[torch.randperm(len(pairs))]

center = nn.Embedding(len(index), 100, sparse=True)
context = nn.Embedding(len(index), 100, sparse=True)
optimizer = torch.optim.SparseAdam([center.weight, context.weight], lr=0.005)
for number, batch in enumerate(pairs.split(1024)):
    noise = torch.multinomial(frequency, len(batch) * 5, replacement=True).view(-1, 5)
    c = center(batch[:, 0])
    good = (c * context(batch[:, 1])).sum(1)
    bad = torch.bmm(context(noise), c[:, :, None]).squeeze(2)
    loss = -(nn.functional.logsigmoid(good).mean() + nn.functional.logsigmoid(-bad).mean())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if number % 50 == 0:
        print(number, loss.item())
