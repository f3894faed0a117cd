"""The host waits for its copies to the device.

## What it means
`x.to("cuda")` from ordinary (pageable) memory: the driver copies the data into memory that the
device can read, and the host waits for it. From pinned memory the host need not wait, but does
unless `non_blocking=True` is given.

## Why it costs
The host launches nothing while it copies. If the queue of the device is empty by then, the device
stands idle.

## What to do
Let the loader pin: `DataLoader(..., pin_memory=True)`, which a thread of its own does, and copy
with `non_blocking=True`. Both are needed. Do not call `t.pin_memory()` in the loop: that is slower
than the copy.

## Fires on
The batch is copied from pageable memory.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | tttttttta           tttttttta           tttttttta
    call 1 | ppppppppk           ppppppppk           ppppppppk
    copy 7 |  ppppppp             ppppppp             ppppppp
    gpu 7  |          kkk                 kkk                 kkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    t = aten::to; line = train.py:31 main
    a = aten::mm
    p = Memcpy HtoD (Pageable -> Device); bytes = 20000000

## Silent on
The batch is pinned and copied without waiting.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | taa                 taa                 taa
    call 1 | pk                  pk                  pk
    copy 7 |  ppppppp             ppppppp             ppppppp
    gpu 7  |          kkk                 kkk                 kkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    t = aten::to
    a = aten::mm
    p = Memcpy HtoD (Pinned -> Device); bytes = 20000000
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.base import Fix, Outcome, rule
from selftime.advice.detectors.wait_savings import Advised, described, found_at
from selftime.advice.detectors.wait_sites import Site
from selftime.trace import Trace

WAITLESS: Final = "x = x.to(device, non_blocking=True)"
"""A copy that the host does not wait for."""

PINNED: Final = "loader = DataLoader(..., pin_memory=True)"
"""Batches in memory that the device can read."""


@rule(covers=("C1", "C2", "A6"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from found_at(trace, ("upload", "blocking_upload"), _advised)


def _advised(site: Site) -> Advised:
    if site.cause == "blocking_upload":
        return Advised(
            ("C2",),
            f"The host waits for copies from pinned memory at {described(site)}",
            Fix("The memory is pinned already: copy without waiting.", WAITLESS),
        )
    return Advised(
        ("C1",),
        f"Data are copied to the device from pageable memory at {described(site)}",
        Fix("Pin the batches in the loader, and copy without waiting.", f"{PINNED}\n{WAITLESS}"),
    )
