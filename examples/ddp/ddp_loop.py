"""Train in several processes, of which one has more to load: the other ranks wait for it.

torchrun --standalone --nproc-per-node 2 examples/ddp/ddp_loop.py
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset


class Clips(Dataset):
    """Clips of features; those of the last rank are four times as long."""

    def __init__(self, rank, ranks):
        self.length = 256 if rank == ranks - 1 else 64

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        clip = torch.sin(torch.arange(self.length * 128, dtype=torch.float32) + index)
        return clip.view(self.length, 128).cumsum(0).tanh().mean(0), index % 8


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()

    dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    rank = dist.get_rank()
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(0)
    torch.set_num_threads(1)
    layers = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 8))
    network = DistributedDataParallel(layers.to(device))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    loader = DataLoader(Clips(rank, dist.get_world_size()), batch_size=32)
    for step, (clips, kinds) in enumerate(loader):
        if step == options.steps:
            break
        loss = cross_entropy(network(clips.to(device)), kinds.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if rank == 0:
        print(f"loss {loss.item():.3f} after {options.steps} steps")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
