"""Whether a trace can be trusted, and in what it cannot."""

from typing import Final

import polars as pl

from selftime.analysis.health import checked
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view

_DECIMALS: Final = 4


@view(
    Column("check", pl.String, "name", "What was looked at."),
    Column("verdict", pl.String, "name", "One of good, degraded, unusable."),
    Column("text", pl.String, "sentence", "What was found, and what follows."),
    Column("affects", pl.String, "sentence", "The figures that are missing or doubtful.", True),
    Column("value", pl.Float64, "text", "The count, share or factor that was measured.", True),
    Column("slices", pl.String, "text", "Examples: ids of slices.", True),
)
def health(trace: Trace) -> pl.DataFrame:
    """Checks of the recording, before anything is concluded from it.

    The trace is as good as its worst check, which stands first. `degraded` means that some figures
    are missing or doubtful, which the text names; `unusable` that conclusions would be wrong. What
    was looked for and not found has no row, but for the content, the file, launches and steps.
    """
    found = [check._asdict() for check in checked(trace)]
    table = pl.DataFrame(found, schema={c.name: c.dtype for c in health.columns})
    return table.with_columns(pl.col("value").round(_DECIMALS))
