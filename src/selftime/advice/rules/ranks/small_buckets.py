"""Gradients are all-reduced in buckets of the wrong size.

## What it means
Replicas all-reduce their gradients in buckets, each as soon as its gradients are there. Here the
buckets are many and small, or there is a single large one.

In the trace: the collectives that the backward pass issues: more than 4, and than twice the
default's number, of below 1 MiB; or a single one of over 50 MiB.

## Why it costs
Every collective costs its latency, whatever its size: many small ones cost it many times. And a
single one begins with the last gradient, so that no backward pass is left to hide it.

## What to do
Leave `bucket_cap_mb` at its default of 25, or try twice and half of that; pass
`gradient_as_bucket_view=True`, which saves a copy.

The estimate removes the latency of the collectives that the default does not make; for a large
bucket, the communication but 25 MiB of it.

## Fires on
Ten collectives of 4 kB a step.

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
Two collectives of the usual size.

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

from selftime.advice.detectors.counted_steps import counted_step_count, slices_in_counted_steps
from selftime.advice.detectors.gradient_communication import (
    changes_shortening_communication,
    communicates_on_host,
    communication_transfers,
    ddp_forward_passes,
    exposed_communication_times,
    gradient_collectives,
    gradient_communication_rounds,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Unknown, rule
from selftime.advice.savings.claims import RemovalClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.intervals import Intervals, intersect, length, union
from selftime.trace import Trace
from selftime.units import bytes_text, count_text

MEBIBYTE: Final = 1 << 20
"""Bytes of a mebibyte, the unit of `bucket_cap_mb`."""
SMALL_BUCKET_BYTES: Final = MEBIBYTE
"""Bucket size in bytes below which a collective takes longer to start than to transfer data."""
MAX_USUAL_BUCKET_COUNT: Final = 4
"""Largest number of gradient buckets per backward pass that costs little."""
DEFAULT_BUCKET_BYTES: Final = 25 * MEBIBYTE
"""Default size of a gradient bucket in bytes; DDP's first bucket has 1 MiB."""
MAX_RATIO_TO_DEFAULT_BUCKETS: Final = 2
"""Ratio to the default above which the number or size of buckets is reported; dtypes change it
too."""

UNDELAYED_COLLECTIVE_PERCENTILE: Final = 25
"""Percentile of the collectives' durations that is taken as one without a wait for a late rank."""


@dataclass(frozen=True, slots=True)
class GradientBuckets:
    """Gradient buckets of a backward pass: number and bytes, as medians over all passes."""

    count: float
    bytes: float
    """Bytes of one bucket."""
    total: float
    """Bytes of all buckets of one backward pass."""

    @property
    def default_count(self) -> float:
        """Number of buckets into which DistributedDataParallel by default divides the gradients."""
        return 1.0 + ceil(max(self.total - MEBIBYTE, 0) / DEFAULT_BUCKET_BYTES)

    @property
    def are_small(self) -> bool:
        many = self.count > max(
            MAX_USUAL_BUCKET_COUNT, MAX_RATIO_TO_DEFAULT_BUCKETS * self.default_count
        )
        return many and self.bytes < SMALL_BUCKET_BYTES

    @property
    def is_single_large_bucket(self) -> bool:
        return self.count == 1 and self.total > MAX_RATIO_TO_DEFAULT_BUCKETS * DEFAULT_BUCKET_BYTES


