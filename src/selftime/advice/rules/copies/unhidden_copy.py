"""The device copies its input while it computes nothing.

## What it means
Batches come to the device on the stream that computes, so that the device first copies and then
works. The host need not wait for that; the step does.

In the trace: copies to the device that are not from pageable memory take more than 3 % of the step;
a replay shows whether the step gets shorter without them.

## Why it costs
A device copies and computes at once, on two streams. On one stream every millisecond of the copy is
a millisecond of the step.

## What to do
Copy the next batch on a stream of its own while this one is computed, and let the computing stream
wait for it. Send fewer bytes: images as uint8 are a quarter of float32, normalise them on the
device. Copies from pageable memory must be pinned first: see `pageable_copy`.

The estimate leaves a fifth of the copies' time.

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

Copies from pageable memory, which `pageable_copy` reports.

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

from selftime.advice.replay import ScaleDeviceWork
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    rule,
    where_from_row,
)
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import step_statistics
from selftime.trace import Trace
from selftime.units import whole_percent_text

MIN_COPY_SHARE_OF_STEP: Final = 0.03
"""Smallest share of the step in copies to the device for which a separate stream is worthwhile."""

COPY_TIME_SHARE_LEFT_WITH_SECOND_STREAM: Final = 0.2
"""Share of the copies' time that remains if a second stream copies: an epoch's first copy, and both
streams' contention for memory."""

COPY_ON_SECOND_STREAM_FIX_CODE: Final = """stream = torch.cuda.Stream()
with torch.cuda.stream(stream):                   # beside computing
    following = following.to(device, non_blocking=True)
torch.cuda.current_stream().wait_stream(stream)   # before it is used
following.record_stream(torch.cuda.current_stream())"""
"""Example code of the fix: the next batch is copied on a stream of its own."""


@rule(covers=("C3",), needs=("device", "links", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    rows = trace.view("copies", by="copy", counted=True).filter(pl.col("direction") == "HtoD")
    copies = _uploads_not_from_pageable_memory(rows)
    if limits is None or not limits.step_ms or not copies.height:
        text = "nothing is copied to the device in the steps"
        if rows.height:
            text = "copies to the device in the steps are all from pageable memory"
        yield Checked(text, is_absent=not rows.height)
        return
    steps = max(trace.view("steps").filter("counted").height, 1)
    spent_ms = limits.scaled_to_typical_step(sum(copies["time"].to_list()) / steps / 1e6)
    if spent_ms <= MIN_COPY_SHARE_OF_STEP * limits.step_ms:
        yield Checked(
            f"copies to the device take {whole_percent_text(MIN_COPY_SHARE_OF_STEP)} of the "
            "recorded step or less",
            spent_ms,
            is_slowed=False,
        )
        return
    work = (
        _uploads_not_from_pageable_memory(trace.view("copies", by="copy"))["longest"]
        .cast(pl.Int64)
        .to_numpy()
    )
    change = ScaleDeviceWork(work, COPY_TIME_SHARE_LEFT_WITH_SECOND_STREAM)
    largest = copies.sort("time", descending=True).row(0, named=True)
    first, every = (largest["longest"],), copies["longest"].to_numpy()
    copied_bytes: list[int] = copies["bytes"].drop_nulls().to_list()
    share = whole_percent_text(spent_ms / limits.step_ms)
    yield Finding(
        title=f"Copies to the device take {share} of the step",
        where=where_from_row(largest),
        count_per_step=copies.height / steps,
        claim=RemovalClaim((change,), largest_changes=(ScaleDeviceWork(work),)),
        confidence="medium",
        evidence=(
            Evidence("time of copies to the device, a step", spent_ms, "ms", first, every),
            Evidence(
                "bytes copied to the device, a step",
                sum(copied_bytes) / steps if copied_bytes else None,
                "bytes",
            ),
        ),
        fix=Fix(
            "Copy the next batch on another stream, while this one is computed.",
            COPY_ON_SECOND_STREAM_FIX_CODE,
        ),
    )


def _uploads_not_from_pageable_memory(copies: pl.DataFrame) -> pl.DataFrame:
    """Returns the copies from host to device whose host memory is not pageable."""
    is_pageable = pl.col("host_memory").eq_missing(pl.lit("pageable"))
    return copies.filter((pl.col("direction") == "HtoD") & ~is_pageable)
