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
on one parameter at a time. No fused form takes sparse gradients or complex parameters, and most
optimizers have none: what is advised is what the one that was seen has.

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
from selftime.advice.detectors.optimizers import form_of, updates_of
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import is_within
from selftime.trace import Trace
from selftime.units import bytes_text

LEAST_SHARE: Final = 0.1
"""Of the peak: the room of a batch that is a tenth larger."""


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
            yield _finding(trace, rows, held, one.allocated)
        else:
            text = f"temporaries of the optimizer are {bytes_text(held)} of the peak"
            yield Checked(f"{text}, and device {one.device} is not known to be nearly full")
    if not told:
        yield Checked("no peak of memory is made by temporaries of an optimizer", is_absent=True)


def _temporaries(trace: Trace, device: int) -> pl.DataFrame:
    """What is temporary at the peak of a device, if that lies in an optimizer's step."""
    rows = holders(trace, device)
    steps = _steps(trace)
    windows = steps.select("start", end=pl.col("start") + pl.col("duration"))
    mine = pl.Series(is_within(rows["time"].to_numpy(), windows), dtype=pl.Boolean)
    return rows.filter(mine & (pl.col("category") == "temporary"))


def _steps(trace: Trace) -> pl.DataFrame:
    """The runs of optimizers' steps, in order of time."""
    return filter_by_name(slices_on(trace, "host", ended=True), names.is_optimizer_step).sort(
        "start"
    )


def _finding(trace: Trace, rows: pl.DataFrame, held: int, peak: int) -> Finding:
    return Finding(
        title=f"Temporaries of the optimizer are {bytes_text(held)} of a peak that fills memory",
        where=where(rows.row(0, named=True)),
        saving=Saving(),
        confidence="medium",
        evidence=(
            Evidence("temporaries of the optimizer at the peak", float(held), "bytes"),
            Evidence("of the peak", held / peak, "ratio"),
        ),
        fix=_fix(trace, int(rows["time"][0])),
    )


def _fix(trace: Trace, peak: int) -> Fix:
    """A form of the optimizer that ran at the peak which holds less, and which it has."""
    before = _steps(trace).filter(pl.col("start") <= peak)
    step = str(before["name"].cast(pl.String)[-1])
    updates = updates_of(trace, filter_by_name(before, step.__eq__))
    optimizer, form = names.optimizer_of(step), form_of(names.optimizer_of(step), updates)
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
    if updates.sparse.height:
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
