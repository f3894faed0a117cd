"""Small tensors are made on the host and sent to the device in each step.

## What it means
A list as an index (`x[[0, 2]]`), a number assigned at positions (`x[index] = 0.0`),
`torch.tensor(values, device="cuda")`, `new_tensor`: each makes a small tensor on the host and
copies it, and the host waits for the copy.

## Why it costs
The bytes are few, but the copy stands behind all work in the queue, and the host waits for its
turn. Then the queue is empty, and the device stands idle until work comes again.

## What to do
What is the same in every step make once, on the device, as a buffer of the module. Assign with
`index_fill_` or `masked_fill_`. What changes each step send from pinned memory, with
`non_blocking=True`.

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

from selftime.advice.base import Fix, Outcome, rule
from selftime.advice.detectors.wait_savings import Advised, described, found_at
from selftime.advice.detectors.wait_sites import Site
from selftime.trace import Trace

CODE: Final = """self.register_buffer("index", torch.tensor([0, 2]))   # once, in __init__
x.index_fill_(0, index, 0.0)                          # for: x[index] = 0.0
t = torch.tensor(values).pin_memory().to(device, non_blocking=True)   # what changes"""
"""The same without a wait."""


@rule(covers=("B8",))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from found_at(trace, ("small_upload",), _advised)


def _advised(site: Site) -> Advised:
    return Advised(
        ("B8",),
        f"The host waits to send a few bytes at {described(site)} in every step",
        Fix("Make constants once, on the device; send what changes without waiting.", CODE),
    )
