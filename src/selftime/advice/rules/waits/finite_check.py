"""The host checks for NaN in every step.

## What it means
A guard such as `if torch.isnan(loss):`, or the gradient scaler of float16 training, reads from the
device whether all numbers are finite.

In the trace: the host reads a number or branches at most three operators after a test such as
`aten::isnan`, or in a frame of the gradient scaler, on the same line in more than half of the
steps.

## Why it costs
The queue of the device runs empty while the host waits for the answer, and the device stands idle
until work comes again.

## What to do
Check every so many steps, or on the device: `torch._assert_async`. In place of float16 and a scaler
use bfloat16, whose range needs none; fused optimizers take the scaler's flag on the device.

The estimate replays the step without these waits: it is the mean of the savings if they alone are
removed, and if all other waits are removed first.

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

from selftime.advice.detectors.wait_savings import (
    WaitSiteAdvice,
    outcomes_of_waiting_lines,
    waiting_call_text,
)
from selftime.advice.detectors.wait_sites import WaitSite
from selftime.advice.rule_definition import Fix, Outcome, rule
from selftime.trace import Trace

_FIX_CODE_BY_BOTTLENECK_CODE: Final = {
    "B10": "torch._assert_async(torch.isfinite(loss))",
    "B11": "with torch.autocast('cuda', dtype=torch.bfloat16):  # no GradScaler\n"
    "    loss = model(x)",
}
"""Example code of the fix, by catalogue code: B10 the program's own check, B11 a gradient
scaler's."""


@rule(covers=("B10", "B11"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from outcomes_of_waiting_lines(trace, ("finite_check",), _advice_for_finite_check)


def _advice_for_finite_check(wait_site: WaitSite) -> WaitSiteAdvice:
    entry = "B11" if wait_site.name == "aten::item" else "B10"
    call = waiting_call_text(wait_site)
    return WaitSiteAdvice(
        (entry,),
        f"The host waits to learn whether numbers are finite at {call} in every step",
        Fix(
            "Check on the device, or only once in several steps.",
            _FIX_CODE_BY_BOTTLENECK_CODE[entry],
        ),
    )
