"""Gradients are exchanged in buckets of the wrong size.

## What it means
Replicas exchange their gradients in buckets, each as soon as its gradients are there. Here the
buckets are many and small, or there is a single large one.

## Why it costs
Every exchange costs its latency, whatever its size: many small ones cost it many times. And a
single one begins when the last gradient is there, so that no backward pass is left to hide it.

## What to do
Leave `bucket_cap_mb` at its default of 25, or try twice and half of that; pass
`gradient_as_bucket_view=True`, which saves a copy.

## Fires on
Ten exchanges of 4 kB a step.

    column = 1 ms
    mark 1 | sssssssssssssssssssssssssstttttttttttttttttttttttttt
    mark 2 | ff                        ff
    cpu 2  | aaccccccccccccccccccccc  oaaccccccccccccccccccccc  o
    cpu 2  |   r r r r r r r r r r       r r r r r r r r r r
    mark 2 |                          p                         p
    mark 3 |    ggggggggggggggggggggg     ggggggggggggggggggggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[1000]]]
    g = gloo:all_reduce
    o = aten::_foreach_add_
    p = Optimizer.step#SGD.step

## Silent on
Two exchanges of the usual size.

    column = 1 ms
    mark 1 | sssssssssssssssssssssssssstttttttttttttttttttttttttt
    mark 2 | ff                        ff
    cpu 2  | aaccccccccccccccccccccc  oaaccccccccccccccccccccc  o
    cpu 2  |   r         r               r         r
    mark 2 |                          p                         p
    mark 3 |    ggggggggggggggggggggg     ggggggggggggggggggggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[5000000]]]
    g = gloo:all_reduce
    o = aten::_foreach_add_
    p = Optimizer.step#SGD.step
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
import polars as pl

from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Unknown, rule
from selftime.advice.detectors.communication import (
    exposed,
    gradients,
    is_on_host,
    less_exchange,
    replica_forwards,
    rounds,
    transfers,
)
from selftime.advice.detectors.counted_steps import counted, steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.advice.pricing import priced
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace

MEBI: Final = 1 << 20
"""Bytes of a mebibyte: `bucket_cap_mb` counts in these."""
SMALL: Final = MEBI
"""Below this the latency of an exchange outweighs its transfer, on any link worth the name."""
FEW: Final = 4
"""Fewer exchanges a round are what the default makes of a small network, and cost little."""
DEFAULT: Final = 25 * MEBI
"""The default of `bucket_cap_mb`; its first bucket is of 1 MiB, to begin early."""
TIMES_TOO_MANY: Final = 2
"""As many buckets more than the default would make are no accident of sizes and dtypes."""

QUICK: Final = 25
"""A quarter of the exchanges found all ranks ready: what they took is no wait for another."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """What a backward pass exchanges, as medians over the rounds."""

    count: float
    bytes: float
    """Of one exchange."""
    total: float
    """Of all exchanges of a round."""

    @property
    def usual(self) -> float:
        """How many buckets the default makes of as many bytes."""
        return 1.0 + ceil(max(self.total - MEBI, 0) / DEFAULT)

    @property
    def are_small(self) -> bool:
        many = self.count > max(FEW, TIMES_TOO_MANY * self.usual)
        return many and self.bytes < SMALL

    @property
    def is_one_large(self) -> bool:
        return self.count == 1 and self.total > TIMES_TOO_MANY * DEFAULT


@rule(covers=("I2",), needs=("steps", "operators"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits, issued = gate(trace), gradients(trace)
    forwards = replica_forwards(trace)
    if limits is None or not forwards.height or not issued.height:
        yield Checked("no gradients are seen to be exchanged by buckets", is_absent=True)
        return
    if issued["bytes"].null_count():
        yield Unknown("the sizes of exchanges: `record_shapes=True`")
        return
    buckets = _buckets(trace, issued)
    if buckets.are_small:
        yield limits.judge(_small(trace, limits, forwards, buckets))
    elif buckets.is_one_large and not is_on_host(trace):
        yield limits.judge(_large(trace, limits, forwards, buckets))
    else:
        yield Checked(
            f"gradients are exchanged in buckets of {buckets.bytes / MEBI:.1f} MiB, "
            f"{buckets.count:.0f} after each backward pass"
        )


def _buckets(trace: Trace, issued: pl.DataFrame) -> Buckets:
    found = rounds(trace)
    used = found.exchanges > 0
    if not used.any():
        return Buckets(0.0, 0.0, 0.0)
    return Buckets(
        float(np.median(found.exchanges[used])),
        float(np.median(issued["bytes"].to_numpy())),
        float(np.median(found.bytes[used])),
    )


def _when(forwards: pl.DataFrame) -> Intervals:
    """From each forward pass until the next: the time of its exchange."""
    begin = forwards["start"].to_numpy()
    return union(begin, np.append(begin[1:], np.iinfo(np.int64).max)[: begin.size])


def _small(trace: Trace, limits: Gate, forwards: pl.DataFrame, buckets: Buckets) -> Finding:
    when = _when(forwards)
    keep = _merged(trace, buckets)
    changes = less_exchange(trace, when, keep)
    most = less_exchange(trace, when, buckets.usual / buckets.count)
    return Finding(
        title=(
            f"Gradients are exchanged in {buckets.count:.0f} buckets of "
            f"{buckets.bytes / 1024:.0f} KiB"
        ),
        where=next(places(trace, forwards), Place.of(forwards)).where,
        count_per_step=buckets.count * forwards.height / steps_counted(trace),
        saving=priced(trace, limits, *changes, most=most),
        confidence="medium",
        evidence=(
            Evidence("exchanges after a backward pass", buckets.count, "count"),
            Evidence("bytes of each", buckets.bytes, "bytes"),
            Evidence("buckets that the default would make", buckets.usual, "count"),
            _open(trace, limits, when),
        ),
        fix=Fix(
            "Leave the size of buckets at its default.",
            "DistributedDataParallel(model, gradient_as_bucket_view=True)   # bucket_cap_mb=25",
        ),
        changes=changes,
    )


def _merged(trace: Trace, buckets: Buckets) -> float:
    """The share of the time that the usual buckets leave: they save the latency of those that go.

    What an exchange takes beyond its latency is the wait for another rank, and stays.
    """
    fewer = buckets.usual / buckets.count
    found = counted(trace, transfers(trace).drop_nulls("duration"))
    times = found["duration"].to_numpy()
    if not times.size:
        return fewer
    latency = float(np.percentile(times, QUICK)) / float(times.mean())
    return 1 - (1 - fewer) * min(latency, 1.0)


def _large(trace: Trace, limits: Gate, forwards: pl.DataFrame, buckets: Buckets) -> Finding:
    when = _when(forwards)
    changes = less_exchange(trace, when, DEFAULT / buckets.total)
    return Finding(
        title=f"All gradients, {buckets.total / MEBI:.0f} MiB, are exchanged at once",
        where=next(places(trace, forwards), Place.of(forwards)).where,
        count_per_step=forwards.height / steps_counted(trace),
        saving=priced(trace, limits, *changes, most=less_exchange(trace, when, 0.0)),
        confidence="low",
        evidence=(
            Evidence("bytes of the exchange", buckets.total, "bytes"),
            _open(trace, limits, when),
        ),
        fix=Fix(
            "Leave the size of buckets at its default: the first are exchanged while the backward "
            "pass goes on.",
            "DistributedDataParallel(model, gradient_as_bucket_view=True)   # bucket_cap_mb=25",
        ),
        changes=changes,
    )


def _open(trace: Trace, limits: Gate, when: Intervals) -> Evidence:
    spent = length(intersect(exposed(trace), when)) / steps_counted(trace) / 1e6
    return Evidence("exposed communication time", limits.typical(spent), "ms")
