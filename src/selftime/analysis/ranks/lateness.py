"""Measures how late each rank came to the collectives of each step, and what delayed it.

A round is what one step does on all ranks. In each round a rank is as late as at the collective at
which it was latest, compared with the median of the other ranks. The cause of the delay is what the
rank spent more time on between collectives than the median of the others.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.aligned_collectives import AlignedCollectives
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.analysis.ranks.rank_summary import LATENESS_CAUSES, MEASURED_LATENESS_CAUSES
from selftime.analysis.steps.breakdown import STEP_TIME_CATEGORIES
from selftime.analysis.students_t import one_sided_t_test_p_value

MIN_ROUNDS_TO_JUDGE_LATENESS: Final = 3
"""Smallest number of steps, recorded on all ranks, from which the variation of lateness is
estimated.
"""


def median_of_other_rows_in_group(
    rows: pl.DataFrame, column: str, group_columns: tuple[str, ...]
) -> pl.Series:
    """Returns for each row the median of the group's other rows; null if the row has no others.

    It is null for the whole group if a value is null. Takes about as long as sorting the rows.
    """
    group = rows.select(pl.struct(group_columns).rank("dense")).to_series().to_numpy()
    value = rows[column].to_numpy().astype(np.float64)  # null becomes NaN, which sorts last
    order = np.lexsort((value, group))
    first = np.flatnonzero(np.diff(group[order], prepend=0))
    size = np.diff(np.append(first, group.size))
    begin, others = np.repeat(first, size), np.repeat(size - 1, size)
    own = np.arange(group.size) - begin
    sorted_ = value[order]
    low, high = (begin + at + (at >= own) for at in ((others - 1) // 2, others // 2))
    some = np.flatnonzero(others > 0)
    middle = np.full(group.size, np.nan)
    middle[order[some]] = (sorted_[low[some]] + sorted_[high[some]]) / 2
    tainted = np.isin(group, group[np.isnan(value)])
    return pl.Series(np.where(tainted, np.nan, middle)).fill_nan(None)


@cached_per_trace
def rank_lateness_by_round(ranks: Ranks) -> pl.DataFrame:
    """Returns for each rank and step how late (ns) the rank came to collectives, and why.

    Columns: rank, the key of `Ranks.ranks_by_key`; round; collectives, the number that it took part
    in; last, the number to which it came last; late, how much later than the median of the others
    it came, at the collective where that was most; waited, how long it waited itself, simultaneous
    waits counted once; delayed_others, how long the others waited on average where it came last;
    transfer; each of `LATENESS_CAUSES`, the time spent on it since the previous round; and more_
    and the cause, how much more that is than the median of the others. Unknown values are null.
    Rounds that some ranks did not record do not count, nor, if enough others remain, those whose
    step is not typical on one of the ranks.
    """
    rows = _rows_of_typical_rounds(
        collectives_with_rounds(ranks).drop_nulls("round").filter(pl.col("wait").is_not_null())
    )
    rows = rows.with_columns(lag=pl.col("start") - pl.col("start").min().over("match"))
    rows = rows.with_columns(
        late=pl.col("lag") - median_of_other_rows_in_group(rows, "lag", ("match",)),
        by=pl.col("rank").filter("last").first().over("match"),
    )
    delayed_others = (
        rows.filter(pl.col("by") != pl.col("rank"))
        .group_by("by", "round")
        .agg(delayed_others=pl.col("waited").sum() / pl.col("rank").n_unique())
        .rename({"by": "rank"})
    )
    table = rows.group_by("rank", "round").agg(
        pl.len().cast(pl.Int64).alias("collectives"),
        pl.col("last").sum().cast(pl.Int64),
        pl.col("late").max(),
        pl.col("waited").sum(),
        pl.col("transfer").sum(),
        *(
            pl.when(pl.col(c).count() == pl.len()).then(pl.col(c).sum()).alias(c)
            for c in LATENESS_CAUSES
        ),
    )
    table = table.join(delayed_others, on=("rank", "round"), how="left").with_columns(
        pl.col("delayed_others").fill_null(0.0)
    )
    more = {
        f"more_{c}": table[c].cast(pl.Float64) - median_of_other_rows_in_group(table, c, ("round",))
        for c in LATENESS_CAUSES
    }
    return table.with_columns(**more).sort("rank", "round")


@cached_per_trace
def collectives_with_rounds(ranks: Ranks) -> pl.DataFrame:
    """Returns collectives with their step (`round`), own wait and time by cause of delay, in ns.

    `waited` is the wait without the part during which an earlier collective of the rank waited. A
    cause is the time in ns that the rank spent on it since the start of the previous collective;
    null for the first. `round` is the number of the profiler's step where every rank has it, else
    the index of the step of the rank with the common clock; null if unknown. `row` is the number of
    the row in `collectives_on_one_clock`.
    """
    found = collectives_on_one_clock(ranks)
    numbered = found.rows.with_row_index("row")
    rows = _collectives_with_own_waits(_collectives_with_cause_times(numbered))
    matched = rows.filter(pl.col("match").is_not_null())
    if matched.height and matched["step"].null_count() == 0:
        return rows.with_columns(round=pl.when(pl.col("match").is_not_null()).then("step"))
    return rows.with_columns(round=_rounds_of_collectives_by_time(ranks, found, rows))


def excess_times_on_cause(ranks: Ranks, key_of_rank: int, cause: str) -> NDArray[np.float64]:
    """Returns how many ns more than other ranks a rank spent on a cause before each collective.

    The cause is one of `LATENESS_CAUSES`. The time is from the start of the previous collective,
    less the median of the others that took part. Shape (n,), in the order of the rank's own rows; 0
    where unknown.
    """
    rows = collectives_with_rounds(ranks).with_columns(
        at=pl.int_range(pl.len()).over("rank"), spent=pl.col(cause).cast(pl.Float64)
    )
    shared = rows.filter(pl.col("match").is_not_null())
    shared = shared.with_columns(
        more=pl.col("spent") - median_of_other_rows_in_group(shared, "spent", ("match",))
    )
    own = rows.filter(pl.col("rank") == key_of_rank).select("at")
    mine = shared.filter(pl.col("rank") == key_of_rank).select("at", "more")
    both = own.join(mine, on="at", how="left").sort("at")
    return both["more"].fill_nan(0).fill_null(0).to_numpy()


def _collectives_with_cause_times(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds the time (ns) spent on each cause of lateness since the rank's previous collective."""
    if not rows.height:
        return rows.with_columns(pl.lit(None, pl.Int64).alias(cause) for cause in LATENESS_CAUSES)
    rows = rows.sort("rank", "window", "start", maintain_order=True)
    since = {
        name: pl.col(f"{name}_start").diff().over("rank", "window")
        for name in MEASURED_LATENESS_CAUSES
    }
    left = pl.col("start").diff().over("rank", "window") - pl.sum_horizontal(
        *since.values(), ignore_nulls=False
    )
    return rows.with_columns(**{name: since.get(name, left) for name in LATENESS_CAUSES})


