"""`DataParallel` drives all devices from one process.

## What it means
`torch.nn.DataParallel` copies the model to every device in each forward pass, scatters the batch,
and gathers the results, all from the threads of one Python process.

## Why it costs
The threads share Python's lock, so that the devices wait for each other's launches; and the copies
of the weights are made anew in every step. How much that is depends on the devices' links, which a
trace of one process does not tell: no number is given.

## What to do
Use `DistributedDataParallel`, one process for each device, also on a single machine.

## Fires on
Forward passes of the wrapper.

    mark 1 | ssssssssssssssssssss
    mark 1 |  pppppppp  pppppppp
    cpu 1  |   mmmmmm    mmmmmm
    s = ProfilerStep#1
    p = DataParallel.forward; line = train.py:7 main
    m = aten::mm

## Silent on
Its distributed successor.

    mark 1 | ssssssssssssssssssss
    mark 1 |  pppppppp  pppppppp
    cpu 1  |   mmmmmm    mmmmmm
    s = ProfilerStep#1
    p = DistributedDataParallel.forward; line = train.py:7 main
    m = aten::mm
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.base import Checked, Evidence, Finding, Fix, Outcome, Saving, rule
from selftime.advice.detectors.counted_steps import counted, steps_counted
from selftime.advice.detectors.places import Place, places
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.trace import Trace

CODE: Final = """torch.distributed.init_process_group("nccl")  # by `torchrun --nproc-per-node=gpu`
model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[local_rank])"""
"""One process for each device."""


@rule(covers=("D7",))
def check(trace: Trace) -> Iterator[Outcome]:
    host = pl.concat([slices_on(trace, "host"), slices_on(trace, "python")])
    calls = counted(trace, filter_by_name(host, names.is_data_parallel))
    if not calls.height:
        yield Checked("`DataParallel` does not run in the steps", is_absent=True)
        return
    yield _finding(trace, next(places(trace, calls), Place.of(calls)))


def _finding(trace: Trace, place: Place) -> Finding:
    count = place.slices.height / steps_counted(trace)
    return Finding(
        title="One process drives all devices through `DataParallel`",
        where=place.where,
        count_per_step=count,
        saving=Saving(),
        confidence="medium",
        evidence=(Evidence("forward passes in a step", count, "count", place.events()),),
        fix=Fix("Run one process for each device.", CODE),
    )
