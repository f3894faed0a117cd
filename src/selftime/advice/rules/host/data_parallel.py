"""`DataParallel` drives all devices from one process.

## What it means
`torch.nn.DataParallel` copies the model to every device in each forward pass, scatters the batch,
and gathers the results, all from the threads of one Python process.

In the trace: the wrapper's forward pass, as a host slice or a Python frame, in a counted step, and
work on several devices. With one device, or none, the wrapper only calls the model.

## Why it costs
The threads share Python's lock, so that the devices wait for each other's launches; and the copies
of the weights are made anew in every step. How much that is depends on the devices' links, which a
trace of one process does not show: no saving is estimated.

## What to do
Use `DistributedDataParallel`, one process for each device, also on a single machine.

## Fires on
Forward passes of the wrapper.

    mark 1  | ssssssssssssssssssss
    mark 1  |  pppppppp  pppppppp
    cpu 1   |   mmmmmm    mmmmmm
    call 1  |   k l       k l
    gpu 0.7 |     kkkk      kkkk
    gpu 1.7 |      llll      llll
    s = ProfilerStep#1
    p = DataParallel.forward; line = train.py:7 main
    m = aten::mm

## Silent on
Its distributed successor.

    mark 1  | ssssssssssssssssssss
    mark 1  |  pppppppp  pppppppp
    cpu 1   |   mmmmmm    mmmmmm
    call 1  |   k l       k l
    gpu 0.7 |     kkkk      kkkk
    gpu 1.7 |      llll      llll
    s = ProfilerStep#1
    p = DistributedDataParallel.forward; line = train.py:7 main
    m = aten::mm

A single device.

    mark 1  | ssssssssssssssssssss
    mark 1  |  pppppppp  pppppppp
    cpu 1   |   mmmmmm    mmmmmm
    call 1  |   k         k
    gpu 0.7 |     kkkk      kkkk
    s = ProfilerStep#1
    p = DataParallel.forward; line = train.py:7 main
    m = aten::mm
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.advice.detectors.counted_steps import counted_step_count, slices_in_counted_steps
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.analysis.device.device_work import is_device_unrecorded
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.trace import Trace

FIX_CODE: Final = """\
# torchrun --nproc-per-node=gpu train.py
torch.distributed.init_process_group("nccl")
model = DistributedDataParallel(model, device_ids=[local_rank])"""
"""Example code of the fix: `DistributedDataParallel` with one process for each device."""


@rule(covers=("D7",), needs=("operators",))
def check(trace: Trace) -> Iterator[Outcome]:
    host = pl.concat([slices_on(trace, "host"), slices_on(trace, "python")])
    calls = slices_in_counted_steps(trace, filter_by_name(host, names.is_data_parallel_slice))
    if not calls.height:
        yield Checked("`DataParallel` does not run in the recorded steps", is_absent=True)
        return
    devices = trace.device_args["device"].drop_nulls().n_unique()
    if devices <= 1 and not is_device_unrecorded(trace):
        works = "a single device works" if devices else "no device works"
        yield Checked(f"{works}: `DataParallel` only calls the model")
        return
    yield _finding(trace, next(slices_by_line(trace, calls), LineSlices.as_one_group(calls)))


def _finding(trace: Trace, forward_calls: LineSlices) -> Finding:
    count = forward_calls.slices.height / counted_step_count(trace)
    return Finding(
        title="One process drives all devices through `DataParallel`",
        where=forward_calls.where,
        count_per_step=count,
        confidence="medium",
        evidence=(
            Evidence(
                "forward passes in a step",
                count,
                "count",
                forward_calls.events(),
                forward_calls.ids,
            ),
        ),
        fix=Fix("Run one process for each device.", FIX_CODE),
    )
