"""The last wave of a kernel's blocks fills only a part of the device.

## What it means
The blocks of a product of matrices, or of a convolution, run in waves: as many at once as the
multiprocessors hold. Here a few blocks are left over for one more wave.

In the trace: the blocks of a kernel's grid, and those that fit at once by its occupancy: more than
one wave, and four at most.

## Why it costs
A wave takes its time however few blocks it has. With 1.1 waves the second is nearly as long as the
first, and nine tenths of the device are idle in it.

## What to do
Choose sizes whose blocks fill whole waves: a batch or a width a little smaller, so that the last
wave falls away, or larger, so that it is full. A library may choose other tiles for another size:
measure. Kernels that keep their blocks and share out the work (*persistent*, *stream-K*) have no
waves; kernels without a recorded grid are left out.

The estimate removes half of the time of the empty part of the last wave.

## Fires on
A product with one block more for each multiprocessor than fit at once.

    column = 1 ms
    device = {"name": "NVIDIA A100-SXM4-80GB", "multiprocessors": 108, "warp_size": 32, "threads_per_sm": 2048, "threads_per_block": 1024, "registers_per_sm": 65536, "shared_memory_per_sm": 167936, "compute_major": 8, "compute_minor": 0}
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[2048,512],[512,1792]]; line = net.py:7 forward
    k = ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn; grid = [7, 16, 1]; blocks_per_sm = 1.037; block = [256, 1, 1]; registers = 255; shared_memory = 147456; properties = 0
    r = reduce_kernel; properties = 0

## Silent on
As many blocks as fit.

    column = 1 ms
    device = {"name": "NVIDIA A100-SXM4-80GB", "multiprocessors": 108, "warp_size": 32, "threads_per_sm": 2048, "threads_per_block": 1024, "registers_per_sm": 65536, "shared_memory_per_sm": 167936, "compute_major": 8, "compute_minor": 0}
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[2048,512],[512,1792]]
    k = ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn; grid = [6, 18, 1]; blocks_per_sm = 1.0; block = [256, 1, 1]; registers = 255; shared_memory = 147456; properties = 0
    r = reduce_kernel; properties = 0

A device without a description: the number of blocks that fit is not known.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[2048,512],[512,1792]]
    k = ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn; grid = [7, 16, 1]; blocks_per_sm = 1.037; block = [256, 1, 1]; registers = 255; shared_memory = 147456
    r = reduce_kernel
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import operators_in_counted_steps
from selftime.advice.detectors.counted_steps import recorded_step_count
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
from selftime.advice.savings.estimates import estimated_saving_of_recorded_step
from selftime.advice.step_statistics import step_statistics
from selftime.analysis.device.device_work import device_work
from selftime.analysis.device.kernel_attributes import (
    computed_occupancy_of_kernels,
    with_launch_configurations,
)
from selftime.analysis.slice_arguments import argument_row_numbers
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.trace import Trace
from selftime.units import whole_percent_text

MAX_REPORTED_BLOCK_WAVES: Final = 4.0
"""Largest number of waves of thread blocks of a kernel to report; with more, the last wave is at
most a fifth of the time."""

SAVED_SHARE_OF_EMPTY_LAST_WAVE: Final = 0.5
"""Assumed share of the last wave's idle multiprocessor time that other matrix sizes save."""

MIN_SAVED_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step that the fix must save to report, as it changes the model's sizes."""

SMALL_SAVING_REASON: Final = (
    f"filling last waves of blocks saves less than {whole_percent_text(MIN_SAVED_SHARE_OF_STEP)} "
    "of the recorded step"
)
"""Reason to rule the cause out."""


