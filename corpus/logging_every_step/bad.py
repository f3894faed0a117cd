import logging
import tempfile

import torch
from torch import nn

logger = logging.getLogger("train")


class Meter:
    """The running mean of each figure."""

    def __init__(self):
        self.sums, self.count = {}, 0

    def update(self, **figures):
        self.count += 1
        for name, value in figures.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def means(self):
        return {name: total / self.count for name, total in self.sums.items()}


def start_log():
    target = tempfile.NamedTemporaryFile("w", suffix=".log")  # noqa: SIM115 - closed at the end
    handler = logging.StreamHandler(target)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False


def build(knobs):
    start_log()
    width, classes = knobs["width"], knobs["classes"]
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, classes))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=True)
    x, y = torch.randn(64, width), torch.randint(classes, (64,))
    meter = Meter()
    seen = 0

    def step():
        nonlocal seen
        optimizer.zero_grad()
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        hits = (logits.detach().argmax(1) == y).float()
        share = torch.zeros(classes).index_add_(0, y, hits).tolist()
        meter.update(loss=loss.item(), **{f"class_{i}": hit for i, hit in enumerate(share)})
        seen += 1
        for name, value in meter.means().items():
            logger.info("step %d %s %.4f", seen, name, value)  # planted: D5
        return loss.detach()

    return step
