"""The program branches on what the device computes.

## What it means
`if t.any():`, `while error > eps:` or `assert (x == x).all()` asks a tensor of the device for a
truth value. The host waits until it is computed. A language model that asks after each token
whether all texts have ended does the same.

## Why it costs
The queue of the device runs empty while the host learns which way to go, and the device stands idle
until work comes again. A loop that asks in each round pays each time.

## What to do
Compute both and choose on the device with `torch.where`; assert with `torch._assert_async`; ask
only every few rounds; in compiled code use `torch.cond`.

## Fires on
A branch in the middle of the step.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | aiiiiiiiii          aiiiiiiiii          aiiiiiiiii
    cpu 1  |  jjjjjjjjj           jjjjjjjjj           jjjjjjjjj
    cpu 1  |  lllllllll           lllllllll           lllllllll
    call 1 | kmmmmmmmmm          kmmmmmmmmm          kmmmmmmmmm
    gpu 7  |  kkkkkkkk            kkkkkkkk            kkkkkkkk
    copy 7 |          m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    i = aten::is_nonzero; line = model.py:28 forward
    j = aten::item
    l = aten::_local_scalar_dense
    m = Memcpy DtoH (Device -> Pageable)

## Silent on
A wait while the device has work on another stream: nothing stands idle, so it is free.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | abiii               abiii               abiii
    cpu 1  |   jjj                 jjj                 jjj
    cpu 1  |   lll                 lll                 lll
    call 1 | knmmm               knmmm               knmmm
    gpu 7  |  kknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnn
    copy 20|     m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::mm
    i = aten::is_nonzero; line = model.py:28 forward
    j = aten::item
    l = aten::_local_scalar_dense
    m = Memcpy DtoH (Device -> Pageable)
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from selftime.advice.base import Fix, Outcome, rule
from selftime.advice.detectors.decoding import Decoding, decoding
from selftime.advice.detectors.wait_savings import Advised, described, found_at
from selftime.advice.detectors.wait_sites import Site
from selftime.trace import Trace

CODE: Final = """x = torch.where(mask.any(), x.masked_fill(mask, 0.0), x)   # for: if mask.any():
torch._assert_async(torch.isfinite(x).all())               # for: assert"""
"""The same choice without a wait."""


TOKENS: Final = """ended |= token == end_of_text        # stays on the device
if position % 16 == 0 and bool(ended.all()):
    break                            # one wait in sixteen tokens"""
"""What is made after the end is cut off afterwards."""


@rule(covers=("B2", "K3"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from found_at(trace, ("branch_on_tensor",), partial(_advised, decoding(trace)))


def _advised(tokens: Decoding | None, site: Site) -> Advised:
    title = f"The host waits for a truth value at {described(site)} in every step"
    if tokens is None:
        return Advised(("B2",), title, Fix("Choose on the device, or ask less often.", CODE))
    return Advised(
        ("B2", "K3"), title, Fix("Look for the end of the text every so many tokens.", TOKENS)
    )
