"""Scenes to learn from: squares of several kinds on a background, drawn anew for every batch."""

import torch

CLASSES = 6
BACKGROUND = 5
IGNORED = -1


def draw(batch, size):
    """Images, shape (batch, 3, size, size), and the class of each pixel, -1 where nobody knows."""
    labels = torch.full((batch, size, size), BACKGROUND)
    for scene in labels:
        for kind in range(BACKGROUND):
            top, left = torch.randint(0, 3 * size // 4, (2,)).tolist()
            scene[top : top + size // 4, left : left + size // 4] = kind
    colours = torch.linspace(-1, 1, CLASSES * 3).reshape(CLASSES, 3)
    images = colours[labels].permute(0, 3, 1, 2) + 0.3 * torch.randn(batch, 3, size, size)
    unknown = torch.rand(batch, size, size) < 0.05
    return images, labels.masked_fill(unknown, IGNORED)
