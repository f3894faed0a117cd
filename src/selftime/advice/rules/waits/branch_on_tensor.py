"""The program branches on a value that the device computes.

## What it means
`if t.any():`, `while error > eps:` or `assert (x == x).all()` asks a tensor of the device for a
truth value. The host waits until it is computed. A language model that asks after each token
whether all texts have ended does the same.

In the trace: the host waits for the device within `aten::is_nonzero`, on the same line in more than
half of the steps.

## Why it costs
The queue of the device runs empty while the host learns which way to go, and the device stands idle
until work comes again. A loop that asks in each round pays each time.

## What to do
Compute both and choose on the device with `torch.where`; assert with `torch._assert_async`; ask
only every few rounds; in compiled code use `torch.cond`.

The estimate replays the step without these waits: it is the mean of the savings if they alone are
removed, and if all other waits are removed first.

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

BRANCH_ON_DEVICE_FIX_CODE: Final = """\
# for: if mask.any():
x = torch.where(mask.any(), x.masked_fill(mask, 0.0), x)
torch._assert_async(torch.isfinite(x).all())  # for: assert"""
"""Example code of the fix: the same choice and the same check, made on the device."""


@rule(covers=("B2", "K3"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from outcomes_of_waiting_lines(
        trace,
        ("branch_on_tensor",),
        partial(_advice_for_branch_on_tensor, token_decoding_of(trace)),
    )


def _advice_for_branch_on_tensor(
    decoding: TokenDecoding | None, wait_site: WaitSite
) -> WaitSiteAdvice:
    title = f"The host waits for a truth value at {waiting_call_text(wait_site)} in every step"
    if decoding is None:
        return WaitSiteAdvice(
            ("B2",),
            title,
            Fix("Choose on the device, or read the value less often.", BRANCH_ON_DEVICE_FIX_CODE),
        )
    return WaitSiteAdvice(
        ("B2", "K3"),
        title,
        Fix("Check for the end of the text only once in several tokens.", RARE_END_CHECK_FIX_CODE),
    )
