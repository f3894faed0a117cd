"""Normalisation layers exchange their statistics between ranks.

## What it means
`SyncBatchNorm` takes mean and variance over the batches of all ranks: each layer gathers a few
numbers from every rank in the forward pass, and sums a few in the backward pass.

## Why it costs
These exchanges are tiny and cannot be hidden, as the next layer needs their result: each layer
costs two latencies, and every rank waits for the slowest at each of them.

## What to do
Where each rank's batch is large enough for statistics of its own, about 16 samples and more, use
`BatchNorm2d` as it is; where it is not, a norm that needs no batch, such as `GroupNorm`.

## Fires on
More than 20 such layers in a step whose exchange stands alone.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule
from selftime.advice.detectors.communication import exposed
from selftime.advice.detectors.counted_steps import counted, steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.advice.gate import Gate, gate
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import counted_windows
from selftime.intervals import intersect, length, union
from selftime.trace import Trace

MANY: Final = 20
"""Layers in a step; with fewer their latencies, some 20 us each, are below a millisecond."""

EXPOSED_SHARE: Final = 0.1
"""Of the step that ranks exchange and nothing computes: below, the layers cannot cost much."""


@rule(covers=("I6",), needs=("steps", "operators"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    layers = counted(trace, filter_by_name(slices_on(trace, "host"), names.is_synchronised_norm))
    per_step = layers.height / steps_counted(trace)
    if limits is None or not layers.height:
        yield Checked("no normalisation is synchronised between ranks", is_absent=True)
        return
    alone = _alone_ms(trace, limits)
    if per_step <= MANY or alone < EXPOSED_SHARE * limits.step_ms:
        yield Checked(
            f"{per_step:.0f} synchronised normalisations a step", limits.unrecorded(alone)
        )
        return
    yield Finding(
        title=f"{per_step:.0f} normalisations a step exchange their statistics between ranks",
        where=next(places(trace, layers), Place.of(layers)).where,
        count_per_step=per_step,
        saving=Saving(upper_ms=limits.unrecorded(alone)),
        confidence="medium",
        semantics="training",
        evidence=(
            Evidence("exposed communication time", alone, "ms"),
            Evidence("layers a step", per_step, "count", Place.of(layers).events()),
        ),
        fix=Fix(
            "Where each rank's batch is large enough, let each rank normalise by its own.",
            "torch.nn.BatchNorm2d(channels)   # without SyncBatchNorm.convert_sync_batchnorm",
        ),
    )


def _alone_ms(trace: Trace, limits: Gate) -> float:
    windows = counted_windows(trace)
    when = union(windows["start"].to_numpy(), windows["end"].to_numpy())
    spent = length(intersect(exposed(trace), when)) / steps_counted(trace)
    return limits.typical(spent / 1e6)
