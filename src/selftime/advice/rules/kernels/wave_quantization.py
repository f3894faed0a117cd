"""The last wave of a kernel's blocks fills a part of the device only.

## What it means
The blocks of a product of matrices, or of a convolution, run in waves: as many at once as the
multiprocessors hold. Here a few blocks are left over for one more wave.

## Why it costs
A wave takes its time however few blocks it has. With 1.1 waves the second is nearly as long as the
first, and nine tenths of the device are idle in it.

## What to do
Choose sizes whose blocks fill whole waves: a batch or a width a little smaller, so that the last
wave falls away, or larger, so that it is full. A library may choose other tiles for another size:
measure. Kernels that keep their blocks and share out the work (*persistent*, *stream-K*) have no
waves, and neither has what recorders tell no grid of.

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

A device that nobody describes: what fits is not known.

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
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule, where
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.detectors.operators import recorded_operators
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Scale
from selftime.analysis.device.kernel_attributes import with_grids
from selftime.analysis.device.occupancy import computed_occupancy
from selftime.analysis.device.work import device_work
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_arguments import argument_rows
from selftime.analysis.slice_filters import filter_by_name
from selftime.trace import Trace

MOST_WAVES: Final = 4.0
"""With more waves the last is a fifth of the time or less, and blocks no longer end together."""

SAVED: Final = 0.5
"""Of the empty part of the last wave: tiles change with the size, and blocks that end early let the
next ones begin."""

LEAST_SHARE: Final = 0.05
"""Of the step: sizes of a model are not changed for less."""


@rule(covers=("E9",), needs=("device", "links"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    found = _last_waves(trace)
    if limits is None or not found.height:
        yield Checked(
            "no product of known grid ends in a wave that is partly empty", is_absent=True
        )
        return
    found = found.with_columns(sites(trace, found["id"]))
    empty = float(((1 - found["full"]) * found["duration"]).sum()) / steps_recorded(trace) / 1e6
    if empty * SAVED < LEAST_SHARE * limits.step_ms:
        yield Checked(f"empty parts of last waves take {empty:.2f} ms of a step at most", empty)
        return
    for part in found.partition_by(*SITE, maintain_order=True):
        ids, full = part["id"].cast(pl.Int64).to_numpy(), part["full"].to_numpy()
        change = Scale(ids, 1 - SAVED * (1 - full))
        saving = priced(trace, limits, change, most=(Scale(ids, full),))
        if (saving.estimate_ms or 0.0) < LEAST_SHARE * limits.step_ms:
            text = f"empty parts of last waves are worth below {LEAST_SHARE:.0%} of the step"
            yield Checked(text, limits.unrecorded(saving.upper_ms or 0.0))
        else:
            yield limits.judge(_finding(trace, part, saving, change))


def _last_waves(trace: Trace) -> pl.DataFrame:
    """Products of the steps that count whose waves are known: waves, and the share of them full."""
    mine = recorded_operators(trace)["id"]
    work = device_work(trace).filter(pl.col("operator").is_in(mine.implode()))
    work = filter_by_name(work, lambda name: names.kernel_class(name) in {"gemm", "convolution"})
    described = trace.devices.select(properties="id", most=pl.col("threads_per_sm"))
    held = trace.device_args.select("properties", sides="block").join(
        described, on="properties", how="left", maintain_order="left"
    )
    held = held.select("most", "sides", computed_occupancy(trace)["occupancy"])
    rows = argument_rows(trace, "device_args", work["id"])
    sides = [pl.col("sides").arr.get(axis).cast(pl.Float64) for axis in range(3)]
    told = (
        with_grids(trace, work)
        .drop("occupancy")
        .hstack(held.select(pl.all().gather(rows)))
        .with_columns(
            fit=(pl.col("occupancy") * pl.col("most") / 100 / (sides[0] * sides[1] * sides[2]))
        )
        .with_columns(waves=pl.col("blocks_per_sm") / pl.col("fit").round())
    )
    # where the grid, not the room, is what limits occupancy, it does not tell how many would fit
    by_room = pl.col("fit") < 0.999 * pl.col("blocks_per_sm")
    known = pl.col("fit").is_finite() & (pl.col("fit") >= 1) & by_room
    told = told.filter(known & (pl.col("waves") > 1) & (pl.col("waves") <= MOST_WAVES))
    return told.with_columns(full=pl.col("waves") / pl.col("waves").ceil()).drop("sides")


def _finding(trace: Trace, part: pl.DataFrame, saving: Saving, change: Scale) -> Finding:
    row: dict[str, Any] = part.row(0, named=True)
    steps = steps_recorded(trace)
    time = part["duration"].to_numpy()
    empty = float(np.sum(time * (1 - part["full"].to_numpy()))) / steps / 1e6
    name = names.short_kernel_name(str(part["name"].cast(pl.String)[0]))
    return Finding(
        title=f"`{name}` runs in {row['waves']:.1f} waves",
        where=where(row),
        count_per_step=part.height / steps,
        saving=saving,
        confidence="low",
        semantics="training",
        evidence=(
            Evidence("time in which the last wave is empty, a step", empty, "ms"),
            Evidence("blocks for each multiprocessor", row["blocks_per_sm"], "count"),
            Evidence("blocks that fit at once", row["fit"], "count"),
        ),
        fix=Fix(
            "Choose a batch or a width with which the blocks fill whole waves, and measure: the "
            "library may choose other tiles.",
            "for batch in (96, 104, 112, 120, 128): measure(batch)    # time for each sample",
        ),
        changes=(change,),
    )
