"""The program waits for the device on purpose.

## What it means
`torch.cuda.synchronize()`, or a wait for a stream or an event, in the step: mostly left over from
timing code.

## Why it costs
The queue of the device runs empty while the host waits, and the device stands idle until the host
has launched again.

## What to do
Drop it. To time work on the device record events and read them later. To order streams let one wait
for the other: `stream.wait_stream(other)` does not hold the host.

## Fires on
A wait after each step's work.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | a                   a                   a
    call 1 | kwwwwwwww           kwwwwwwww           kwwwwwwww
    gpu 7  |  kkkkkkkk            kkkkkkkk            kkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    w = cudaDeviceSynchronize; line = train.py:14 train

## Silent on
A wait for another stream while the device has work: it is free.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | ab                  ab                  ab
    call 1 | knwww               knwww               knwww
    gpu 7  |  kknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnnkknnnnnnnnnnnnnnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    b = aten::mm
    w = cudaEventSynchronize

The recorder's own wait at the end, outside of the steps.

    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | a                   a                   a
    call 1 | k                   k                   k                   ww
    gpu 7  |  kkkkkkkkkkkkkkkkkkk kkkkkkkkkkkkkkkkkkk kkkkkkkkkkkkkkkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    w = cudaDeviceSynchronize
    u = ProfilerStep#3
"""

from collections.abc import Iterator
from typing import Final

from selftime.advice.base import Fix, Outcome, rule
from selftime.advice.detectors.wait_savings import Advised, found_at
from selftime.advice.detectors.wait_sites import Site
from selftime.trace import Trace

CODE: Final = """begin = torch.cuda.Event(enable_timing=True)
end = torch.cuda.Event(enable_timing=True)
begin.record()
step()
end.record()
# many steps later:
milliseconds = begin.elapsed_time(end)"""
"""Timing that does not hold the host."""


@rule(covers=("B9",))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from found_at(trace, ("explicit_synchronize",), _advised)


def _advised(site: Site) -> Advised:
    place = f" in `{site.annotation}`" if site.where.file is None and site.annotation else ""
    return Advised(
        ("B9",),
        f"The program synchronises with the device{place} in every step",
        Fix("Drop the wait; time the device with events that are read later.", CODE),
    )
