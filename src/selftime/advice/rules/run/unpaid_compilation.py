"""Compilation takes longer than compiled steps can win back in this run.

## What it means
`torch.compile` pays when many steps run the compiled code. This run ended before.

In the ledger of the run: the time of all compilations, and the time of all steps without them.

## Why it costs
The program waits while it compiles: seconds for a small model, minutes for a large one. A
short run, as a test, a search for hyperparameters or a trial of one epoch, may spend more on that
than on its steps.

## What to do
Leave compilation out of short runs, compile less (`torch.compile` of the repeated block alone), or
keep what was compiled from run to run: `torch.compiler.save_cache_artifacts`, and the cache of
Inductor in a folder that stays (`TORCHINDUCTOR_CACHE_DIR`).

What steps take without compilation is not known, so the rule fires where that does not matter: even
if compiled steps were ten times as fast, the run would be shorter without. The estimate supposes
that they are twice as fast, the low end ten times, the high end that they are no faster. Below
that, the rule says under *cannot tell* from which speed-up on compilation pays. So it does of a run
that ended before its program did: nobody knows how many steps would have followed.

## Fires on
A run of 2 s of steps, and 30 s of compilation.

    run | before 1 s
    run | compiled forward 30 s at model.py:3
    run | training 30100 ms: compile 30 s
    run | 20 training 100 ms

## Silent on
A long run.

    run | before 1 s
    run | compiled forward 30 s at model.py:3
    run | training 30100 ms: compile 30 s
    run | 20000 training 100 ms

No compilation.

    run | before 1 s
    run | 20 training 100 ms
"""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime.advice.detectors.run_lines import where_from_compilation
from selftime.advice.rule_definition import (
    Checked,
    Evidence,
    Finding,
    Fix,
    Outcome,
    Unknown,
    Where,
    rule,
)
from selftime.advice.savings.claims import RunClaim
from selftime.analysis.run.compilation_sites import compilations_with_sites
from selftime.run import COUNTED, Run
from selftime.trace import Trace
from selftime.units import seconds_text, share_text, times_text

MAX_SPEEDUP: Final = 10.0
"""How many times as fast compiled steps are at best: PyTorch's own suites of models have 1.3 to 3,
and loops of many small operators more."""

EXPECTED_SPEEDUP: Final = 2.0
"""How many times as fast compiled steps are supposed to be in the estimate."""

MIN_SHARE_OF_RUN: Final = 0.02
"""Smallest share of the run that compilation must take to be looked at, as of any saving."""


@rule(covers=("M4",), needs=("ledger",))
def check(trace: Trace) -> Iterator[Outcome]:
    run = trace.run
    compiled, steps = int(run.segments["compile"].sum()), _step_time(run)
    if not compiled:
        yield Checked("nothing was compiled", is_absent=True)
    elif run.was_cut and compiled >= MIN_SHARE_OF_RUN * run.wall_ns:
        yield Unknown(
            f"how many steps follow: the run ended early, after {seconds_text(compiled)} of "
            f"compiling and {seconds_text(steps)} of steps; let the program end by itself"
        )
    elif compiled > (MAX_SPEEDUP - 1) * steps:
        yield _finding(run, compiled, steps)
    elif compiled < MIN_SHARE_OF_RUN * run.wall_ns:
        yield Checked(f"compilation takes {share_text(compiled / run.wall_ns)} of the run")
    else:
        yield Unknown(
            f"the time of steps without compilation: the {seconds_text(compiled)} spent compiling "
            "pay off in this run only if compiled steps are at least "
            f"{times_text(1 + compiled / steps)} as fast; "
            "run some uncompiled steps with `selftime run --light`"
        )


def _step_time(run: Run) -> int:
    """Returns the time of all steps, in ns, without data waits, evaluation and the like.

    These are the separately counted activities, except garbage collection.
    """
    steps = run.segments.filter(pl.col("kind").is_not_null())
    counted = [name for name in COUNTED if name != "garbage_collection"]
    return int(steps["duration"].sum()) - sum(int(steps[name].sum()) for name in counted)


def _finding(run: Run, compiled: int, steps: int) -> Finding:
    longest = (
        compilations_with_sites(run).sort("duration", descending=True, nulls_last=True).head(1)
    )
    rows = longest.rows(named=True)
    return Finding(
        title=f"Compiling takes {seconds_text(compiled)}, and all steps {seconds_text(steps)}",
        where=where_from_compilation(run, rows[0]) if rows else Where(),
        claim=RunClaim(
            compiled,
            saved_ns=compiled - int((EXPECTED_SPEEDUP - 1) * steps),
            low_ns=compiled - int((MAX_SPEEDUP - 1) * steps),
        ),
        confidence="medium",
        semantics="numerics",
        evidence=(
            Evidence("compilation", compiled / 1e6, "ms"),
            Evidence("compilations", float(run.compilations.height), "count"),
            Evidence("steps", steps / 1e6, "ms"),
        ),
        fix=Fix(
            "Run without compilation, or keep what was compiled from run to run.",
            "model = torch.compile(model) if steps > 1000 else model",
        ),
    )
