"""Pictures of the size of CIFAR's: made here, since nothing is fetched, one file for each."""

import zlib
from pathlib import Path

import numpy as np

CLASSES = 10
SIDE = 32


def make(folder, count, seed=0):
    """Write `count` pictures below `folder`, unless they are there; return their files in order."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    files = []
    for number in range(count):
        kind = number % CLASSES
        angle, shift = kind * np.pi / CLASSES, random.uniform(0, 2 * np.pi, 3)
        stripes = (rows * np.sin(angle) + columns * np.cos(angle)) / 3
        picture = 127 + 80 * np.sin(stripes + shift[:, None, None])
        picture += random.normal(0, 20, picture.shape)
        file = folder / f"{number:05}.z"
        if not file.exists():
            file.write_bytes(zlib.compress(picture.clip(0, 255).astype(np.uint8).tobytes()))
        files.append(file)
    return files


def read(file):
    """A picture, shape (3, SIDE, SIDE), from 0 to 1, and what kind it is."""
    stored = np.frombuffer(zlib.decompress(file.read_bytes()), np.uint8)
    return stored.reshape(3, SIDE, SIDE).astype(np.float32) / 255, int(file.stem) % CLASSES
