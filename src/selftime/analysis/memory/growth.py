"""Growth of memory from step to step: what a leak looks like."""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime.analysis.steps.step_boundaries import find_steps
from selftime.arrays import Ints
from selftime.trace import Trace

_LEAST_RISES: Final = 3
"""Two rises in a row are what caches and optimizers do as they fill in the first steps."""
_OFTEN: Final = 0.5
"""And it rises in this share of the steps: what has stopped growing leaks no more."""


def step_ends(trace: Trace) -> Ints:
    """When each whole step ended, in order, in ns; none where steps are not known."""
    steps = find_steps(trace).filter((pl.col("source") != "window") & pl.col("cut").is_null())
    return steps["end"].sort().to_numpy()


def outlast(table: pl.DataFrame, ends: Ints) -> NDArray[np.bool_]:
    """Which blocks, of those whose allocation was seen, live at the end of a step."""
    begin, gone = _lives(table, ends)
    return np.asarray((begin < gone) & table["allocated"].is_not_null().to_numpy())


def _lives(table: pl.DataFrame, ends: Ints) -> tuple[Ints, Ints]:
    """The first step at whose end each block lives, and the first at whose end it does not."""
    begin = np.searchsorted(ends, table["allocated"].fill_null(0).to_numpy())
    return begin, np.searchsorted(ends, table["until"].to_numpy())


def growth(table: pl.DataFrame, group: Ints, groups: int, ends: Ints) -> pl.Series:
    """Bytes by which each group of blocks grows a step; 0 where it does not, null if unknown.

    A group grows if what of it lives at the ends of the steps never falls from one to the next, and
    rises often. What rises and falls is no leak, however far it rises.

    Args:
        table: Blocks, as `blocks` gives them; what was not allocated in the recording is no growth.
        group: The group of each block, shape (n,).
        groups: How many groups there are.
        ends: When the steps ended, ascending, in ns, shape (m,).
    """
    if ends.size <= _LEAST_RISES:
        return pl.repeat(None, groups, dtype=pl.Int64, eager=True)
    lives = outlast(table, ends)
    begin, gone = _lives(table, ends)
    size = table["size"].to_numpy()[lives]
    living = np.zeros((groups, ends.size + 1), np.int64)
    np.add.at(living, (group[lives], begin[lives]), size)
    np.subtract.at(living, (group[lives], gone[lives]), size)
    alive = np.cumsum(living, axis=1)[:, :-1]
    rises = np.diff(alive, axis=1)
    often = max(_LEAST_RISES, _OFTEN * (ends.size - 1))
    grows = (rises >= 0).all(axis=1) & ((rises > 0).sum(axis=1) >= often)
    mean = np.round((alive[:, -1] - alive[:, 0]) / (ends.size - 1)).astype(np.int64)
    return pl.Series(np.where(grows, mean, 0))
