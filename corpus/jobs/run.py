"""Measures what the advice says of simulated jobs whose imbalance is known.

    python corpus/jobs/run.py [--held-out] [-o corpus/jobs/results.csv]

A cause is found if its rule has a finding. It is false if it was not planted, or if the rank that
was slow is not the one that is named. A planted cause without which the job would be less than 3 %
faster need not be found. The step without a cause is compared with that of the job simulated
without it, of the steps that are typical on each rank.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from cases import HELD_OUT_SEEDS, SEEDS, Case, Cause, cases
from numpy.typing import NDArray

from selftime.advice import advise
from selftime.analysis.ranks.job_imbalance import JobImbalance, job_imbalance
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.ingest.load import load
from selftime.testing.simulated_pipelines import simulate_pipeline_job

MIN_SAVING = 0.03
"""Smallest share of the step that a planted cause must cost to have to be found."""
RULES: tuple[Cause, ...] = ("slow_rank", "stage_imbalance", "micro_batch_imbalance")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--held-out", action="store_true", help="the seeds that were kept unseen")
    parser.add_argument("-o", "--output", type=Path, help="write all rows to this CSV file")
    options = parser.parse_args()
    seeds = HELD_OUT_SEEDS if options.held_out else SEEDS
    rows = [row for each in cases(seeds) for row in measured(each)]
    table = pl.DataFrame(rows, infer_schema_length=None)
    if options.output:
        table.write_csv(options.output)
    with pl.Config(tbl_rows=-1, tbl_cols=-1, tbl_width_chars=120, tbl_hide_dataframe_shape=True):
        print(table)
    print(summary(table))


def measured(each: Case) -> list[dict[str, Any]]:
    """Returns a row for each rule: whether its cause was planted and found, and the step times."""
    simulated = simulate_pipeline_job(each.job)
    with tempfile.TemporaryDirectory() as folder:
        for rank, content in simulated.traces.items():
            Path(folder, f"rank{rank}.json").write_bytes(content)
        job = load(folder, cache=False)
        ranks = Ranks.of(job)
        advice, imbalance = advise(job), job_imbalance(ranks)
        typical = typical_steps(ranks)
    if imbalance is None:
        raise SystemExit(f"{each.name}: the steps of the job cannot be replayed")
    step_ms = float(simulated.steps_ms.T[typical].mean())
    without = {
        cause: float(simulate_pipeline_job(job).steps_ms.T[typical].mean())
        for cause, job in each.without.items()
    }
    found = {finding.rule: finding.title for finding in advice.findings if finding.rule in RULES}
    return [
        {
            "job": each.name,
            "ranks": each.job.size,
            "cause": cause,
            "planted": cause in each.causes,
            "counts": cause not in without or without[cause] < (1 - MIN_SAVING) * step_ms,
            "found": cause in found,
            "right": is_right(each, cause, found.get(cause)),
            "step_ms": step_ms,
            "replayed_ms": imbalance.recorded.with_unknown_waits / 1e6,
            "without_ms": without.get(cause),
            "replayed_without_ms": replayed_without(imbalance, cause) / 1e6,
        }
        for cause in RULES
    ]


def typical_steps(ranks: Ranks) -> NDArray[np.bool_]:
    """Returns whether each step but the first is typical on each rank; shape (ranks, steps - 1)."""
    every = ranks.ranks_by_key().values()
    return np.stack([rank.summary.steps["counted"].to_numpy()[1:] for rank in every])


def is_right(each: Case, cause: Cause, title: str | None) -> bool:
    """Returns whether a cause was found that was planted, or not found that was not."""
    if title is None or cause not in each.causes:
        return (title is not None) == (cause in each.causes)
    return cause != "slow_rank" or f"`rank {each.slow_rank}`" in title


def replayed_without(imbalance: JobImbalance, cause: Cause) -> float:
    """Returns the step in ns that the replay has without a cause."""
    return {
        "slow_rank": imbalance.without_slow_ranks,
        "stage_imbalance": imbalance.without_stage_imbalance,
        "micro_batch_imbalance": imbalance.without_micro_batch_imbalance,
    }[cause].with_unknown_waits


def summary(table: pl.DataFrame) -> str:
    """Returns the shares of right answers, and the errors of the step times."""
    planted = table.filter(pl.col("planted") & pl.col("counts"))
    absent = table.filter(~pl.col("planted"))
    healthy = absent.filter(pl.col("job").str.starts_with("healthy"))
    error = planted.select(
        (pl.col("replayed_without_ms") / pl.col("without_ms") - 1).abs()
    ).to_series()
    replay = table.select((pl.col("replayed_ms") / pl.col("step_ms") - 1).abs()).to_series()
    found = (
        f"{table['job'].n_unique()} jobs; of {planted.height} planted causes "
        f"{planted['right'].sum()} found rightly; of {absent.height} that were not planted "
        f"{absent['found'].sum()} found, of healthy jobs {healthy['found'].sum()}"
    )
    without = (
        f"the step without the cause: {error.median():.1%} (median), {error.quantile(0.9):.1%} "
        f"(90 %), {error.max():.1%} (most) from the truth"
    )
    as_it_is = f"the step as it is: {replay.median():.2%} (median), {replay.max():.2%} (most)"
    return f"{found}\n{without}\n{as_it_is}"


if __name__ == "__main__":
    main()
