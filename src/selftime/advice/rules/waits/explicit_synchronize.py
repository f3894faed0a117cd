"""The program waits for the device on purpose.

## What it means
`torch.cuda.synchronize()`, or a wait for a stream or an event, in the step: mostly left over from
timing code.

In the trace: a call such as `cudaStreamSynchronize`, within no operator, waits in more than half of
the steps.

## Why it costs
The queue of the device runs empty while the host waits, and the device stands idle until the host
has launched again.

## What to do
Drop it. To time work on the device record events and read them later. To order streams let one wait
for the other: `stream.wait_stream(other)` does not hold the host.

The estimate replays the step without these waits: it is the mean of the savings if they alone are
removed, and if all other waits are removed first.

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

from selftime.advice.detectors.wait_savings import WaitSiteAdvice, outcomes_of_waiting_lines
from selftime.advice.detectors.wait_sites import WaitSite
from selftime.advice.rule_definition import Fix, Outcome, rule
from selftime.trace import Trace

CUDA_EVENT_TIMING_FIX_CODE: Final = """begin = torch.cuda.Event(enable_timing=True)
end = torch.cuda.Event(enable_timing=True)
begin.record()
step()
end.record()
# many steps later:
milliseconds = begin.elapsed_time(end)"""
"""Example code of the fix: timing that does not make the host wait."""


@rule(covers=("B9",))
def check(trace: Trace) -> Iterator[Outcome]:
    yield from outcomes_of_waiting_lines(
        trace, ("explicit_synchronize",), _advice_for_explicit_synchronize
    )


def _advice_for_explicit_synchronize(wait_site: WaitSite) -> WaitSiteAdvice:
    title = "The program synchronises with the device in every step"
    if wait_site.where.file is None and wait_site.annotation:
        title = (
            f"The program synchronises with the device in `{wait_site.annotation}` in every step"
        )
    return WaitSiteAdvice(
        ("B9",),
        title,
        Fix(
            "Drop the wait; measure device time with events that you read later.",
            CUDA_EVENT_TIMING_FIX_CODE,
        ),
    )
