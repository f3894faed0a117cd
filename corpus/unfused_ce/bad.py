import torch
from torch import nn


class Words(torch.utils.data.Dataset):
    def __init__(self, sentences, length, vocabulary):
        self.tokens = torch.randint(vocabulary, (sentences, length + 1))

    def __len__(self):
        return len(self.tokens)

    def __getitem__(self, index):
        return self.tokens[index, :-1], self.tokens[index, 1:]


def token_loss(logits, target):
    shifted = logits - logits.amax(dim=-1, keepdim=True)  # planted: E6
    exponents = shifted.exp()  # planted: E6
    probabilities = exponents / exponents.sum(dim=-1, keepdim=True)  # planted: E6
    log_likelihood = torch.log(probabilities + 1e-9)  # planted: E6
    return -log_likelihood.gather(1, target.unsqueeze(1)).mean()


def build(knobs):
    vocabulary, width, device = 64 * knobs["vocabulary"], 64, knobs["device"]
    batch = knobs["batch"]
    words = Words(batch, knobs["length"], vocabulary)
    source, target = next(iter(torch.utils.data.DataLoader(words, batch_size=batch)))
    source, target = source.to(device), target.to(device)
    layers = [nn.Sequential(nn.Linear(width, width), nn.GELU()) for _ in range(knobs["layers"])]
    model = nn.Sequential(nn.Embedding(vocabulary, width), *layers, nn.Linear(width, vocabulary))
    model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)

    def step():
        optimizer.zero_grad()
        logits = model(source)
        loss = token_loss(logits.flatten(0, 1), target.flatten())
        loss.backward()
        optimizer.step()

    return step
