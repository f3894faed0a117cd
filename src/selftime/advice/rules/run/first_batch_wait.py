"""The run waits for its first batch.

## What it means
Nothing was loaded while the program imported its packages and built its model: the first batch was
asked for when the first step began.

In the ledger of the run: the time in the first request for a batch, with the making of the iterator
and of its workers.

## Why it costs
Workers start, import what they need, and load a whole batch, while the program waits. A long run
does not notice; a short one, as in a search for hyperparameters or a test, does.

## What to do
Make the iterator before the model is built, so that its workers load meanwhile. Without workers
nothing is loaded beside the program: set `num_workers`.

What of the wait the program can hide is not known: the finding tells the whole wait as the most. It
is reported from a tenth of the run.

## Fires on
A wait of 3 s in a run of 10 s.

    run | before 2 s
    run | iterator 1 s with 4 new workers at train.py:9 main
    run | training 3100 ms: epoch_boundary 3 s
    run | 49 training 100 ms

## Silent on
A first batch that comes as soon as all others.

    run | before 2 s
    run | iterator 1 ms with 4 new workers at train.py:9 main
    run | training 110 ms: epoch_boundary 10 ms
    run | 49 training 100 ms
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.advice.detectors.run_lines import where_from_reading, where_of_step_loop
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RunClaim
from selftime.analysis.run.parts import run_parts
from selftime.trace import Trace
from selftime.units import seconds_text

FIX_CODE: Final = """batches = iter(loader)        # its workers begin now
model = build_model()         # ... while this runs
for batch in batches:
    train(batch)"""
"""Example code of the fix: start the workers before the model is built."""


@rule(covers=("M2",), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    run = trace.run
    parts = run_parts(run)
    waited = int(parts.filter(pl.col("part") == "first_batch")["duration"].sum())
    if not waited:
        yield Checked("no DataLoader was asked for a first batch", is_absent=True)
        return
    made = run.iterators.rows(named=True)
    workers = float(made[0]["workers"]) if made else None
    yield Finding(
        title=f"The run waits {seconds_text(waited)} for its first batch",
        where=where_from_reading(made[0]) if made else where_of_step_loop(run),
        claim=RunClaim(waited),
        confidence="medium",
        evidence=(
            Evidence("wait for the first batch", waited / 1e6, "ms"),
            Evidence("workers of the DataLoader", workers, "count"),
        ),
        fix=Fix("Begin to load before the model is built.", FIX_CODE),
    )
