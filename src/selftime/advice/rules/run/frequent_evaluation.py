"""Evaluation takes a large part of the run.

## What it means
The program evaluates its model during training, often or on much data.

In the ledger of the run: the time from `model.eval()` to `model.train()` or to the next step, and
how often it came.

## Why it costs
No step of training runs meanwhile. A forward pass over a tenth of the data, once an epoch, takes
some 4 % of the training: a third of a step's work, on a ninth of the data.

## What to do
Evaluate less often, on fewer samples, or with larger batches, which need no memory for gradients.
Use `torch.inference_mode()`, and let the evaluation's DataLoader have workers that stay.

A phase in evaluation mode in every step of training, no longer than the rest of two steps, may be
of the iteration itself: a policy that makes a few moves before each update. Stacks tell these from
evaluations, as they show the step of an environment or none in many. Where few were read, the rule
is silent.

The rule fires from a tenth of the run. The estimate evaluates every other time; the low end leaves
out the shorter half, the high end all but the last.

## Fires on
Half a second of evaluation after each second of steps.

    run | before 1 s
    run | 10 training 100 ms
    run | training 600 ms: evaluation 500 ms, program 500 ms at train.py:40 validate
    run | 9 training 100 ms
    run | training 600 ms: evaluation 500 ms, program 500 ms at train.py:40 validate
    run | 9 training 100 ms

An evaluation after each step, in which no environment was seen.

    run | before 1 s
    run | 30 training 100 ms: evaluation 40 ms
    run | evaluates

## Silent on
A part of every step in evaluation mode, of which nothing else is known.

    run | before 1 s
    run | 30 training 100 ms: evaluation 40 ms

An evaluation that takes little.

    run | before 1 s
    run | 50 training 100 ms
    run | training 200 ms: evaluation 100 ms, program 100 ms at train.py:40 validate
    run | 49 training 100 ms
    run | training 200 ms: evaluation 100 ms, program 100 ms at train.py:40 validate

One evaluation.

    run | before 1 s
    run | 10 training 100 ms
    run | training 900 ms: evaluation 800 ms, program 800 ms at train.py:40 validate
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.advice.detectors.run_lines import where_from_reading
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RunClaim
from selftime.analysis.run.evaluations import (
    KINDS_WITHOUT_TRAINING,
    evaluations_of_run,
    is_short_part_of_every_step,
    line_of_evaluations,
)
from selftime.analysis.run.step_kinds import step_kinds
from selftime.trace import Trace
from selftime.units import count_text, share_text

MIN_SHARE_OF_RUN: Final = 0.1
"""Smallest share of the run for the rule to fire: more than twice what evaluating on a tenth of the
data after each pass over the rest takes."""

MIN_EVALUATIONS: Final = 2
"""Smallest number of evaluations for the rule to fire: one cannot come less often."""


@rule(covers=("M7",), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    run = trace.run
    times = evaluations_of_run(run)
    whole, count = int(times.sum()), times.len()
    if not count:
        yield Checked("no evaluation was seen between steps", is_absent=True)
        return
    steps = step_kinds(run).filter(pl.col("kind").is_in(KINDS_WITHOUT_TRAINING).not_())
    if steps.height and count > int(steps["count"].sum()):
        yield Checked(
            f"the model is in evaluation mode {count_text(count)} times, more often than the "
            "program makes steps: it acts, or makes data to train on"
        )
        return
    share = whole / run.wall_ns
    if share >= MIN_SHARE_OF_RUN and not run.evaluates and is_short_part_of_every_step(run):
        yield Checked(
            f"the model is in evaluation mode in nearly every step, {share_text(share)} of the "
            "run: it acts before each update, or is evaluated after each",
            run_upper_s=whole / 1e9,
        )
        return
    if share < MIN_SHARE_OF_RUN or count < MIN_EVALUATIONS:
        passes = "once" if count == 1 else f"{count} times"
        yield Checked(f"the program evaluates {passes}, which takes {share_text(share)} of the run")
        return
    ordered = times.sort()
    yield Finding(
        title=f"Evaluation takes {share_text(share)} of the run, in {count} passes",
        where=where_from_reading(line_of_evaluations(run) or {}),
        claim=RunClaim(
            whole - int(times[-1]),
            saved_ns=whole // 2,
            low_ns=int(ordered.head(count // 2).sum()),
        ),
        confidence="medium",
        evidence=(
            Evidence("evaluations", float(count), "count"),
            Evidence("time of one evaluation", whole / count / 1e6, "ms"),
        ),
        fix=Fix(
            "Evaluate less often, on fewer samples, or with larger batches; what stops early, or "
            "keeps the best checkpoint, then decides later.",
            "if epoch % 2 == 0 or epoch == last:\n    validate(model)",
        ),
    )
