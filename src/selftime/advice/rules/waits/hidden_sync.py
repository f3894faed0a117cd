"""An operator waits for the device in every step.

## What it means
Some operators read from the device what they need on the host: `torch.multinomial`, `linalg.inv`,
`cholesky` and `solve` (for errors), `torch.equal` and `allclose`, distributions that validate their
arguments, `nn.Embedding(max_norm=...)`, and operators of other packages such as
`torchvision.ops.nms`.

In the trace: the host waits within an operator that no other rule on waits explains, on the same
line in more than half of the steps.

## Why it costs
The queue of the device runs empty while the host waits, and the device stands idle until work comes
again.

## What to do
Use the form that does not read on the host: `linalg.inv_ex`, `cholesky_ex`, `solve_ex`;
`Categorical(..., validate_args=False)`; a sample by the Gumbel trick in place of `multinomial`;
compare on the device.

The estimate replays the step without these waits: it is the mean of the savings if they alone are
removed, and if all other waits are removed first.

## Fires on
Sampling reads its probabilities.

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
    i = aten::multinomial; line = sample.py:7 sample
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
    i = aten::multinomial; line = sample.py:7 sample
    j = aten::item
    l = aten::_local_scalar_dense
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
from selftime.names.wait_causes import draws_random_sample
from selftime.trace import Trace

OPERATORS_WITHOUT_SYNC_FIX_CODE: Final = """\
inverse, info = torch.linalg.inv_ex(a)  # for: torch.linalg.inv(a)
# for: torch.multinomial(probs, 1)
noise = torch.empty_like(probs).exponential_(1.0)
sample = (probs / noise).argmax(dim=-1, keepdim=True)"""
"""Example code of the fix: forms of operators that do not wait for the device."""


@rule(covers=("B12", "B13", "K4"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from outcomes_of_waiting_lines(
        trace, ("hidden_sync",), partial(_advice_for_hidden_sync, token_decoding_of(trace))
    )


def _advice_for_hidden_sync(decoding: TokenDecoding | None, wait_site: WaitSite) -> WaitSiteAdvice:
    is_foreign = not wait_site.name.startswith("aten::")
    is_sample = decoding is not None and draws_random_sample(wait_site.name)
    return WaitSiteAdvice(
        ("B12", *(("B13",) if is_foreign else ()), *(("K4",) if is_sample else ())),
        f"{waiting_call_text(wait_site)} waits for the device in every step",
        Fix(
            "Use a form of the operator that the host does not wait for, or call it less often.",
            OPERATORS_WITHOUT_SYNC_FIX_CODE,
        ),
    )
