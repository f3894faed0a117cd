"""In which categories of its steps a rank differs from the others."""

from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.ranks.lateness import middle_of_others
from selftime.analysis.ranks.ranks import Ranks
from selftime.analysis.steps.category_times import CATEGORIES
from selftime.analysis.students_t import above_zero

PARTS: Final = (*CATEGORIES, "other")
"""What the time of a step is made of."""
_CHANCE: Final = 0.01
_MATTERS: Final = 0.01
_SPREADS: Final = 4
"""Beyond so many median absolute deviations of the ranks' means."""
_FEWEST: Final = 3


def counted_steps(ranks: Ranks) -> dict[int, pl.DataFrame]:
    """By key, each rank's steps that count; all of them where none does."""
    tables = {key: rank.part.steps for key, rank in ranks.by_key().items()}
    return {
        key: table.filter("counted") if table["counted"].any() else table
        for key, table in tables.items()
        if table.height
    }


def differing(ranks: Ranks) -> dict[int, list[str]]:
    """By key, the categories of which a rank's steps have more or less than the others' have.

    A difference counts if it is unlikely by chance (Student's t-test over the rank's steps against
    the median of the other ranks' means), beyond the spread of these, and a hundredth of a step.
    """
    steps = counted_steps(ranks)
    found: dict[int, list[str]] = {key: [] for key in steps}
    whole = [float(table["time"].to_numpy().mean()) for table in steps.values()]
    least = _MATTERS * float(np.median(whole)) if whole else 0.0
    for part in PARTS:
        known = {key: table[part] for key, table in steps.items() if not table[part].null_count()}
        means = pl.DataFrame({"key": list(known), "mean": [own.mean() for own in known.values()]})
        means = means.with_columns(pl.lit(0).alias("all"), pl.col("mean").cast(pl.Float64))
        means = means.with_columns(middle=middle_of_others(means, "mean", ("all",)))
        away = pl.col("mean") - pl.col("middle")
        spread = (pl.col("mean") - pl.col("mean").median()).abs().median()
        far = means.filter(away.abs() >= pl.max_horizontal(_SPREADS * spread, pl.lit(least)))
        for key, middle, apart in far.select("key", "middle", away.alias("apart")).rows():
            own = known[key].to_numpy()
            sided = (own - middle) * np.sign(apart)
            if own.size < _FEWEST or 2 * above_zero(sided) * len(known) * len(PARTS) > _CHANCE:
                continue
            found[key].append(f"{'more' if apart > 0 else 'less'} {part}")
    return found
