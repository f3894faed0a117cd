"""Products of matrices run far below what the device can do.

## What it means
Large products take a good part of the device's time at less than a quarter of the rate that the
device's peak, or the bandwidth of its memory, would allow for their sizes.

## Why it costs
Why the kernel is slow a trace does not tell: no caches, no conflicts, no clocks are in it. What it
does tell are the sizes and the time, and so how far the peak is.

## What to do
Measure the same product alone, with neighbouring sizes (multiples of 64, 128), the other operand's
layout, and a newer library. If it is as slow alone, the size is the reason.

## Fires on
A product that reaches a tenth of the peak.

    column = 1 ms
    device = {"name": "NVIDIA A100-SXM4-80GB", "multiprocessors": 108}
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[4096,4096],[4096,4096]]; input_types = ["c10::BFloat16","c10::BFloat16"]; line = net.py:7 forward
    k = ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_nn; properties = 0
    r = reduce_kernel; properties = 0

## Silent on
One that reaches half.

    column = 100 us
    device = {"name": "NVIDIA A100-SXM4-80GB", "multiprocessors": 108}
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[4096,4096],[4096,4096]]; input_types = ["c10::BFloat16","c10::BFloat16"]
    k = ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_nn; properties = 0
    r = reduce_kernel; properties = 0

A device whose peak is not known.

    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = [[4096,4096],[4096,4096]]; input_types = ["c10::BFloat16","c10::BFloat16"]
    k = ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_nn
    r = reduce_kernel
"""  # noqa: E501 - what a letter stands for is on one line

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule, where
from selftime.advice.detectors.counted_steps import steps_recorded
from selftime.advice.detectors.operators import recorded_operators
from selftime.advice.gate import gate
from selftime.advice.pricing import priced
from selftime.advice.replay import Scale
from selftime.analysis.device.work import device_work
from selftime.analysis.models import Call, work
from selftime.analysis.models.modelled import peaks_in
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import filter_by_name
from selftime.devices import Peaks
from selftime.trace import Trace

FAR: Final = 0.25
"""Of the peak: products of a fair size reach half of it or more."""

LEAST_SHARE: Final = 0.2
"""Of the step in such products, for their rate to be worth a look."""

LONG: Final = 50_000
"""ns. Shorter products end before they fill the device."""

ALIGNED: Final = 2
"""Kernels that load at most so many elements at once have a cause of their own."""


@rule(covers=("E12",), needs=("device", "links", "shapes"))
def check(trace: Trace) -> Iterator[Outcome]:
    limits = gate(trace)
    peaks = peaks_in(trace)
    if limits is None or peaks is None:
        yield Checked("the peak of the device is not known, and so no rate tells anything")
        return
    found = _products(trace, peaks)
    slow = found.filter((pl.col("least") < FAR * pl.col("duration")) & (pl.col("duration") > LONG))
    if not slow.height:
        yield Checked(
            f"no long product runs below {FAR:.0%} of what the device can do", is_absent=True
        )
        return
    slow = slow.with_columns(sites(trace, slow["id"]))
    least = max(LEAST_SHARE * limits.step_ms, limits.floor_ms())
    for part in slow.partition_by(*SITE, maintain_order=True):
        if sum(part["duration"].to_list()) >= least * 1e6 * steps_recorded(trace):
            bound = priced(trace, limits, Scale(part["id"].cast(pl.Int64).to_numpy(), 0.0))
            if (bound.estimate_ms or 0.0) >= least:
                yield _finding(trace, part)
    spent = sum(slow["duration"].to_list()) / steps_recorded(trace) / 1e6
    yield Checked(f"long products below {FAR:.0%} of the peak take {spent:.2f} ms a step")


def _products(trace: Trace, peaks: Peaks) -> pl.DataFrame:
    """Kernels of products whose sizes are told, with the least time that they can take, in ns."""
    operators = filter_by_name(recorded_operators(trace), names.is_matrix_operator)
    keys = ["called", "input_shapes", "input_types", "concrete_inputs"]
    told = operators.select(*keys[1:], operator="id", called="name")
    told = told.with_columns(pl.col(*keys).cast(pl.String)).drop_nulls(keys[1:3])
    runs = device_work(trace).filter((pl.col("kind") == "kernel") & (pl.col("duration") > 0))
    runs = filter_by_name(runs, _is_product).join(told, on="operator", maintain_order="left")
    alone = runs.filter(pl.len().over("operator") == 1)
    cores = filter_by_name(alone, lambda name: names.uses_tensor_cores(name) is True)["id"]
    alone = alone.with_columns(cores=pl.col("id").is_in(cores.implode()))
    keys = [*keys, "cores"]
    rows = [
        (*call, least)
        for call in alone.select(keys).unique().iter_rows()
        if (least := _least(peaks, *call)) is not None
    ]
    kinds = {**dict.fromkeys(keys[:-1], pl.String), "cores": pl.Boolean, "least": pl.Float64}
    known = pl.DataFrame(rows, schema=kinds, orient="row")
    return alone.join(known, on=keys, how="inner", nulls_equal=True, maintain_order="left")


def _is_product(name: str) -> bool:
    """Whether a kernel multiplies, and is not one for unaligned operands."""
    alignment = names.alignment_of(name)
    is_product = names.kernel_class(name) in {"gemm", "convolution"}
    return is_product and (alignment is None or alignment > ALIGNED)


def _least(
    peaks: Peaks, name: str, shapes: str, types: str, concrete: str | None, cores: bool
) -> float | None:
    """The least time by the roofline: operations at the peak, or bytes at the bandwidth."""
    found = work(name, Call(shapes, types, concrete))
    if found is None or found.bytes is None or not 0 < found.flops < 1 << 58:
        return None
    dtype = "tf32" if cores and found.dtype == "float32" else found.dtype
    peak = peaks.operations.get(dtype or "")
    return None if not peak else 1e9 * max(found.flops / peak, found.bytes / peaks.bytes)


def _finding(trace: Trace, part: pl.DataFrame) -> Finding:
    row: dict[str, Any] = part.row(0, named=True)
    steps = steps_recorded(trace)
    time, least = sum(part["duration"].to_list()), sum(part["least"].to_list())
    return Finding(
        title=f"`{row['called']}` of {row['input_shapes']} runs at {least / time:.0%} of the peak",
        where=where(row),
        count_per_step=part.height / steps,
        saving=Saving(),
        confidence="low",
        semantics="numerics",
        evidence=(
            Evidence("device time in it, a step", time / steps / 1e6, "ms"),
            Evidence("least time by the peaks of the device", least / steps / 1e6, "ms"),
        ),
        fix=Fix(
            "A trace does not tell why. Measure the product alone, and with neighbouring sizes.",
            "from torch.utils.benchmark import Timer\n"
            'Timer("a @ b", globals={"a": a, "b": b}).blocked_autorange()',
        ),
    )
