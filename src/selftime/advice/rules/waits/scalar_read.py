"""A number is read from the device in every step.

## What it means
`loss.item()`, `float(t)` or `int(t)` copies one number to the host, and the host waits until the
device has computed all that stands before it. Meanwhile it launches nothing. A language model that
looks at each token, whether it ends the text, waits once a token.

## Why it costs
The wait itself is mostly work of the device and costs nothing. What costs is what comes after: the
queue is empty, and the device stands idle until the host has launched again. On a device with
enough work in its queue a read is free, and the verdict says so. The replay of the program without
the wait tells which.

## What to do
Add up on the device and read every so many steps: `total += loss.detach()`. Or copy without waiting
into pinned memory, and look at it a step later. Look for the end of a text every so many tokens, on
all sequences at once.

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

A program without a device: nothing waits, so the rule cannot tell.

    cpu 1 | aaaa iiii aaaa iiii
    i = aten::item; line = train.py:9 train
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from selftime.advice.base import Fix, Outcome, rule
from selftime.advice.detectors.decoding import Decoding, decoding
from selftime.advice.detectors.wait_savings import Advised, described, found_at
from selftime.advice.detectors.wait_sites import Site
from selftime.trace import Trace

CODE: Final = """total += loss.detach()          # stays on the device
if step % 100 == 0:
    print(total.item() / 100)   # one wait in a hundred steps
    total.zero_()"""
"""The sum is a tensor on the device: `total = torch.zeros((), device=device)`."""


TOKENS: Final = """ended |= token == end_of_text        # stays on the device
if position % 16 == 0 and bool(ended.all()):
    break                            # one wait in sixteen tokens"""
"""What is made after the end is cut off afterwards."""


@rule(covers=("B1", "K3", "K10", "L6"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from found_at(trace, ("scalar_read",), partial(_advised, decoding(trace)))


def _advised(tokens: Decoding | None, site: Site) -> Advised:
    title = f"The host waits for a number at {described(site)} in every step"
    if tokens is None:
        return Advised(
            ("B1",), title, Fix("Add up on the device, and read the sum every so many steps.", CODE)
        )
    many = ("K10",) if tokens.reads_often(site.per_step) else ()
    return Advised(
        ("B1", "K3", *many),
        title,
        Fix("Keep the tokens on the device, and look for the end every so many of them.", TOKENS),
    )
