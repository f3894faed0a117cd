"""Compares the ledgers of two runs: the parts of the wall time, and the steps of each kind."""

from typing import Any, Final

import polars as pl

from selftime.analysis.run.parts import run_parts
from selftime.compare.difference_columns import INTERVAL_COLUMNS, VERDICT_CONFIDENCE_LEVEL
from selftime.compare.run_figures import STEP_FIGURES, step_figure, steps_by_kind
from selftime.compare.section_statistics import SectionedFigure, difference_interval
from selftime.compare.statistical_significance import CONFIDENCE_LEVEL
from selftime.run import Run
from selftime.schema import Column, Table

_SLOW_STEPS: Final = "slow steps"
"""The row of the table of steps about its slow ones."""
_TEXT_BY_FIGURE: Final = {"median": "median", "p95": "p95", "data_wait": "data wait"}
"""What the rows of the table of steps are of, by the name of the figure."""

RUN_PARTS_TABLE: Final = Table(
    "run_parts",
    "The parts of the wall time of the run, before and after; rows add up to it.",
    (
        Column("part", pl.String, "name", "Part of the run's wall time, as in the view `run`."),
        Column("before", pl.Float64, "ns", "Time of the part in the earlier run."),
        Column("after", pl.Float64, "ns", "Time of the part in the later run."),
        Column(
            "difference",
            pl.Float64,
            "ns",
            "Time in the later run minus the earlier; negative means faster.",
        ),
        Column(
            "change",
            pl.Float64,
            "ratio",
            "`difference` divided by `before`; null if `before` is 0 or unknown.",
            True,
        ),
        Column(
            "verdict",
            pl.String,
            "name",
            "Whether the part is new or gone; else null, as one run each shows no variation.",
            True,
        ),
        Column(
            "count_before",
            pl.Int64,
            "count",
            "Number of occurrences of the part in the earlier run.",
        ),
        Column(
            "count_after", pl.Int64, "count", "Number of occurrences of the part in the later run."
        ),
    ),
)

RUN_STEPS_TABLE: Final = Table(
    "run_steps",
    "The steps of the run by kind, before and after.",
    (
        Column("kind", pl.String, "name", "Kind of step, such as training."),
        Column(
            "time",
            pl.String,
            "name",
            "median, p95 or data wait of a step; for slow steps, their summed excess over the "
            "median.",
        ),
        Column(
            "before",
            pl.Float64,
            "ns",
            "The step time in the earlier run; null if it had no such steps.",
            True,
        ),
        Column(
            "after",
            pl.Float64,
            "ns",
            "The step time in the later run; null if it had no such steps.",
            True,
        ),
        Column(
            "difference",
            pl.Float64,
            "ns",
            "Step time in the later run minus the earlier; negative means faster.",
            True,
        ),
        Column(
            "change",
            pl.Float64,
            "ratio",
            "`difference` divided by `before`; null if `before` is 0 or unknown.",
            True,
        ),
        *INTERVAL_COLUMNS,
        Column(
            "verdict",
            pl.String,
            "name",
            "Effect on the step time: new, gone, slower or faster; null if unclear.",
            True,
        ),
        Column(
            "steps_before",
            pl.Int64,
            "count",
            "Number of steps that the row covers in the earlier run.",
        ),
        Column(
            "steps_after",
            pl.Int64,
            "count",
            "Number of steps that the row covers in the later run.",
        ),
    ),
)


def compared_run_parts(before: Run, after: Run) -> pl.DataFrame:
    """Returns `RUN_PARTS_TABLE`, the largest difference first; empty unless both have a ledger."""
    if not (before.source and after.source):
        return pl.DataFrame(schema=RUN_PARTS_TABLE.dtypes)
    sides = [
        run_parts(run)
        .group_by("part")
        .agg(pl.col("duration").sum().alias(side), pl.col("count").sum().alias(f"count_{side}"))
        for side, run in (("before", before), ("after", after))
    ]
    joined = sides[0].join(sides[1], on="part", how="full", coalesce=True).fill_null(0)
    difference = (pl.col("after") - pl.col("before")).cast(pl.Float64)
    table = joined.with_columns(
        difference.alias("difference"),
        pl.when(pl.col("before") > 0).then(difference / pl.col("before")).alias("change"),
        pl.when(pl.col("before") == 0)
        .then(pl.lit("new"))
        .when(pl.col("after") == 0)
        .then(pl.lit("gone"))
        .alias("verdict"),
    ).sort(difference.abs(), "part", descending=[True, False])
    return table.select(pl.col(name).cast(dtype) for name, dtype in RUN_PARTS_TABLE.dtypes.items())


def compared_run_steps(before: Run, after: Run) -> pl.DataFrame:
    """Returns `RUN_STEPS_TABLE`, the kind with most time first; empty unless both have a ledger."""
    if not (before.source and after.source):
        return pl.DataFrame(schema=RUN_STEPS_TABLE.dtypes)
    sides = [steps_by_kind(run) for run in (before, after)]
    rows = [
        row
        for kind in dict.fromkeys((*sides[0], *sides[1]))
        for row in _rows_of_kind(kind, sides[0].get(kind), sides[1].get(kind))
    ]
    return pl.DataFrame(rows, schema=RUN_STEPS_TABLE.dtypes)


def _rows_of_kind(
    kind: str, before: pl.DataFrame | None, after: pl.DataFrame | None
) -> list[dict[str, Any]]:
    counts = {
        "steps_before": 0 if before is None else before.height,
        "steps_after": 0 if after is None else after.height,
    }
    rows = []
    for figure in STEP_FIGURES:
        first, second = (
            None if steps is None else step_figure(steps, figure) for steps in (before, after)
        )
        row = {"kind": kind, "time": _TEXT_BY_FIGURE[figure.name], **counts}
        rows.append({**row, **_difference_of_figures(first, second)})
    slow = [_slow_steps_of(steps) for steps in (before, after)]
    if any(count for count, _ in slow):
        whole = (SectionedFigure(excess, ()) for _, excess in slow)
        counts = {"steps_before": slow[0][0], "steps_after": slow[1][0]}
        rows.append({"kind": kind, "time": _SLOW_STEPS, **counts, **_difference_of_figures(*whole)})
    return rows


def _slow_steps_of(steps: pl.DataFrame | None) -> tuple[int, float]:
    """Returns how many steps are slow, and how much longer than the median they took, in ns."""
    if steps is None:
        return 0, 0.0
    slow = steps.filter(pl.col("excess") > 0)
    return slow.height, float(slow["excess"].sum())


def _difference_of_figures(
    before: SectionedFigure | None, after: SectionedFigure | None
) -> dict[str, Any]:
    """Returns a row's columns that compare a figure before and after; null where unknown."""
    if before is None or after is None:
        known = {"before": before and before.whole, "after": after and after.whole}
        return {**known, "verdict": "new" if before is None else "gone"}
    difference = after.whole - before.whole
    interval = difference_interval(before, after, CONFIDENCE_LEVEL)
    sure = difference_interval(before, after, VERDICT_CONFIDENCE_LEVEL)
    verdict = None
    if sure is not None and (sure[0] > 0 or sure[1] < 0):
        verdict = "slower" if difference > 0 else "faster"
    return {
        "before": before.whole,
        "after": after.whole,
        "difference": difference,
        "change": difference / before.whole if before.whole > 0 else None,
        "low": interval and interval[0],
        "high": interval and interval[1],
        "verdict": verdict,
    }
