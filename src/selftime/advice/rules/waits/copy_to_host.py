"""Tensors are copied to the host in every step.

## What it means
`.cpu()`, `.numpy()`, `.tolist()` or `.to("cpu")` in the loop, for metrics, logs or checkpoints: the
host waits until the device has done all that stands before the copy, and then for the copy.

## Why it costs
The queue of the device runs empty while the host waits, and the device stands idle until the host
has launched again. Of several copies in a row the first waits for the work, each of the others for
its own way.

## What to do
Keep metrics on the device and copy once in many steps, in one tensor. Copy what must go each step
without waiting, into pinned memory, and read it a step later. Save checkpoints the same way. A
sampler copies what it wants of all sequences at once, not of one after the other.

## Fires on
Predictions go to the host in every step.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | aiiiiiiiii          aiiiiiiiii          aiiiiiiiii
    cpu 1  |  ccccccccc           ccccccccc           ccccccccc
    call 1 | kmmmmmmmmm          kmmmmmmmmm          kmmmmmmmmm
    gpu 7  |  kkkkkkkk            kkkkkkkk            kkkkkkkk
    copy 7 |          m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    i = aten::to; line = metrics.py:12 update
    c = aten::_to_copy
    m = Memcpy DtoH (Device -> Pageable)

## Silent on
A wait while the device has work on another stream: nothing stands idle, so it is free.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | abiii               abiii               abiii
    cpu 1  |   ccc                 ccc                 ccc
    call 1 | knmmm               knmmm               knmmm
    gpu 7  |  kknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnn
    copy 20|     m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::mm
    i = aten::to; line = metrics.py:12 update
    c = aten::_to_copy
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

LARGE: Final = 1 << 20
"""From a megabyte on the copy is for logs or checkpoints; metrics are a few numbers."""

CODE: Final = """host = torch.empty(t.shape, dtype=t.dtype, pin_memory=True)  # once
host.copy_(t, non_blocking=True)
copied = torch.cuda.Event()
copied.record()
# a step later:
copied.synchronize()
use(host)"""
"""The copy runs while the host goes on."""


@rule(covers=("B4", "C6", "K10"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from found_at(trace, ("copy_to_host",), partial(_advised, decoding(trace)))


def _advised(tokens: Decoding | None, site: Site) -> Advised:
    is_large = site.bytes_per_step >= LARGE
    many = ("K10",) if tokens is not None and tokens.reads_often(site.per_step) else ()
    return Advised(
        (("C6",) if is_large else ("B4",)) + many,
        f"The host waits for a copy to it at {described(site)} in every step",
        Fix("Keep it on the device, or copy without waiting and look at it a step later.", CODE),
    )