def _collectives_with_own_waits(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds `waited`: each collective's wait (ns), less what the rank's earlier waits cover."""
    until = pl.col("start") + pl.col("wait")
    before = until.fill_null(strategy="forward").cum_max().shift(1).over("rank", "window")
    begun = pl.max_horizontal("start", before)
    return rows.with_columns(waited=(until - begun).clip(lower_bound=0))


def _rounds_of_collectives_by_time(
    ranks: Ranks, aligned: AlignedCollectives, rows: pl.DataFrame
) -> pl.Series:
    """Returns for each collective the index of the reference rank's step that first issued it."""
    reference = aligned.clocks.reference
    if reference is None:
        return pl.Series("round", [None] * rows.height, pl.Int64)
    summary = ranks.ranks_by_key()[reference].summary
    begun = aligned.clocks.clock_by_rank[reference].to_reference_times(
        summary.steps["begin"].to_numpy() + summary.origin
    )
    first = rows.select(pl.col("issued").min().over("match")).to_series().to_numpy()
    at = pl.Series("round", np.searchsorted(np.sort(begun), first, side="right") - 1)
    unknown = (at < 0) | rows["match"].is_null()
    return at.cast(pl.Int64).set(unknown, None)


def _rows_of_typical_rounds(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns collectives of steps that every rank recorded and that are typical on every rank."""
    if not rows.height:
        return rows
    present = pl.col("rank").n_unique().over("round")
    rows = rows.filter(present == present.max())
    typical = rows.filter(pl.col("counted").fill_null(value=True).all().over("round"))
    return typical if typical["round"].n_unique() >= MIN_ROUNDS_TO_JUDGE_LATENESS else rows


STEP_TIME_PARTS: Final = (*STEP_TIME_CATEGORIES, "other")
"""Names of the categories into which a step's time is divided, including `other`."""
_MAX_FALSE_REPORT_PROBABILITY: Final = 0.01
"""Largest accepted probability that equal ranks are reported as different."""
_MIN_DIFFERENCE_SHARE_OF_STEP: Final = 0.01
"""Smallest difference between ranks that is reported, as a share (0 to 1) of the step time."""
_MIN_DIFFERENCE_IN_ABSOLUTE_DEVIATIONS: Final = 4
"""Smallest difference between ranks that is reported, in median absolute deviations of the ranks'
means.
"""
_MIN_STEPS_TO_COMPARE_RANKS: Final = 3
"""Smallest number of steps of a rank with which its times are tested against other ranks."""


def counted_steps(ranks: Ranks) -> dict[int, pl.DataFrame]:
    """Returns for each rank the steps that count for medians, or all steps if none counts."""
    tables = {key: rank.summary.steps for key, rank in ranks.ranks_by_key().items()}
    return {
        key: table.filter("counted") if table["counted"].any() else table
        for key, table in tables.items()
        if table.height
    }


def differing_time_categories_of_ranks(ranks: Ranks) -> dict[int, list[str]]:
    """Returns for each rank the categories of step time that differ from those of other ranks.

    A difference counts if it is unlikely by chance (Student's t-test over the rank's steps against
    the median of the other ranks' means), larger than the spread of these means, and at least a
    hundredth of a step.
    """
    steps = counted_steps(ranks)
    found: dict[int, list[str]] = {key: [] for key in steps}
    whole = [float(table["time"].to_numpy().mean()) for table in steps.values()]
    least = _MIN_DIFFERENCE_SHARE_OF_STEP * float(np.median(whole)) if whole else 0.0
    for part in STEP_TIME_PARTS:
        known = {key: table[part] for key, table in steps.items() if not table[part].null_count()}
        means = pl.DataFrame({"key": list(known), "mean": [own.mean() for own in known.values()]})
        means = means.with_columns(pl.lit(0).alias("all"), pl.col("mean").cast(pl.Float64))
        means = means.with_columns(middle=median_of_other_rows_in_group(means, "mean", ("all",)))
        away = pl.col("mean") - pl.col("middle")
        spread = (pl.col("mean") - pl.col("mean").median()).abs().median()
        far = means.filter(
            away.abs()
            >= pl.max_horizontal(_MIN_DIFFERENCE_IN_ABSOLUTE_DEVIATIONS * spread, pl.lit(least))
        )
        for key, middle, apart in far.select("key", "middle", away.alias("apart")).rows():
            own = known[key].to_numpy()
            sided = (own - middle) * np.sign(apart)
            if (
                own.size < _MIN_STEPS_TO_COMPARE_RANKS
                or 2 * one_sided_t_test_p_value(sided) * len(known) * len(STEP_TIME_PARTS)
                > _MAX_FALSE_REPORT_PROBABILITY
            ):
                continue
            found[key].append(f"{'more' if apart > 0 else 'less'} {part}")
    return found
