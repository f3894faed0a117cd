"""The host reads a number from the device in every step.

## What it means
`loss.item()`, `float(t)` or `int(t)` copies one number to the host, and the host waits until the
device has computed everything queued before it. Meanwhile it launches nothing. A language model
that checks after each token whether it ends the text waits once per token.

In the trace: the host waits within `aten::item`, on the same line in more than half of the steps.

## Why it costs
While the host waits the device mostly works, which costs nothing. The cost comes after: the queue
is empty, and the device stands idle until the host has launched again. On a device with enough work
in its queue a read is free, and the verdict says so.

## What to do
Add up on the device and read every so many steps: `total += loss.detach()`. Or copy without waiting
into pinned memory, and look at it a step later. Look for the end of a text every so many tokens, on
all sequences at once.

The estimate replays the step without these waits: it is the mean of the savings if they alone are
removed, and if all other waits are removed first.

## Fires on
A read after every step's work, and then much to do for the host.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | aiiiiiiiii          aiiiiiiiii          aiiiiiiiii
    cpu 1  |  lllllllll           lllllllll           lllllllll
    call 1 | kmmmmmmmmm          kmmmmmmmmm          kmmmmmmmmm
    gpu 7  |  kkkkkkkk            kkkkkkkk            kkkkkkkk
    copy 7 |          m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    i = aten::item; line = train.py:9 train
    l = aten::_local_scalar_dense
    m = Memcpy DtoH (Device -> Pageable)

## Silent on
A wait while the device has work on another stream: nothing stands idle, so it is free.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | abiii               abiii               abiii
    cpu 1  |   lll                 lll                 lll
    call 1 | knmmm               knmmm               knmmm
    gpu 7  |  kknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnn
    copy 20|     m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::mm
    i = aten::item; line = train.py:9 train
    l = aten::_local_scalar_dense
    m = Memcpy DtoH (Device -> Pageable)

A program without a device: nothing waits, so the rule cannot know.

    cpu 1 | aaaa iiii aaaa iiii
    i = aten::item; line = train.py:9 train
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from selftime.advice.detectors.token_decoding import (
    RARE_END_CHECK_FIX_CODE,
    TokenDecoding,
    token_decoding_of,
)
from selftime.advice.detectors.wait_savings import (
    WaitSiteAdvice,
    outcomes_of_waiting_lines,
    waiting_call_text,
)
from selftime.advice.detectors.wait_sites import WaitSite
from selftime.advice.rule_definition import Fix, Outcome, rule
from selftime.trace import Trace

SUM_ON_DEVICE_FIX_CODE: Final = """total += loss.detach()          # stays on the device
if step % 100 == 0:
    print(total.item() / 100)   # one wait in a hundred steps
    total.zero_()"""
"""Example code of the fix: `total` is a tensor on the device, `torch.zeros((), device=device)`."""


@rule(covers=("B1", "K3", "K10", "L6"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from outcomes_of_waiting_lines(
        trace, ("scalar_read",), partial(_advice_for_scalar_read, token_decoding_of(trace))
    )


def _advice_for_scalar_read(decoding: TokenDecoding | None, wait_site: WaitSite) -> WaitSiteAdvice:
    title = f"The host waits for a number at {waiting_call_text(wait_site)} in every step"
    if decoding is None:
        return WaitSiteAdvice(
            ("B1",),
            title,
            Fix(
                "Add up on the device, and read the sum only once in several steps.",
                SUM_ON_DEVICE_FIX_CODE,
            ),
        )
    repeated_reads = (
        ("K10",) if decoding.reads_several_times_per_token(wait_site.waits_per_step) else ()
    )
    return WaitSiteAdvice(
        ("B1", "K3", *repeated_reads),
        title,
        Fix(
            "Keep the tokens on the device, and check for the end only once in several tokens.",
            RARE_END_CHECK_FIX_CODE,
        ),
    )
