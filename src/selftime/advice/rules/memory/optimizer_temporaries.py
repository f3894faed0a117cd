"""The optimizer's own temporaries make the peak of memory.

## What it means
Most memory is allocated in the middle of the optimizer's step: `foreach` optimizers work on all
parameters at once, and hold results of the size of all of them. With them the device is nearly
full. What an optimizer holds for good beside the parameters, as its state or a copy in float32, is
not told apart where it was allocated before the recording.

## Why it costs
Nothing but room: what the peak takes is not there for a larger batch.

## What to do
Use a fused optimizer, which has no such temporaries, or `foreach=False`, which is slower and works
on one parameter at a time.

## Fires on
Temporaries in the step of an optimizer, on a device that they fill.

    column = 1 ms
    mark 1   | ssssssssssttttttttttuuuuuuuuuu
    mark 1   |       oooo      oooo      oooo
    cpu 1    | aaaa  ffff aaaa ffff aaaa ffff
    memory 1 | P      T t       T t       T t
    call 1   | k         k         k
    gpu 7    |  kkkk      kkkk      kkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = Optimizer.step#AdamW.step; line = train.py:20 main
    a = aten::mm
    f = aten::_foreach_sqrt; line = train.py:20 main
    k = cudaLaunchKernel
    P = model; bytes = 12000; device_type = 1; device = 0
    T = roots; bytes = 3500; device_type = 1; device = 0
    device = {"name": "NVIDIA T4", "memory": 16000}

## Silent on
The same on a device with room.

    column = 1 ms
    mark 1   | ssssssssssttttttttttuuuuuuuuuu
    mark 1   |       oooo      oooo      oooo
    cpu 1    | aaaa  ffff aaaa ffff aaaa ffff
    memory 1 | P      T t       T t       T t
    call 1   | k         k         k
    gpu 7    |  kkkk      kkkk      kkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    o = Optimizer.step#AdamW.step; line = train.py:20 main
    a = aten::mm
    f = aten::_foreach_sqrt; line = train.py:20 main
    k = cudaLaunchKernel
    P = model; bytes = 12000; device_type = 1; device = 0
    T = roots; bytes = 3500; device_type = 1; device = 0
    device = {"name": "NVIDIA A100", "memory": 80000}
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule, where
from selftime.advice.detectors.memory_use import fullness, holders
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import is_within
from selftime.trace import Trace
from selftime.units import bytes_text

LEAST_SHARE: Final = 0.1
"""Of the peak: the room of a batch that is a tenth larger."""

CODE: Final = """optimizer = torch.optim.AdamW(model.parameters(), fused=True)"""
"""An optimizer without temporaries of the size of the model."""


@rule(covers=("G5",), needs=("device", "memory", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    told = False
    for one in fullness(trace):
        rows = _temporaries(trace, one.device)
        held = int(rows["bytes"].sum())
        if not one.allocated or held < LEAST_SHARE * one.allocated:
            continue
        told = True
        if one.is_nearly_full:
            yield _finding(rows, held, one.allocated)
        else:
            text = f"temporaries of the optimizer are {bytes_text(held)} of the peak"
            yield Checked(f"{text}, and device {one.device} is not known to be nearly full")
    if not told:
        yield Checked("no peak of memory is made by temporaries of an optimizer", is_absent=True)


def _temporaries(trace: Trace, device: int) -> pl.DataFrame:
    """What is temporary at the peak of a device, if that lies in an optimizer's step."""
    rows = holders(trace, device)
    steps = filter_by_name(slices_on(trace, "host"), names.is_optimizer_step)
    steps = steps.filter(pl.col("duration").is_not_null()).sort("start")
    windows = steps.select("start", end=pl.col("start") + pl.col("duration"))
    mine = pl.Series(is_within(rows["time"].to_numpy(), windows), dtype=pl.Boolean)
    return rows.filter(mine & (pl.col("category") == "temporary"))


def _finding(rows: pl.DataFrame, held: int, peak: int) -> Finding:
    return Finding(
        title=f"Temporaries of the optimizer are {bytes_text(held)} of a peak that fills memory",
        where=where(rows.row(0, named=True)),
        saving=Saving(),
        confidence="medium",
        evidence=(
            Evidence("temporaries of the optimizer at the peak", float(held), "bytes"),
            Evidence("of the peak", held / peak, "ratio"),
        ),
        fix=Fix("Use a fused optimizer, which has no temporaries of the model's size.", CODE),
    )
