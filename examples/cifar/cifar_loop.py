"""Train a small residual network on pictures of the size of CIFAR's, as a first program does.

Each stage of docs/tutorial-cifar.md is a flag: `--workers 1` loads in a process of its own,
`--turn batch` turns the pictures of a batch at once, `--autocast` computes in bfloat16.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from pictures import CLASSES, make, read
from scipy import ndimage
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, Dataset

MOST_DEGREES = 15.0


class Pictures(Dataset):
    """Pictures from their files, each turned by a few degrees."""

    def __init__(self, files, turned):
        self.files = files
        self.turned = turned

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        picture, kind = read(self.files[index])
        if self.turned:
            angle = MOST_DEGREES * (2 * torch.rand(()).item() - 1)
            picture = ndimage.rotate(picture, angle, axes=(1, 2), reshape=False, mode="nearest")
        return torch.from_numpy(picture), kind


def turn(pictures):
    """The pictures of a batch, each turned by a few degrees."""
    angles = (torch.rand(len(pictures)) * 2 - 1) * np.deg2rad(MOST_DEGREES)
    sine, cosine, zero = angles.sin(), angles.cos(), torch.zeros(len(pictures))
    turns = torch.stack([cosine, -sine, zero, sine, cosine, zero], dim=1).view(-1, 2, 3)
    grid = functional.affine_grid(turns, pictures.shape, align_corners=False)
    return functional.grid_sample(pictures, grid, padding_mode="border", align_corners=False)


class Block(nn.Module):
    """Two convolutions whose result is added to their input."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False)

    def forward(self, features):
        inner = functional.relu(self.norm1(self.conv1(features)))
        return functional.relu(self.norm2(self.conv2(inner)) + self.shortcut(features))


class ResNet(nn.Module):
    """A stem, three blocks, each with half the side of the one before, and a linear layer."""

    def __init__(self, width):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.blocks = nn.Sequential(
            Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2)
        )
        self.head = nn.Linear(4 * width, CLASSES)

    def forward(self, pictures):
        features = functional.relu(self.norm(self.stem(pictures)))
        return self.head(self.blocks(features).mean(dim=(2, 3)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--turn", choices=["sample", "batch"], default="sample")
    parser.add_argument("--autocast", action="store_true")
    parser.add_argument("--data", default=Path(tempfile.gettempdir(), "selftime-pictures"))
    options = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)  # one for each process
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    files = make(options.data, 512)
    rounds = options.steps * options.batch // len(files) + 1
    loader = DataLoader(
        Pictures(files * rounds, turned=options.turn == "sample"),
        batch_size=options.batch,
        shuffle=True,
        num_workers=options.workers,
    )
    network = ResNet(options.width).to(device)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
    ends = []
    for step, (pictures, kinds) in enumerate(loader):
        if step == options.steps:
            break
        pictures, kinds = pictures.to(device), kinds.to(device)
        if options.turn == "batch":
            pictures = turn(pictures)
        with torch.autocast(device.type, torch.bfloat16, enabled=options.autocast):
            loss = functional.cross_entropy(network(pictures), kinds)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        ends.append((time.perf_counter(), time.process_time()))
    print(f"loss {loss.item():.3f} after {options.steps} steps", end=", ")
    whole, computed = 1e3 * np.median(np.diff(ends, axis=0), axis=0)
    print(f"{whole:.1f} ms a step, in {computed:.1f} of which this process computed")


if __name__ == "__main__":
    main()
