"""In which categories of its steps a rank differs from the others."""

from typing import Final

import numpy as np
import polars as pl

from selftime.views.accounts.ranks.chance import above_zero
from selftime.views.accounts.ranks.ranks import Ranks
from selftime.views.accounts.steps.spans import CATEGORIES

__all__ = ["PARTS", "counted_steps", "differing"]

PARTS: Final = (*CATEGORIES, "other")
"""What the time of a step is made of."""
_CHANCE: Final = 0.01
_MATTERS: Final = 0.01
_SPREADS: Final = 4
"""Beyond so many median absolute deviations of the other ranks' means."""
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
    if len(steps) < 2:
        return found
    whole = float(np.median([float(table["time"].median() or 0) for table in steps.values()]))  # type: ignore[arg-type]  # a number
    for part in PARTS:
        values = {
            key: table[part].to_numpy()
            for key, table in steps.items()
            if not table[part].null_count()
        }
        means = {key: float(own.mean()) for key, own in values.items()}
        for key, own in values.items():
            others = np.array([mean for other, mean in means.items() if other != key])
            if not others.size or own.size < _FEWEST:
                continue
            middle = float(np.median(others))
            spread = float(np.median(np.abs(others - middle)))
            away = means[key] - middle
            if abs(away) < max(_MATTERS * whole, _SPREADS * spread):
                continue
            sided = (own - middle) * np.sign(away)
            if 2 * above_zero(sided) * len(values) * len(PARTS) <= _CHANCE:
                found[key].append(f"{'more' if away > 0 else 'less'} {part}")
    return found
