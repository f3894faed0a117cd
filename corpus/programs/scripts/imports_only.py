"""Count words; torch is imported for a type that nobody uses."""

import random
from collections import Counter

import torch

Score = torch.Tensor | float

random.seed(0)
syllables = ["ba", "do", "ki", "lu", "me", "no", "pa", "ri", "so", "tu"]
text = " ".join("".join(random.choices(syllables, k=random.randint(1, 3))) for _ in range(400_000))
counts = Counter(text.split())
pairs = Counter(zip(text.split()[:-1], text.split()[1:]))
for word, count in counts.most_common(5):
    print(f"{word:8} {count}")
print(len(pairs), "pairs")