@rule(covers=("E9",), needs=("device", "links"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = step_statistics(trace)
    products = _matrix_kernels_with_partial_last_wave(trace)
    if limits is None or not products.height:
        yield Checked(
            "no product whose grid is known ends in a partly empty wave of blocks", is_absent=True
        )
        return
    products = products.with_columns(source_sites_of_slices(trace, products["id"]))
    empty_ms = (
        float(((1 - products["full"]) * products["duration"]).sum())
        / recorded_step_count(trace)
        / 1e6
    )
    if empty_ms * SAVED_SHARE_OF_EMPTY_LAST_WAVE < MIN_SAVED_SHARE_OF_STEP * limits.step_ms:
        yield Checked(SMALL_SAVING_REASON, empty_ms, is_slowed=False)
        return
    for kernels in products.partition_by(*SOURCE_SITE_COLUMNS, maintain_order=True):
        ids, full = kernels["id"].cast(pl.Int64).to_numpy(), kernels["full"].to_numpy()
        change = ScaleDeviceWork(ids, 1 - SAVED_SHARE_OF_EMPTY_LAST_WAVE * (1 - full))
        claim = RemovalClaim((change,), largest_changes=(ScaleDeviceWork(ids, full),))
        recorded = estimated_saving_of_recorded_step(trace, claim)
        if recorded.estimate_ms < MIN_SAVED_SHARE_OF_STEP * limits.step_ms:
            yield Checked(SMALL_SAVING_REASON, recorded.upper_ms, is_slowed=False)
        else:
            yield _finding(trace, kernels, claim)


def _matrix_kernels_with_partial_last_wave(trace: Trace) -> pl.DataFrame:
    """Returns matrix kernels whose thread blocks run in more than one wave, but in few waves.

    They have at most `MAX_REPORTED_BLOCK_WAVES` waves.

    Columns: waves; fit, the blocks that a multiprocessor runs at once; full, the share of whole
    waves that blocks fill.
    """
    mine = operators_in_counted_steps(trace)["id"]
    work = device_work(trace).filter(pl.col("operator").is_in(mine.implode()))
    work = filter_by_name(work, lambda name: names.kernel_class(name) in {"gemm", "convolution"})
    described = trace.devices.select(properties="id", most=pl.col("threads_per_sm"))
    limits = trace.device_args.select("properties", sides="block").join(
        described, on="properties", how="left", maintain_order="left"
    )
    limits = limits.select("most", "sides", computed_occupancy_of_kernels(trace)["occupancy"])
    rows = argument_row_numbers(trace, "device_args", work["id"])
    sides = [pl.col("sides").arr.get(axis).cast(pl.Float64) for axis in range(3)]
    kernels = (
        with_launch_configurations(trace, work)
        .drop("occupancy")
        .hstack(limits.select(pl.all().gather(rows)))
        .with_columns(
            fit=(pl.col("occupancy") * pl.col("most") / 100 / (sides[0] * sides[1] * sides[2]))
        )
        .with_columns(waves=pl.col("blocks_per_sm") / pl.col("fit").round())
    )
    # if the grid limits occupancy, it does not show how many blocks would fit
    by_room = pl.col("fit") < 0.999 * pl.col("blocks_per_sm")
    known = pl.col("fit").is_finite() & (pl.col("fit") >= 1) & by_room
    kernels = kernels.filter(
        known & (pl.col("waves") > 1) & (pl.col("waves") <= MAX_REPORTED_BLOCK_WAVES)
    )
    return kernels.with_columns(full=pl.col("waves") / pl.col("waves").ceil()).drop("sides")


def _finding(trace: Trace, kernels: pl.DataFrame, claim: RemovalClaim) -> Finding:
    row: dict[str, Any] = kernels.row(0, named=True)
    steps = recorded_step_count(trace)
    time = kernels["duration"].to_numpy()
    empty_ms = float(np.sum(time * (1 - kernels["full"].to_numpy()))) / steps / 1e6
    name = names.short_kernel_name(str(kernels["name"].cast(pl.String)[0]))
    return Finding(
        title=f"`{name}` runs in {row['waves']:.1f} waves of thread blocks",
        where=where_from_row(row),
        count_per_step=kernels.height / steps,
        claim=claim,
        confidence="low",
        semantics="training",
        evidence=(
            Evidence("time of the last waves' empty part, a step", empty_ms, "ms"),
            Evidence("blocks for each multiprocessor", row["blocks_per_sm"], "count"),
            Evidence("blocks that fit on a multiprocessor at once", row["fit"], "count"),
        ),
        fix=Fix(
            "Choose a batch or a width with which the blocks fill whole waves, and measure: the "
            "library may choose other tiles.",
            "for batch in (96, 104, 112, 120, 128):\n    measure(batch)  # time for each sample",
        ),
    )
