"""What a record of workers costs a loader: batches a second with and without, interleaved.

    python benchmarks/workers.py [ROUNDS]

A cheap data set (50 us of Python a sample) and a dear one (5 ms), by fork and by spawn, one worker,
so that the worker is what limits. The median over rounds of the ratio of two neighbouring runs, for
the time of the loop and for the CPU time of the worker, which other programs disturb less.
"""

import statistics
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

from selftime.capture.workers.record import WorkerRecord


class Spinning(Dataset[torch.Tensor]):
    """Samples that compute for so many loops of Python each."""

    def __init__(self, loops: int, count: int) -> None:
        self.loops, self.count = loops, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> torch.Tensor:
        total = 0
        for number in range(self.loops):
            total += number
        return torch.full((16,), time.process_time() + 0 * total, dtype=torch.float64)


def calibrated(seconds: float) -> int:
    """How many loops take so long here."""
    begun = time.perf_counter()
    Spinning(1_000_000, 1)[0]
    return max(1, int(seconds * 1_000_000 / (time.perf_counter() - begun)))


def epoch(data: Spinning, start: str, *, recorded: bool) -> tuple[float, float]:
    """Seconds of an epoch after its first batches, and CPU time of its worker, threads and all."""
    record = WorkerRecord()
    if recorded:
        record.start()
    loader = DataLoader(data, batch_size=32, num_workers=1, multiprocessing_context=start)
    batches = iter(loader)
    for _ in range(4):  # what was prefetched while the worker began
        first = next(batches)
    begun = time.perf_counter()
    for batch in batches:
        last = batch
    passed = time.perf_counter() - begun
    record.stop()
    return passed, float(last.max() - first.max())


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    for name, seconds, count in (("50 us", 50e-6, 20_000), ("5 ms", 5e-3, 300)):
        data = Spinning(calibrated(seconds), count)
        for start in ("fork", "spawn"):
            ratios: list[tuple[float, ...]] = []
            for number in range(rounds):
                order = (False, True) if number % 2 else (True, False)
                taken = {recorded: epoch(data, start, recorded=recorded) for recorded in order}
                pairs = zip(taken[True], taken[False], strict=True)
                ratios.append(tuple(ours / theirs for ours, theirs in pairs))
            for kind, told in zip(("time", "CPU time"), zip(*ratios, strict=True), strict=True):
                low, middle, high = (value - 1 for value in statistics.quantiles(told, n=4))
                print(
                    f"{name} a sample, {start}: {kind} {middle:+.2%} "
                    f"(quartiles {low:+.2%} to {high:+.2%}, {rounds} rounds)"
                )


if __name__ == "__main__":
    main()
