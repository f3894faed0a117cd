"""Train a small residual network on scikit-learn's handwritten digits.

The repaired twin of `train.py`: the same network, data and learning in a fraction of the time.
"""

import argparse
import time

import torch
from network import DigitNet
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from torch import nn

TRAIN_IMAGES = 1440
BATCH = 32


def prepare(images, device):
    """Every image enlarged to 32x32 and given three channels: once, in float32, on the device."""
    large = zoom(images, (1, 4, 4), order=3) / 16.0
    return torch.from_numpy(large).to(device, torch.float32).unsqueeze(1).repeat(1, 3, 1, 1)


def train_epoch(network, images, labels, optimizer, order):
    network.train()
    losses = []
    correct = torch.zeros((), dtype=torch.int64, device=images.device)
    for batch in order.split(BATCH):
        optimizer.zero_grad()
        outputs = network(images[batch])
        loss = nn.functional.cross_entropy(outputs, labels[batch])
        loss.backward()
        optimizer.step()

        losses.append(loss.detach())
        correct += (outputs.argmax(dim=1) == labels[batch]).sum()
    history = torch.stack(losses)
    print(f"loss {history.mean().item():.3f} acc {correct.item() / len(order):.3f}")
    return history


@torch.no_grad()
def accuracy(network, images, labels):
    network.eval()
    return (network(images).argmax(dim=1) == labels).double().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--steps", type=int, help="steps of an epoch (default: all)")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    digits = load_digits()
    images = prepare(digits.images, device)
    labels = torch.from_numpy(digits.target).to(device)

    network = DigitNet().to(device)
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, fused=True)
    for epoch in range(options.epochs):
        start = time.perf_counter()
        order = torch.randperm(TRAIN_IMAGES, device=device)
        if options.steps is not None:
            order = order[: options.steps * BATCH]
        train_epoch(network, images[:TRAIN_IMAGES], labels[:TRAIN_IMAGES], optimizer, order)
        seconds = time.perf_counter() - start
        share = accuracy(network, images[TRAIN_IMAGES:], labels[TRAIN_IMAGES:])
        print(f"epoch {epoch}: {seconds:.2f} s, {share:.1%} of the test images are right")


if __name__ == "__main__":
    main()
