"""The host checks for NaN in every step.

## What it means
A guard such as `if torch.isnan(loss):`, or the gradient scaler of float16 training, reads from the
device whether all numbers are finite.

## Why it costs
The queue of the device runs empty while the host waits for the answer, and the device stands idle
until work comes again.

## What to do
Check every so many steps, or on the device: `torch._assert_async`. In place of float16 and a scaler
use bfloat16, whose range needs none; fused optimizers take the scaler's flag on the device.

## Fires on
A guard on the loss.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | nyiiiiiii           nyiiiiiii           nyiiiiiii
    cpu 1  |   jjjjjjj             jjjjjjj             jjjjjjj
    call 1 | k mmmmmmm           k mmmmmmm           k mmmmmmm
    gpu 7  |  kkkkkkk             kkkkkkk             kkkkkkk
    copy 7 |         m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    n = aten::isnan; line = train.py:20 train
    y = aten::any
    i = aten::is_nonzero; line = train.py:20 train
    j = aten::item
    m = Memcpy DtoH (Device -> Pageable)

## Silent on
A wait while the device has work on another stream: nothing stands idle, so it is free.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | nyiii               nyiii               nyiii
    cpu 1  |   jjj                 jjj                 jjj
    call 1 | kommm               kommm               kommm
    gpu 7  |  kkooooooooooooooooookkooooooooooooooooookkoooooooooooooooooo
    copy 20|     m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    n = aten::isnan; line = train.py:20 train
    y = aten::any
    i = aten::is_nonzero; line = train.py:20 train
    j = aten::item
    m = Memcpy DtoH (Device -> Pageable)
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.base import Fix, Outcome, rule
from selftime.advice.detectors.wait_savings import Advised, described, found_at
from selftime.advice.detectors.wait_sites import Site
from selftime.trace import Trace

_CODE: Final = {
    "B10": "torch._assert_async(torch.isfinite(loss))",
    "B11": "with torch.autocast('cuda', dtype=torch.bfloat16):   # needs no GradScaler\n"
    "    loss = model(x)",
}
"""By entry of the catalogue: a guard of the program's own, and that of the gradient scaler."""


@rule(covers=("B10", "B11"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from found_at(trace, ("finite_check",), _advised)


def _advised(site: Site) -> Advised:
    entry = "B11" if site.name == "aten::item" else "B10"
    return Advised(
        (entry,),
        f"The host waits to learn whether numbers are finite at {described(site)} in every step",
        Fix("Check on the device, or every so many steps.", _CODE[entry]),
    )
