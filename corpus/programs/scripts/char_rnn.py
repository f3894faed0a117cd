"""Train a recurrent model of characters, then write with it."""

import torch
from torch import nn

TEXT = "to be or not to be that is the question whether tis nobler in the mind to suffer " * 40
letters = sorted(set(TEXT))
codes = {letter: number for number, letter in enumerate(letters)}
data = torch.tensor([codes[letter] for letter in TEXT])


class CharRNN(nn.Module):
    def __init__(self, size, hidden=96):
        super().__init__()
        self.embed = nn.Embedding(size, 32)
        self.rnn = nn.GRU(32, hidden, batch_first=True)
        self.out = nn.Linear(hidden, size)

    def forward(self, x, state=None):
        y, state = self.rnn(self.embed(x), state)
        return self.out(y), state


def batch(count=16, length=40):
    starts = torch.randint(0, len(data) - length - 1, (count,))
    rows = torch.stack([data[s : s + length + 1] for s in starts])
    return rows[:, :-1], rows[:, 1:]


def write(model, first, length):
    model.eval()
    written, state = [first], None
    last = torch.tensor([[codes[first]]])
    with torch.no_grad():
        for _ in range(length):
            logits, state = model(last, state)
            last = torch.multinomial(logits[0, -1].softmax(0), 1)[None]
            written.append(letters[last.item()])
    return "".join(written)


torch.manual_seed(0)
model = CharRNN(len(letters))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for iteration in range(80):
    x, y = batch()
    logits, _ = model(x)
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), y)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    optimizer.step()
print(loss.item())
print(write(model, "t", 2000))
