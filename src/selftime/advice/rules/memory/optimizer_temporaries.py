"""The optimizer's temporary tensors cause the peak of memory use.

## What it means
Most memory is allocated in the middle of the optimizer's step: `foreach` optimizers work on all
parameters at once, and hold results of the size of all of them. With them the device is nearly
full. The optimizer's state and float32 copies of parameters cannot be distinguished from other
memory where they were allocated before the recording.

In the trace: the peak of memory falls into an `Optimizer.step`, and temporary blocks are a tenth of
it or more.

## Why it costs
Nothing but room: what the peak takes is not there for a larger batch.

## What to do
Use a fused optimizer, which has no such temporaries, or `foreach=False`, which is slower and works
on one parameter at a time. No fused form takes sparse gradients or complex parameters, and most
optimizers have none: the advice names a form that the recorded optimizer has.

No saving is estimated.

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
from selftime.advice.detectors.device_memory import device_memory_peaks, peak_memory_holders
from selftime.advice.detectors.optimizer_steps import fastest_optimizer_form, optimizer_updates
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    rule,
    where_from_row,
)
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import is_instant_in_windows
from selftime.trace import Trace
from selftime.units import bytes_text

MIN_TEMPORARIES_SHARE_OF_PEAK: Final = 0.1
"""Smallest share of the peak memory in the optimizer's temporary tensors to report."""


@rule(covers=("G5",), needs=("device", "memory", "steps"))
def check(trace: Trace) -> Iterator[Outcome]:
    told = False
    for device_memory in device_memory_peaks(trace):
        temporaries = _optimizer_temporaries_at_peak(trace, device_memory.device)
        temporary_bytes = int(temporaries["bytes"].sum())
        if (
            not device_memory.allocated_bytes
            or temporary_bytes < MIN_TEMPORARIES_SHARE_OF_PEAK * device_memory.allocated_bytes
        ):
            continue
        told = True
        if device_memory.is_nearly_full:
            yield _finding(trace, temporaries, temporary_bytes, device_memory.allocated_bytes)
        else:
            text = f"temporaries of the optimizer are {bytes_text(temporary_bytes)} of the peak"
            yield Checked(
                f"{text}, and device {device_memory.device} is not known to be nearly full"
            )
    if not told:
        yield Checked("no memory peak consists of an optimizer's temporaries", is_absent=True)


def _optimizer_temporaries_at_peak(trace: Trace, device: int) -> pl.DataFrame:
    """Returns temporary memory blocks at the peak, if the peak is in an optimizer step."""
    temporaries = peak_memory_holders(trace, device)
    steps = _optimizer_step_calls(trace)
    windows = steps.select("start", end=pl.col("start") + pl.col("duration"))
    mine = pl.Series(
        is_instant_in_windows(temporaries["time"].to_numpy(), windows), dtype=pl.Boolean
    )
    return temporaries.filter(mine & (pl.col("category") == "temporary"))


def _optimizer_step_calls(trace: Trace) -> pl.DataFrame:
    """Returns the calls of `Optimizer.step`, in order of time."""
    return filter_by_name(slices_on(trace, "host", ended=True), names.is_optimizer_step).sort(
        "start"
    )


def _finding(
    trace: Trace, temporaries: pl.DataFrame, temporary_bytes: int, peak_bytes: int
) -> Finding:
    return Finding(
        title=(
            f"Temporaries of the optimizer are {bytes_text(temporary_bytes)} of a peak that fills "
            "memory"
        ),
        where=where_from_row(temporaries.row(0, named=True)),
        confidence="medium",
        evidence=(
            Evidence("temporaries of the optimizer at the peak", float(temporary_bytes), "bytes"),
            Evidence("share of the peak memory", temporary_bytes / peak_bytes, "ratio"),
        ),
        fix=_smaller_temporaries_fix(trace, int(temporaries["time"][0])),
    )


def _smaller_temporaries_fix(trace: Trace, peak_time: int) -> Fix:
    """Returns the fix: an optimizer implementation that needs less temporary memory."""
    before = _optimizer_step_calls(trace).filter(pl.col("start") <= peak_time)
    step = str(before["name"].cast(pl.String)[-1])
    updates = optimizer_updates(trace, filter_by_name(before, step.__eq__))
    optimizer, form = (
        names.optimizer_class(step),
        fastest_optimizer_form(names.optimizer_class(step), updates),
    )
    if form is None:
        return Fix(
            f"Use an optimizer with a fused form, as PyTorch's AdamW has it, or see whether "
            f"{optimizer} takes `foreach=False`, with which it works on one parameter at a time."
        )
    if form == "foreach":
        return Fix(
            f"Let {optimizer} work on one parameter at a time, which is slower: it has no fused "
            "form for these parameters.",
            f"optimizer = torch.optim.{optimizer}(model.parameters(), foreach=False)",
        )
    if updates.sparse_operators.height:
        return Fix(
            "Use the fused form for the parameters with dense gradients, which has no temporaries "
            "of their size; it takes no sparse ones.",
            f"optimizer = torch.optim.{optimizer}(\n"
            '    [{"params": dense, "fused": True}, {"params": sparse}], ...)',
        )
    return Fix(
        "Use a fused optimizer, which has no temporaries of the model's size.",
        f"optimizer = torch.optim.{optimizer}(model.parameters(), fused=True)",
    )
