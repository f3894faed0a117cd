"""Train a small residual network on scikit-learn's handwritten digits.

Written as a first program is. It runs and it learns; `train_fixed.py` is the same, repaired.
"""

import argparse
import time

import numpy as np
import torch
from network import DigitNet
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

TRAIN_IMAGES = 1440


class Digits(Dataset):
    """The 8x8 images of scikit-learn, enlarged to 32x32 and given three channels."""

    def __init__(self, images, labels):
        self.images = images
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = zoom(self.images[index], 4, order=3) / 16.0
        return np.stack([image, image, image]), self.labels[index]


def train_epoch(network, loader, optimizer, device, steps=None):
    network.train()
    losses = []
    correct = seen = 0
    for step, (images, labels) in enumerate(loader):
        if step == steps:
            break
        images = images.to(device)
        labels = labels.to(device)
        optimizer.zero_grad()
        outputs = network(images)
        loss = nn.functional.cross_entropy(outputs, labels)
        loss.backward()
        optimizer.step()

        losses.append(loss.item())
        correct += (outputs.argmax(dim=1) == labels).sum().item()
        seen += len(labels)
        if step % 15 == 0:
            print(f"step {step}: loss {np.mean(losses):.3f}, accuracy {correct / seen:.3f}")
    return losses


@torch.no_grad()
def accuracy(network, loader, device):
    network.eval()
    correct = seen = 0
    for images, labels in loader:
        outputs = network(images.to(device))
        correct += (outputs.argmax(dim=1) == labels.to(device)).sum().item()
        seen += len(labels)
    return correct / seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, help="steps of an epoch (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    digits = load_digits()
    train_set = Digits(digits.images[:TRAIN_IMAGES], digits.target[:TRAIN_IMAGES])
    test_set = Digits(digits.images[TRAIN_IMAGES:], digits.target[TRAIN_IMAGES:])
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True, num_workers=0)
    test_loader = DataLoader(test_set, batch_size=32, num_workers=0)

    network = DigitNet().double().to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for epoch in range(options.epochs):
        start = time.perf_counter()
        train_epoch(network, train_loader, optimizer, device, options.steps)
        seconds = time.perf_counter() - start
        share = accuracy(network, test_loader, device)
        print(f"epoch {epoch}: {seconds:.2f} s, {share:.1%} of the test images are right")


if __name__ == "__main__":
    main()
