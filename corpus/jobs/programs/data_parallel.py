"""Trains with DistributedDataParallel on the CPU, with the cause of `CAUSE` planted in it.

    CAUSE=sleep torchrun --nproc-per-node 2 data_parallel.py

Rank 0 prints the mean step in ms. The line of a planted cause ends with `# planted`.
"""

import gc
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

CAUSE = os.environ.get("CAUSE", "none")
LATE_RANK = int(os.environ.get("LATE_RANK", "1"))
STEPS, WIDTH, BATCH = 60, 384, 64


class Samples(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, *, is_late: bool) -> None:
        self.is_late = is_late

    def __len__(self) -> int:
        return STEPS * BATCH

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        if CAUSE == "input" and self.is_late:
            time.sleep(0.0004)  # planted
        sample = torch.full((WIDTH,), float(index % 17))
        return sample, sample.mean()[None]


class Net(nn.Module):
    def __init__(self, *, is_late: bool) -> None:
        super().__init__()
        self.is_late = is_late
        self.layers = nn.Sequential(
            *(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(4)),
            nn.Linear(WIDTH, 1),
        )
        self.table = torch.randn(900, 900)

    def forward(self, x: Tensor) -> Tensor:
        if CAUSE == "compute" and self.is_late:
            self.table = torch.tanh(self.table @ self.table / 900)  # planted
        return self.layers(x)


def words_of(count: int) -> int:
    found = 0
    for number in range(count):
        found += len(str(number)) % 3  # planted
    return found


def main() -> None:
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    rank = dist.get_rank()
    is_late = rank == LATE_RANK
    net = DistributedDataParallel(Net(is_late=is_late))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    loader = DataLoader(Samples(is_late=is_late), batch_size=BATCH)
    draws = torch.Generator().manual_seed(1)
    kept = [[object()] for _ in range(200_000)] if CAUSE == "gc" and is_late else []
    times = []
    begin = time.perf_counter()
    for step, (x, y) in enumerate(loader):
        if CAUSE == "sleep" and is_late:
            time.sleep(0.02)  # planted
        if CAUSE == "python" and is_late:
            words_of(120_000)
        if CAUSE == "gc" and is_late:
            gc.collect()  # planted
        if (
            CAUSE == "jitter"
            and int(torch.randint(dist.get_world_size(), (), generator=draws)) == rank
        ):
            time.sleep(0.02)  # planted
        if CAUSE == "lengths":
            lengths = torch.randint(1, 12, (dist.get_world_size(),), generator=draws)
            x = x.repeat(int(lengths[rank]), 1)  # planted
            y = y.repeat(int(lengths[rank]), 1)
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if CAUSE == "checkpoint" and rank == 0:
            torch.save(net.state_dict(), f"checkpoint_{os.getpid()}.pt")  # planted
        if step >= STEPS // 3:
            times.append(time.perf_counter() - begin)
        begin = time.perf_counter()
    if rank == 0:
        print(f"mean step {1e3 * statistics.mean(times):.3f} ms")
    del kept
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
