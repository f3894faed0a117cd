"""Acting in an environment takes a large part of the run.

## What it means
Between its updates the program lets its model act: it steps an environment, and calls the model
with what it observed, one move after the other.

In the ledger of the run: the time of rollouts. Those that are parts of steps, as where the same few
updates follow each of them, do not count here.

## Why it costs
No update runs meanwhile. A move is Python, an environment's step on one core, and a call of the
model with a single row: two layers of 64 units took 17 us for one row on one core, and 20 us for
eight.

## What to do
Step several environments at once, and call the model for all of them: `gymnasium.vector` has them
in this process and in processes of their own, as have the `n_envs` and `SubprocVecEnv` of
Stable-Baselines3. Act without gradients. How often the model is updated for each move changes with
it, so compare what it learns.

The rule fires from a tenth of the run. How much a change saves depends on what a step of the
environment takes, which a ledger does not tell from a call of the model. So only the most that it
can save is told, all of the time.

## Fires on
Half a second of acting before each second of updates.

    run | before 1 s
    run | rollout 500 ms: program 500 ms at agent.py:20 act
    run | 10 training 100 ms
    run | rollout 500 ms: program 500 ms at agent.py:20 act
    run | 10 training 100 ms
    run | loop rollout at agent.py:18

## Silent on
Acting that takes little.

    run | before 1 s
    run | rollout 50 ms: program 50 ms at agent.py:20 act
    run | 10 training 100 ms
    run | rollout 50 ms: program 50 ms at agent.py:20 act
    run | 10 training 100 ms

A program that does not act.

    run | before 1 s
    run | 20 training 100 ms
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.advice.detectors.run_lines import where_from_reading
from selftime.advice.rule_definition import Checked, Evidence, Finding, Fix, Outcome, rule
from selftime.advice.savings.claims import RunClaim
from selftime.analysis.run.segment_lines import longest_line_of_segments
from selftime.analysis.run.step_kinds import step_kinds
from selftime.ledger_format import ROLLOUT_KIND, UNUSUAL_KIND_SUFFIX
from selftime.trace import Trace
from selftime.units import count_text, share_text

MIN_SHARE_OF_RUN: Final = 0.1
"""Smallest share of the run for the rule to fire, as for evaluations."""

FIX_CODE: Final = """envs = gymnasium.vector.AsyncVectorEnv([make_env] * 8)
observations, _ = envs.reset()
with torch.no_grad():
    actions = model(torch.as_tensor(observations)).argmax(-1)
observations, rewards, *_ = envs.step(actions.numpy())"""
"""Example code of the fix: several environments at once."""


@rule(covers=("M11",), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    run = trace.run
    is_rollout = pl.col("kind").str.strip_suffix(UNUSUAL_KIND_SUFFIX) == ROLLOUT_KIND
    kinds = step_kinds(run).filter(is_rollout)
    whole, count = int(kinds["total"].sum()), int(kinds["count"].sum())
    if not whole:
        yield Checked("no rollout was seen", is_absent=True)
        return
    share = share_text(whole / run.wall_ns)
    if whole < MIN_SHARE_OF_RUN * run.wall_ns:
        yield Checked(f"acting in an environment takes {share} of the run")
        return
    acted = run.segments.filter(pl.col("kind").cast(pl.String).str.starts_with(ROLLOUT_KIND))
    rollouts = "one rollout" if count == 1 else f"{count_text(count)} rollouts"
    yield Finding(
        title=f"Acting in an environment takes {share} of the run, in {rollouts}",
        where=where_from_reading(longest_line_of_segments(run, acted["id"]) or {}),
        claim=RunClaim(whole),
        confidence="medium",
        semantics="training",
        evidence=(
            Evidence("rollouts", float(count), "count"),
            Evidence("time of one rollout", whole / count / 1e6, "ms"),
        ),
        fix=Fix("Step several environments at once, and act in all with one call.", FIX_CODE),
    )
