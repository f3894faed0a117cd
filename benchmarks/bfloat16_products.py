"""From how many operations an element on a product gains from bfloat16, conversions included.

    python benchmarks/bfloat16_products.py [ROUNDS]

A linear layer, forward and backward, in float32 and under `torch.autocast("cpu", torch.bfloat16)`
in turn, by the processor's time, which other programs disturb less than time. Each line has the
operations for each element that the product reads and writes, as `unused_matrix_units` counts them,
and the median of the ratios with their quartiles: below 1 bfloat16 is faster. It tells of that rule
only on a CPU with matrix units (AMX).
"""

import statistics
import sys
import time
from itertools import product

import torch

ROWS = (16, 32, 64, 128, 256, 512, 2048)
FEATURES = (128, 256, 512, 1024, 2048)
SECONDS = 0.02
"""Processor time in s for which each of the two is repeated in a round."""


def seconds_of_step(layer: torch.nn.Linear, x: torch.Tensor, *, in_bfloat16: bool) -> float:
    """Returns the processor time of a forward and a backward pass, in s."""
    count, began = 0, time.process_time()
    while not count or time.process_time() - began < SECONDS:
        with torch.autocast("cpu", torch.bfloat16, enabled=in_bfloat16):
            y = layer(x)
        y.backward(torch.ones_like(y))
        count += 1
    return (time.process_time() - began) / count


def main() -> None:
    torch.set_num_threads(1)
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    units: bool = torch.cpu._is_amx_tile_supported()  # noqa: SLF001 - none is public
    print(f"matrix units (AMX): {units}")
    told = []
    for rows, features in product(ROWS, FEATURES):
        layer = torch.nn.Linear(features, features, bias=False)
        x = torch.randn(rows, features, requires_grad=True)
        ratios = []
        for number in range(rounds + 1):
            order = (False, True) if number % 2 else (True, False)
            taken = {way: seconds_of_step(layer, x, in_bfloat16=way) for way in order}
            ratios.append(taken[True] / taken[False])
        low, middle, high = statistics.quantiles(ratios[1:], n=4)  # the first prepares
        operations = 2 * rows * features**2 / (2 * rows * features + features**2)
        told.append((operations, rows, features, middle, low, high))
    for operations, rows, features, middle, low, high in sorted(told):
        size = f"{rows} x {features} x {features}"
        print(f"{operations:5.0f}  {size:20} {middle:.2f} ({low:.2f} to {high:.2f})")


if __name__ == "__main__":
    main()