@rule(covers=("I2",), needs=("steps", "operators"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats, collective_calls = step_statistics(trace), gradient_collectives(trace)
    forward_passes = ddp_forward_passes(trace)
    if step_stats is None or not forward_passes.height or not collective_calls.height:
        yield Checked("the trace shows no communication of gradients in buckets", is_absent=True)
        return
    if collective_calls["bytes"].null_count() or not collective_calls["bytes"].median():
        yield Unknown(
            "the sizes of collectives: `record_shapes=True`, with a PyTorch that records those of"
            " lists of tensors"
        )
        return
    buckets = _typical_gradient_buckets(trace, collective_calls)
    if buckets.are_small:
        yield _small_buckets_finding(trace, step_stats, forward_passes, buckets)
    elif buckets.is_single_large_bucket and not communicates_on_host(trace):
        yield _large_bucket_finding(trace, step_stats, forward_passes, buckets)
    else:
        yield Checked(
            f"gradients are all-reduced in buckets of {bytes_text(buckets.bytes)}, "
            f"{count_text(buckets.count)} after each backward pass"
        )


def _typical_gradient_buckets(trace: Trace, collective_calls: pl.DataFrame) -> GradientBuckets:
    found = gradient_communication_rounds(trace)
    used = found.collectives > 0
    if not used.any():
        return GradientBuckets(0.0, 0.0, 0.0)
    return GradientBuckets(
        float(np.median(found.collectives[used])),
        float(np.median(collective_calls["bytes"].to_numpy())),
        float(np.median(found.bytes[used])),
    )


def _intervals_from_forward_to_next(forward_passes: pl.DataFrame) -> Intervals:
    """Returns the intervals from the start of each forward pass to the start of the next pass."""
    begin = forward_passes["start"].to_numpy()
    return union(begin, np.append(begin[1:], np.iinfo(np.int64).max)[: begin.size])


def _small_buckets_finding(
    trace: Trace, step_stats: StepStatistics, forward_passes: pl.DataFrame, buckets: GradientBuckets
) -> Finding:
    communication_times = _intervals_from_forward_to_next(forward_passes)
    keep = _communication_share_with_default_buckets(trace, buckets)
    changes = changes_shortening_communication(trace, communication_times, keep)
    most = changes_shortening_communication(
        trace, communication_times, buckets.default_count / buckets.count
    )
    return Finding(
        title=(
            f"Gradients are all-reduced in {count_text(buckets.count)} buckets of "
            f"{bytes_text(buckets.bytes)}"
        ),
        where=next(
            slices_by_line(trace, forward_passes), LineSlices.as_one_group(forward_passes)
        ).where,
        count_per_step=buckets.count * forward_passes.height / counted_step_count(trace),
        claim=RemovalClaim(changes, largest_changes=most),
        confidence="medium",
        evidence=(
            Evidence("collectives after a backward pass", buckets.count, "count"),
            Evidence("bytes of each collective", buckets.bytes, "bytes"),
            Evidence("buckets that the default would make", buckets.default_count, "count"),
            _exposed_communication_evidence(trace, step_stats, communication_times),
        ),
        fix=Fix(
            "Leave the size of buckets at its default.",
            "DistributedDataParallel(model, gradient_as_bucket_view=True)",
        ),
    )


def _communication_share_with_default_buckets(trace: Trace, buckets: GradientBuckets) -> float:
    """Returns the share of communication time that remains with buckets of the default size.

    The time of a collective beyond its latency is a wait for another rank, and stays.
    """
    fewer = buckets.default_count / buckets.count
    found = slices_in_counted_steps(trace, communication_transfers(trace).drop_nulls("duration"))
    times = found["duration"].to_numpy()
    if not times.size:
        return fewer
    latency = float(np.percentile(times, UNDELAYED_COLLECTIVE_PERCENTILE)) / float(times.mean())
    return 1 - (1 - fewer) * min(latency, 1.0)


def _large_bucket_finding(
    trace: Trace, step_stats: StepStatistics, forward_passes: pl.DataFrame, buckets: GradientBuckets
) -> Finding:
    communication_times = _intervals_from_forward_to_next(forward_passes)
    changes = changes_shortening_communication(
        trace, communication_times, DEFAULT_BUCKET_BYTES / buckets.total
    )
    return Finding(
        title=f"All gradients, {bytes_text(buckets.total)}, are all-reduced at once",
        where=next(
            slices_by_line(trace, forward_passes), LineSlices.as_one_group(forward_passes)
        ).where,
        count_per_step=forward_passes.height / counted_step_count(trace),
        claim=RemovalClaim(
            changes,
            largest_changes=changes_shortening_communication(trace, communication_times, 0.0),
        ),
        confidence="low",
        evidence=(
            Evidence("bytes of the all-reduce", buckets.total, "bytes"),
            _exposed_communication_evidence(trace, step_stats, communication_times),
        ),
        fix=Fix(
            "Leave the size of buckets at its default: the first are all-reduced while the "
            "backward "
            "pass goes on.",
            "DistributedDataParallel(model, gradient_as_bucket_view=True)",
        ),
    )


def _exposed_communication_evidence(
    trace: Trace, step_stats: StepStatistics, communication_times: Intervals
) -> Evidence:
    spent = (
        length(intersect(exposed_communication_times(trace), communication_times))
        / counted_step_count(trace)
        / 1e6
    )
    return Evidence("exposed communication time", step_stats.scaled_to_typical_step(spent), "ms")
