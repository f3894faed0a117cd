"""Train a small network to label every pixel of drawn scenes; some pixels have no label.

The loss is written as one thinks of it: choose the pixels that count, then compare. On a GPU every
choice makes the host wait. `masked_loss_fixed.py` is the same, repaired.
"""

import argparse
import time

import torch
from scenes import BACKGROUND, CLASSES, IGNORED, draw
from torch import nn


class PixelNet(nn.Module):
    """Convolutions that keep the size of the image."""

    def __init__(self, width=10, depth=3):
        super().__init__()
        layers = [nn.Conv2d(3, width, 3, padding="same"), nn.ReLU()]
        for _ in range(depth - 1):
            layers += [nn.Conv2d(width, width, 3, padding="same"), nn.ReLU()]
        self.layers = nn.Sequential(*layers, nn.Conv2d(width, CLASSES, 3, padding="same"))

    def forward(self, images):
        return self.layers(images)


class MaskedLoss(nn.Module):
    """Cross entropy over the pixels of things; nothing is learned where there is one thing only."""

    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss()

    def forward(self, outputs, labels):
        labels = labels.clone()
        background = torch.nonzero(labels == BACKGROUND, as_tuple=True)
        labels[background] = IGNORED
        kinds = torch.unique(labels)
        counts = labels != IGNORED
        loss = self.loss(outputs.permute(0, 2, 3, 1)[counts], labels[counts])
        return 0.0 * loss if len(kinds) < 2 else loss


def main(criterion=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--size", type=int, default=64, help="height and width of an image")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    network = PixelNet().to(device)
    criterion = criterion or MaskedLoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    begin = time.perf_counter()
    for _ in range(options.steps):
        images, labels = draw(options.batch, options.size)
        if device.type == "cuda":
            images, labels = images.pin_memory(), labels.pin_memory()
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(network(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f} after {options.steps} steps", end=", ")
    print(f"{(time.perf_counter() - begin) / options.steps * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main()
