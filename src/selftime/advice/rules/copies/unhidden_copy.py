"""The device copies its input while it computes nothing.

## What it means
Batches come to the device on the stream that computes, so that the device first copies and then
works. The host need not wait for that; the step does.

## Why it costs
A device copies and computes at once, on two streams. On one stream every millisecond of the copy is
a millisecond of the step.

## What to do
Copy the next batch on a stream of its own while this one is computed, and let the computing stream
wait for it. Send fewer bytes: images as uint8 are a quarter of float32, normalise them on the
device. Copies from pageable memory must be pinned first, of which another rule tells.

## Fires on
Copies before the work of each step, and the device behind the host.

    column = 100 us
    mark 1 | ssssstttttuuuuuvvvvv
    cpu 1  | ca   ca   ca   ca
    call 1 | mk   mk   mk   mk
    copy 7 |  mmmm     mmmm     mmmm     mmmm
    gpu 7  |      kkkkk    kkkkk    kkkkk    kkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    c = aten::to; line = train.py:9 main
    a = aten::mm
    m = Memcpy HtoD (Pinned -> Device); bytes = 8000000

## Silent on
Copies on another stream, while the device computes.

    column = 100 us
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ca        ca        ca
    call 1 | mk        ml        mn
    copy 9 |  mmmm      mmmm      mmmm
    gpu 7  |  kkkkkkkkkklllllllllnnnnnnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::to; line = train.py:9 main
    a = aten::mm
    m = Memcpy HtoD (Pinned -> Device); bytes = 8000000

Copies from pageable memory, of which another rule tells.

    column = 100 us
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | ccccca    ccccca    ccccca
    call 1 | mmmmmk    mmmmmk    mmmmmk
    copy 7 |  mmmm      mmmm      mmmm
    gpu 7  |       kkkk      kkkk      kkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::to; line = train.py:9 main
    a = aten::mm
    m = Memcpy HtoD (Pageable -> Device); bytes = 8000000
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, rule, where
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Scale
from selftime.trace import Trace

LEAST_SHARE: Final = 0.03
"""Copies below this share of the step are not worth a stream of their own."""

LEFT: Final = 0.2
"""Of the copies' time that stays: the first of an epoch, and memory that both streams want."""

CODE: Final = """stream = torch.cuda.Stream()
with torch.cuda.stream(stream):                      # while this batch is computed
    following = following.to(device, non_blocking=True)
torch.cuda.current_stream().wait_stream(stream)      # before it is used
following.record_stream(torch.cuda.current_stream())"""
"""A batch ahead, on a stream of its own."""


@rule(covers=("C3",), needs=("device", "links", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    rows = trace.view("copies", by="copy", counted=True).filter(pl.col("direction") == "HtoD")
    copies = _unheld(rows)
    if limits is None or not limits.step_ms or not copies.height:
        pageable = ", but from pageable memory" if rows.height else ""
        told = f"nothing is copied to the device in the steps{pageable}"
        yield Checked(told, is_absent=not rows.height)
        return
    steps = max(trace.view("steps").filter("counted").height, 1)
    spent = limits.typical(sum(copies["time"].to_list()) / steps / 1e6)
    if spent <= LEAST_SHARE * limits.step_ms:
        upper = limits.unrecorded(spent)
        yield Checked(f"copies to the device take {upper:.2f} ms of the step", upper)
        return
    work = _unheld(trace.view("copies", by="copy"))["longest"].cast(pl.Int64).to_numpy()
    change = Scale(work, LEFT)
    largest = copies.sort("time", descending=True).row(0, named=True)
    sizes: list[int] = copies["bytes"].drop_nulls().to_list()
    yield limits.judge(
        Finding(
            title=f"Copies to the device take {spent / limits.step_ms:.0%} of the step",
            where=where(largest),
            count_per_step=copies.height / steps,
            saving=priced(trace, limits, change, most=(Scale(work),)),
            confidence="medium",
            evidence=(
                Evidence("copies to the device", spent, "ms", (largest["longest"],)),
                Evidence("bytes a step", sum(sizes) / steps if sizes else None, "bytes"),
            ),
            fix=Fix("Copy the next batch on another stream, while this one is computed.", CODE),
            changes=(change,),
        )
    )


def _unheld(copies: pl.DataFrame) -> pl.DataFrame:
    """Copies to the device but those from pageable memory."""
    is_pageable = pl.col("host_memory").eq_missing(pl.lit("pageable"))
    return copies.filter((pl.col("direction") == "HtoD") & ~is_pageable)
