"""What it costs that a DataLoader's worker hands a batch over, by the number of its tensors.

    python benchmarks/hand_over.py [ROUNDS]

Processor time a batch, of the loop's process and of its worker, less that of the same batches made
in the loop's process: other programs disturb it less than time. Tensors hold 16 numbers. The median
of the rounds, each of which has every number of tensors in turn, and a line through the medians.
"""

import statistics
import sys
import time

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

TENSORS = (1, 2, 4, 8, 16, 32)
BATCHES = 300
FIRST = 20
"""Batches that are not counted: the worker starts, and fills its queue."""


class Ready(Dataset[list[torch.Tensor]]):
    """Batches of so many small tensors; the first holds the process's time."""

    def __init__(self, tensors: int) -> None:
        self.tensors = tensors

    def __len__(self) -> int:
        return FIRST + BATCHES

    def __getitem__(self, index: int) -> list[torch.Tensor]:
        made = [torch.full((16,), 1.0) for _ in range(self.tensors)]
        made[0] = torch.full((16,), time.process_time(), dtype=torch.float64)
        return made


def ms_a_batch(tensors: int, workers: int) -> tuple[float, float]:
    """Returns the processor time of the loop's process and of its worker, in ms a batch."""
    loader = DataLoader(Ready(tensors), batch_size=None, num_workers=workers)
    own, theirs = [], []
    for batch in loader:
        own.append(time.process_time())
        theirs.append(float(batch[0][0]))
    ahead = FIRST + 2 * workers  # the worker ends two batches before the loop does
    in_worker = theirs[-1] - theirs[FIRST] if workers else 0.0
    count = len(own) - ahead
    return 1e3 * (own[-1] - own[ahead]) / max(count - 1, 1), 1e3 * in_worker / (BATCHES - 1)


def main() -> None:
    torch.set_num_threads(1)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    added: dict[int, list[tuple[float, float]]] = {count: [] for count in TENSORS}
    for _ in range(rounds):
        for count in TENSORS:
            plain, _ = ms_a_batch(count, 0)
            own, worker = ms_a_batch(count, 1)
            added[count].append((own, own + worker - plain))
    both = []
    for count, told in added.items():
        own, whole = (statistics.median(part) for part in zip(*told, strict=True))
        both.append(whole)
        print(f"{count:3} tensors: {whole:.2f} ms added, {own:.2f} ms in the loop's process")
    each, fixed = np.polyfit(TENSORS, both, 1)
    print(f"{fixed:.2f} ms a batch and {each:.3f} ms a tensor")


if __name__ == "__main__":
    main()
