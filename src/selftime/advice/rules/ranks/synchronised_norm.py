"""Normalisation layers all-reduce their statistics between ranks.

## What it means
`SyncBatchNorm` takes mean and variance over the batches of all ranks: each layer gathers a few
numbers from every rank in the forward pass, and sums a few in the backward pass.

In the trace: more than 20 operators a step that combine these statistics, and collectives without
computation in a tenth of the step or more.

## Why it costs
These collectives are tiny and cannot be hidden, as the next layer needs their result: each layer
costs two latencies, and every rank waits for the slowest at each of them.

## What to do
Where each rank's batch is large enough for statistics of its own, about 16 samples and more, use
`BatchNorm2d` as it is; where it is not, a norm that needs no batch, such as `GroupNorm`.

At most the exposed time of communication is saved; no estimate is made.

## Fires on
More than 20 such layers in a step, whose collectives are exposed.

    column = 100 us
    mark 1 | sssssssssssssssssssssssssssssssssssssssssstttttttttttttttttttttttttttttttttttttttttt
    cpu 1  | rbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrbrb
    call 1 | nknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknk
    gpu 7  | nknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknknk
    s = ProfilerStep#1
    t = ProfilerStep#2
    r = c10d::_allgather_base_; input_shapes = [[128],[64]]
    b = aten::batch_norm_gather_stats_with_counts; line = net.py:12 forward
    n = ncclDevKernel_AllGather_RING_LL
    k = batch_norm_reduce_statistics_kernel

## Silent on
A few layers.

    column = 100 us
    mark 1 | sssssssssstttttttttt
    cpu 1  | rbrbrb    rbrbrb
    call 1 | nknknk    nknknk
    gpu 7  | nknknk    nknknk
    s = ProfilerStep#1
    t = ProfilerStep#2
    r = c10d::_allgather_base_; input_shapes = [[128],[64]]
    b = aten::batch_norm_gather_stats_with_counts; line = net.py:12 forward
    n = ncclDevKernel_AllGather_RING_LL
    k = batch_norm_reduce_statistics_kernel
"""

from collections.abc import Iterator
from typing import Final

from selftime import names
from selftime.advice.detectors.counted_steps import counted_step_count, slices_in_counted_steps
from selftime.advice.detectors.gradient_communication import exposed_communication_times
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import UpperBoundClaim
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_step_windows
from selftime.intervals import intersect, length, union
from selftime.trace import Trace
from selftime.units import count_text

MAX_CHEAP_SYNCHRONISED_LAYERS_PER_STEP: Final = 20
"""Largest number of synchronised layers per step not to report; together they cost below 1 ms."""

MIN_EXPOSED_COMMUNICATION_SHARE_OF_STEP: Final = 0.1
"""Smallest share of the step with communication but no computation to report."""


@rule(covers=("I6",), needs=("steps", "operators"))
def check(trace: Trace) -> Iterator[Outcome]:
    step_stats = step_statistics(trace)
    layers = slices_in_counted_steps(
        trace, filter_by_name(slices_on(trace, "host"), names.is_synchronised_norm)
    )
    per_step = layers.height / counted_step_count(trace)
    if step_stats is None or not layers.height:
        yield Checked("no normalisation is synchronised between ranks", is_absent=True)
        return
    alone = _exposed_communication_ms_per_step(trace, step_stats)
    if (
        per_step <= MAX_CHEAP_SYNCHRONISED_LAYERS_PER_STEP
        or alone < MIN_EXPOSED_COMMUNICATION_SHARE_OF_STEP * step_stats.step_ms
    ):
        yield Checked(
            f"{count_text(per_step)} synchronised normalisations a step", alone, is_slowed=False
        )
        return
    yield Finding(
        title=(
            f"{count_text(per_step)} normalisations a step all-reduce their statistics between "
            "ranks"
        ),
        where=next(slices_by_line(trace, layers), LineSlices.as_one_group(layers)).where,
        count_per_step=per_step,
        claim=UpperBoundClaim(alone, is_slowed=False),
        confidence="medium",
        semantics="training",
        evidence=(
            Evidence("exposed communication time", alone, "ms"),
            Evidence(
                "layers a step",
                per_step,
                "count",
                LineSlices.as_one_group(layers).events(),
                layers["id"].to_numpy(),
            ),
        ),
        fix=Fix(
            "If each rank's batch is large enough, let each rank normalise by its own statistics.",
            "torch.nn.BatchNorm2d(channels)  # without convert_sync_batchnorm",
        ),
    )


def _exposed_communication_ms_per_step(trace: Trace, step_stats: StepStatistics) -> float:
    windows = counted_step_windows(trace)
    when = union(windows["start"].to_numpy(), windows["end"].to_numpy())
    spent = length(intersect(exposed_communication_times(trace), when)) / counted_step_count(trace)
    return step_stats.scaled_to_typical_step(spent / 1e6)
