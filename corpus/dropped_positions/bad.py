import torch
from torch import nn
from torch.nn import functional


class Filters(nn.Module):
    def __init__(self, classes, width, skipped, layers):
        super().__init__()
        self.enter = nn.Conv1d(classes, width, 1)
        self.filters = nn.ModuleList(nn.Conv1d(width, width, 2) for _ in range(layers))
        self.skips = nn.ModuleList(nn.Conv1d(width, skipped, 1) for _ in range(layers))
        self.leave = nn.Conv1d(skipped, classes, 1)

    def forward(self, x, count):
        x = self.enter(x)
        total = 0
        for filters, skip in zip(self.filters, self.skips, strict=True):
            x = torch.tanh(filters(x))
            part = skip(x)  # planted: E18
            if torch.is_tensor(total):
                total = total[:, :, -part.shape[2] :]
            total = part + total
        return self.leave(torch.relu(total[:, :, -count:])), x


def build(knobs):
    classes, count = 16, 4
    model = Filters(classes, 16, 16 * knobs["skipped"], knobs["layers"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    x = torch.randn(4, classes, 8 * knobs["length"])
    targets = torch.randint(classes, (4, count))

    def step():
        optimizer.zero_grad()
        scores, last = model(x, count)
        loss = functional.cross_entropy(scores, targets) + 0.01 * last.square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
