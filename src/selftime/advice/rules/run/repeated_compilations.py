"""Functions are compiled again in the course of the run.

## What it means
`torch.compile` made code for the arguments that it saw first, met others that do not satisfy its
guards, and compiled the function anew. That happens when a batch, an epoch or a phase brings
something new, and seldom within the recorded steps.

In the ledger of the run: compilations for which torch tells the guard that failed.

## Why it costs
A compilation takes tenths of a second to a minute, in which nothing else of the program runs. After
eight versions of a function (`recompile_limit`) PyTorch gives up and runs it uncompiled.

## What to do
Make what differs a tensor: a Python number that changes from call to call is compiled in as a
constant. Where sizes differ, say so with `torch._dynamo.mark_dynamic(x, 0)` before the first call,
pad to a few sizes, or drop the last batch that is smaller (`drop_last=True`).

The estimate removes all compilations after a function's first one. The low end leaves the longest
of them, as code for all sizes may take that much longer to compile.

## Fires on
Two more compilations, since sizes change.

    run | before 1 s
    run | compiled forward 2 s at model.py:3
    run | training 2100 ms: compile 2 s
    run | 20 training 100 ms
    run | compiled forward 2 s at model.py:3: 0/0: tensor 'x' size mismatch at index 0
    run | training 2100 ms: compile 2 s
    run | 20 training 100 ms
    run | compiled forward 2 s at model.py:3: 0/1: tensor 'x' size mismatch at index 1
    run | training 2100 ms: compile 2 s
    run | 20 training 100 ms

## Silent on
The first compilation of each function.

    run | before 1 s
    run | compiled forward 2 s at model.py:3
    run | compiled loss 2 s at model.py:9
    run | training 4100 ms: compile 4 s
    run | 20 training 100 ms
"""

from collections.abc import Iterator
from typing import Any, Final

import polars as pl

from selftime import names
from selftime.advice.detectors.run_lines import where_from_compilation
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RunClaim
from selftime.analysis.run.compilation_sites import compilations_with_sites
from selftime.run import Run
from selftime.trace import Trace

FIX_CODE: Final = """torch._dynamo.mark_dynamic(batch, 0)     # sizes that differ
scale = torch.tensor(scale)              # a number that differs"""
"""Example code of the fix: mark sizes as dynamic, and pass numbers that change as tensors."""


@rule(covers=("M3", "H1"), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    compilations = compilations_with_sites(trace.run)
    again = compilations.filter(pl.col("reason").is_not_null() & pl.col("duration").is_not_null())
    if not again.height:
        yield Checked("no function was compiled again", is_absent=True)
        return
    counted = int(trace.run.segments["compile"].sum())
    share = max(counted, 1) / max(int(compilations["duration"].sum()), counted, 1)
    for _, rows in again.group_by("definition", maintain_order=True):
        yield _finding(trace.run, rows, share)


def _finding(run: Run, again: pl.DataFrame, share: float) -> Finding:
    """Returns the finding about one function.

    `share` is the part of the compile times that is left when overlaps count once.
    """
    ordered = again.sort("duration", descending=True, maintain_order=True)
    longest: dict[str, Any] = ordered.row(0, named=True)
    placed = ordered.sort("how", nulls_last=True, maintain_order=True).row(0, named=True)
    spent, count = int(share * int(again["duration"].sum())), again.height
    times = "once more" if count == 1 else f"{count} more times"
    reason = names.recompilation_reason(longest["reason"]).replace("`", "'")
    function = str(longest["function"] or "a function").replace("`", "'")
    return Finding(
        title=f"`{function}` is compiled {times}: `{reason}`",
        where=where_from_compilation(run, placed),
        claim=RunClaim(spent, saved_ns=spent, low_ns=spent - int(share * longest["duration"])),
        confidence="high" if count > 1 else "medium",
        evidence=(
            Evidence("compilations after the first one", float(count), "count"),
            Evidence("time of these compilations", spent / 1e6, "ms"),
            Evidence("the longest of them", longest["duration"] / 1e6, "ms"),
        ),
        fix=Fix("Make numbers that change tensors, and mark sizes that change.", FIX_CODE),
    )
