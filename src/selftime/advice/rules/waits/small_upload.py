"""Small tensors are made on the host and sent to the device in each step.

## What it means
A list as an index (`x[[0, 2]]`), a number assigned at positions (`x[index] = 0.0`),
`torch.tensor(values, device="cuda")`, `new_tensor`: each makes a small tensor on the host and
copies it, and the host waits for the copy.

In the trace: the host waits for a copy of at most 64 KiB to the device, on the same line in more
than half of the steps, and no larger copy is on that line.

## Why it costs
The bytes are few, but the copy stands behind all work in the queue, and the host waits for its
turn. Then the queue is empty, and the device stands idle until work comes again.

## What to do
Make constants once, on the device, as buffers of the module. Assign with `index_fill_` or
`masked_fill_`. Send what changes in each step from pinned memory, with `non_blocking=True`.

The estimate replays the step without these waits: it is the mean of the savings if they alone are
removed, and if all other waits are removed first.

## Fires on
A constant is made in the forward pass, behind the work in the queue.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | atttttttt           atttttttt           atttttttt
    call 1 | kpppppppp           kpppppppp           kpppppppp
    gpu 7  |  kkkkkkk             kkkkkkk             kkkkkkk
    copy 7 |         p                   p                   p
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    t = aten::to; line = model.py:8 forward
    a = aten::mm
    p = Memcpy HtoD (Pageable -> Device); bytes = 16

## Silent on
A copy that the host does not wait for.

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
    p = Memcpy HtoD (Pinned -> Device); bytes = 16
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.detectors.wait_savings import (
    WaitSiteAdvice,
    outcomes_of_waiting_lines,
    waiting_call_text,
)
from selftime.advice.detectors.wait_sites import WaitSite
from selftime.advice.rule_definition import Fix, Outcome, rule
from selftime.trace import Trace

CONSTANT_ON_DEVICE_FIX_CODE: Final = """\
self.register_buffer("index", torch.tensor([0, 2]))  # once, in __init__
x.index_fill_(0, index, 0.0)  # for: x[index] = 0.0
# for values that change:
t = torch.tensor(values).pin_memory().to(device, non_blocking=True)"""
"""Example code of the fix: the tensor is created on the device, or sent without waiting."""


@rule(covers=("B8",))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from outcomes_of_waiting_lines(trace, ("small_upload",), _advice_for_small_upload)


def _advice_for_small_upload(wait_site: WaitSite) -> WaitSiteAdvice:
    return WaitSiteAdvice(
        ("B8",),
        f"The host waits to send a few bytes at {waiting_call_text(wait_site)} in every step",
        Fix(
            "Create constants once, on the device; send values that change without waiting.",
            CONSTANT_ON_DEVICE_FIX_CODE,
        ),
    )
