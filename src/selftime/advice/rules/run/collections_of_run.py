"""Python's garbage collector stops the program in the course of the run.

## What it means
A full collection looks at every object that Python tracks. It comes once in many steps, so that few
recorded steps show one; the ledger counts them all.

In the ledger of the run: the time of garbage collections within steps, but the first five.

## Why it costs
A program that has imported PyTorch and a data set has a million objects and more. Each full
collection stops it for 0.1 s and longer.

## What to do
After the first steps call `gc.freeze()`: the collector then skips the objects that exist by then.
Or stop the collector and collect now and then, on all ranks in the same step. A `gc.collect()` of
your own in the loop costs the same.

The estimate removes 95 % of the collections in steps; three quarters of that at the low end.

## Fires on
A tenth of each step.

    run | before 1 s
    run | 50 training 100 ms: garbage_collection 10 ms

## Silent on
Short collections.

    run | before 1 s
    run | 50 training 100 ms: garbage_collection 1 ms

Collections before the first step and in it, while packages are imported.

    run | before 1 s: garbage_collection 500 ms
    run | training 600 ms: garbage_collection 500 ms
    run | 50 training 100 ms
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, Where, rule
from selftime.advice.savings.claims import REPLAYED_SAVING_RANGE, RunClaim
from selftime.trace import Trace
from selftime.units import seconds_text

REMAINING_COLLECTION_TIME_SHARE: Final = 0.05
"""Share of the collector's time that remains after the fix: collections of few objects."""

FIRST_STEPS: Final = 5
"""Steps after which objects may be frozen: what they are made of by then mostly stays."""

FIX_CODE: Final = """import gc

gc.collect()
gc.freeze()                   # after the first steps"""
"""Example code of the fix: skip the objects that exist."""


@rule(covers=("M5", "D6"), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    steps = trace.run.segments.filter(pl.col("kind").is_not_null())
    steps = steps.slice(FIRST_STEPS)
    spent = int(steps["garbage_collection"].sum())
    if not spent:
        yield Checked("no garbage collection ran after the first steps", is_absent=True)
        return
    longest: int = max(steps["garbage_collection"].to_list())
    # `gc.collect()` before the freezing takes as long as the longest one.
    saved = int((1 - REMAINING_COLLECTION_TIME_SHARE) * (spent - longest))
    yield Finding(
        title=f"Python's garbage collections take {seconds_text(spent)} of the steps",
        where=Where(),  # a collection runs wherever objects are made: its line means nothing
        claim=RunClaim(
            spent - longest, saved_ns=saved, low_ns=int(REPLAYED_SAVING_RANGE.low * saved)
        ),
        confidence="high",
        evidence=(
            Evidence("garbage collections in steps", spent / 1e6, "ms"),
            Evidence("steps with one", float((steps["garbage_collection"] > 0).sum()), "count"),
            Evidence("most of it in one step", longest / 1e6, "ms"),
        ),
        fix=Fix("Call `gc.freeze()` after the first steps.", FIX_CODE),
    )
