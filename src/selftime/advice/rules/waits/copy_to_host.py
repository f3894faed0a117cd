"""Tensors are copied to the host in every step.

## What it means
`.cpu()`, `.numpy()`, `.tolist()` or `.to("cpu")` in the loop, for metrics, logs or checkpoints: the
host waits until the device has done all that stands before the copy, and then for the copy.

In the trace: the host waits for a copy within `aten::to`, `aten::copy_`, `aten::clone` or their
like, on the same line in more than half of the steps.

## Why it costs
The queue of the device runs empty while the host waits, and the device stands idle until the host
has launched again. Of several copies in a row the first waits for the work before it, each of the
others for its own transfer.

## What to do
Keep metrics on the device and copy once in many steps, in one tensor. Copy what must go each step
without waiting, into pinned memory, and read it a step later. Save checkpoints the same way. A
sampler copies what it wants of all sequences at once, not of one after the other.

The estimate replays the step without these waits: it is the mean of the savings if they alone are
removed, and if all other waits are removed first.

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

from selftime.advice.detectors.token_decoding import TokenDecoding, token_decoding_of
from selftime.advice.detectors.wait_savings import (
    WaitSiteAdvice,
    outcomes_of_waiting_lines,
    waiting_call_text,
)
from selftime.advice.detectors.wait_sites import WaitSite
from selftime.advice.rule_definition import Fix, Outcome, rule
from selftime.trace import Trace

MIN_LARGE_COPY_BYTES_PER_STEP: Final = 1 << 20
"""Smallest number of bytes per step of copies that count as large; metrics are only a few
numbers."""

NON_BLOCKING_COPY_TO_HOST_FIX_CODE: Final = """\
host = torch.empty(t.shape, dtype=t.dtype, pin_memory=True)  # once
host.copy_(t, non_blocking=True)
copied = torch.cuda.Event()
copied.record()
# a step later:
copied.synchronize()
use(host)"""
"""Example code of the fix: a copy to pinned memory that runs while the host goes on."""


@rule(covers=("B4", "C6", "K10"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from outcomes_of_waiting_lines(
        trace, ("copy_to_host",), partial(_advice_for_copy_to_host, token_decoding_of(trace))
    )


def _advice_for_copy_to_host(decoding: TokenDecoding | None, wait_site: WaitSite) -> WaitSiteAdvice:
    is_large = wait_site.bytes_per_step >= MIN_LARGE_COPY_BYTES_PER_STEP
    repeated_reads = (
        ("K10",)
        if decoding is not None and decoding.reads_several_times_per_token(wait_site.waits_per_step)
        else ()
    )
    return WaitSiteAdvice(
        (("C6",) if is_large else ("B4",)) + repeated_reads,
        f"The host waits for a copy to it at {waiting_call_text(wait_site)} in every step",
        Fix(
            "Keep the tensor on the device, or copy without waiting and read it a step later.",
            NON_BLOCKING_COPY_TO_HOST_FIX_CODE,
        ),
    )
