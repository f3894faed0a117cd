"""Writing checkpoints stops the program again and again.

## What it means
`torch.save` and its kin write the model within the loop, and the loop waits for it.

In the ledger of the run: steps that took much longer than others of their kind, in which the Python
stack was seen within `torch.save`, `torch.distributed.checkpoint` or safetensors. Writing that
makes a step less than twice as long or 20 ms longer, or that every step does, is not seen.

## Why it costs
The tensors are copied, packed and written to disk, one after another, while the device has nothing
to do.

## What to do
Write less often: what is lost by a crash is at most the time between two checkpoints. Or write
beside the program: copy the state first, then save it in a thread, or use
`torch.distributed.checkpoint.async_save`.

The estimate writes every other checkpoint. The low end leaves out the shorter half of them, the
high end removes all of the time, as writing beside the program does at best.

## Fires on
A checkpoint each ten steps.

    run | before 1 s
    run | 9 training 100 ms
    run | training 600 ms: checkpoint save 500 ms at train.py:30 main
    run | 9 training 100 ms
    run | training 600 ms: checkpoint save 500 ms at train.py:30 main
    run | 9 training 100 ms

## Silent on
One checkpoint at the end.

    run | before 1 s
    run | 30 training 100 ms
    run | training 600 ms: checkpoint save 500 ms at train.py:30 main

Reading one.

    run | before 1 s
    run | 9 training 100 ms
    run | training 600 ms: checkpoint load 500 ms at train.py:30 main
    run | training 600 ms: checkpoint load 500 ms at train.py:30 main
    run | 9 training 100 ms
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime.advice.detectors.run_lines import reading_error, where_from_reading
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RunClaim
from selftime.analysis.run.slow_steps import checkpoint_time_by_step
from selftime.trace import Trace

MIN_CHECKPOINTS: Final = 2
"""Smallest number of checkpoints for the rule to fire: one is worth its time."""

FIX_CODE: Final = """if epoch % 5 == 0 or epoch == last:         # write less often
    state = copy.deepcopy(model.state_dict())
    # beside the program:
    threading.Thread(target=torch.save, args=(state, path)).start()"""
"""Example code of the fix: save rarely, and in a thread."""


@rule(covers=("M6",), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    saved = checkpoint_time_by_step(trace.run)
    is_absent = True
    for _, rows in saved.group_by("file", "line", "function", maintain_order=True):
        is_absent = False
        if rows.height < MIN_CHECKPOINTS:
            yield Checked("a checkpoint was written once within the steps")
        else:
            yield _finding(rows)
    if is_absent:
        yield Checked("no checkpoint was seen within the steps", is_absent=True)


def _finding(checkpoints: pl.DataFrame) -> Finding:
    first: dict[str, Any] = checkpoints.row(0, named=True)
    times, count = checkpoints["duration"].sort(), checkpoints.height
    whole = int(times.sum())
    return Finding(
        title=f"{count} steps are slow because each waits until a checkpoint is written",
        where=where_from_reading(first),
        claim=RunClaim(
            whole,
            saved_ns=whole // 2,
            low_ns=int(times.head(count // 2).sum()),
            noise_ns=reading_error(count),
        ),
        confidence="medium",
        evidence=(
            Evidence("steps with a checkpoint", float(count), "count"),
            Evidence("time of one checkpoint", whole / count / 1e6, "ms"),
        ),
        fix=Fix("Write checkpoints less often, or in another thread or process.", FIX_CODE),
    )
