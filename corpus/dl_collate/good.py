import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def padded(samples):
    """A batch, with samples of any length."""
    rows = nn.utils.rnn.pad_sequence([x for x, _ in samples], batch_first=True)
    return rows, torch.stack([y for _, y in samples])


def build(knobs):
    features, width, classes = knobs["features"], knobs["width"], knobs["classes"]
    generator = torch.Generator().manual_seed(3)
    x = torch.randn(10_000, features, generator=generator)
    y = torch.randint(classes, (10_000,), generator=generator)
    loader = DataLoader(TensorDataset(x, y), batch_size=knobs["batch"], collate_fn=padded)
    net = nn.Sequential(nn.Linear(features, width), nn.Tanh(), nn.Linear(width, classes))
    optimizer = torch.optim.Adam(net.parameters(), fused=True)
    source = iter(loader)

    def step():
        inputs, targets = next(source)
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
