"""An operator waits for the device in every step.

## What it means
Some operators read from the device what they need on the host: `torch.multinomial`, `linalg.inv`,
`cholesky` and `solve` (for errors), `torch.equal` and `allclose`, distributions that validate their
arguments, `nn.Embedding(max_norm=...)`, and operators of other packages such as
`torchvision.ops.nms`.

## Why it costs
The queue of the device runs empty while the host waits, and the device stands idle until work comes
again.

## What to do
Use the form that does not look: `linalg.inv_ex`, `cholesky_ex`, `solve_ex`; `Categorical(...,
validate_args=False)`; a sample by the Gumbel trick in place of `multinomial`; compare on the
device.

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

from selftime.advice.base import Fix, Outcome, rule
from selftime.advice.detectors.decoding import Decoding, decoding
from selftime.advice.detectors.wait_savings import Advised, described, found_at
from selftime.advice.detectors.wait_sites import Site
from selftime.names.waits import draws_sample
from selftime.trace import Trace

CODE: Final = """inverse, info = torch.linalg.inv_ex(a)                   # for: torch.linalg.inv(a)
noise = torch.empty_like(probs).exponential_(1.0)
sample = (probs / noise).argmax(dim=-1, keepdim=True)    # for: torch.multinomial(probs, 1)"""
"""Forms without a wait."""


@rule(covers=("B12", "B13", "K4"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from found_at(trace, ("hidden_sync",), partial(_advised, decoding(trace)))


def _advised(tokens: Decoding | None, site: Site) -> Advised:
    is_foreign = not site.name.startswith("aten::")
    is_sample = tokens is not None and draws_sample(site.name)
    return Advised(
        ("B12", *(("B13",) if is_foreign else ()), *(("K4",) if is_sample else ())),
        f"{described(site)} waits for the device in every step",
        Fix("Use a form of it that does not read on the host, or call it less often.", CODE),
    )
