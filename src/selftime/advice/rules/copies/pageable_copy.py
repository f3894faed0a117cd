"""The host waits for its copies to the device.

## What it means
`x.to("cuda")` from ordinary (pageable) memory: the driver copies the data into memory that the
device can read, and the host waits for it. From pinned memory the host need not wait, but does
unless `non_blocking=True` is given.

In the trace: the host waits for a copy of more than 64 KiB to the device, on the same line in more
than half of the steps, and the copy's name says which memory it is from.

## Why it costs
The host launches nothing while it copies. If the queue of the device is empty by then, the device
stands idle.

## What to do
Let the loader pin batches in a thread of its own: `DataLoader(..., pin_memory=True)`, and copy
with `non_blocking=True`. Both are needed. Do not call `t.pin_memory()` in the loop: that is slower
than the copy.

The estimate replays the step without these waits: it is the mean of the savings if they alone are
removed, and if all other waits are removed first. The driver's staging of pageable memory goes with
the wait.

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

from selftime.advice.detectors.wait_savings import (
    WaitSiteAdvice,
    outcomes_of_waiting_lines,
    waiting_call_text,
)
from selftime.advice.detectors.wait_sites import WaitSite
from selftime.advice.rule_definition import Argument, Fix, Outcome, rule
from selftime.trace import Trace

NON_BLOCKING_COPY_FIX_CODE: Final = "x = x.to(device, non_blocking=True)"
"""Example code of the fix: a copy to the device that the host does not wait for."""

PINNED_LOADER_FIX_CODE: Final = "loader = DataLoader(..., pin_memory=True)"
"""Example code of the fix: a loader whose batches are in pinned memory."""


@rule(covers=("C1", "C2", "A6"))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from outcomes_of_waiting_lines(
        trace, ("upload", "blocking_upload"), _advice_for_blocking_upload
    )


def _advice_for_blocking_upload(wait_site: WaitSite) -> WaitSiteAdvice:
    if wait_site.cause == "blocking_upload":
        return WaitSiteAdvice(
            ("C2",),
            f"The host waits for copies from pinned memory at {waiting_call_text(wait_site)}",
            Fix("The memory is pinned already: copy without waiting.", NON_BLOCKING_COPY_FIX_CODE),
        )
    return WaitSiteAdvice(
        ("C1",),
        f"Data are copied to the device from pageable memory at {waiting_call_text(wait_site)}",
        Fix(
            "Pin the batches in the loader, and copy without waiting.",
            f"{PINNED_LOADER_FIX_CODE}\n{NON_BLOCKING_COPY_FIX_CODE}",
            Argument("loader", "pin_memory", "True"),
        ),
    )
