"""Checks whether a recording is complete, and which figures are unreliable."""

from typing import Final

import polars as pl

from selftime.analysis.health import run_health_checks
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view

_HEALTH_VALUE_DECIMALS: Final = 4


@view(
    Column("check", pl.String, "name", "The name of the check of the recording."),
    Column(
        "verdict",
        pl.String,
        "name",
        "How good the recording is by this check: good, degraded or unusable.",
    ),
    Column("text", pl.String, "sentence", "What the check found, and what follows from it."),
    Column(
        "affects",
        pl.String,
        "sentence",
        "The figures that are missing or unreliable; null if none.",
        True,
    ),
    Column(
        "value",
        pl.Float64,
        "text",
        "The count, share or factor that the check measured; null if none.",
        True,
    ),
    Column(
        "slices",
        pl.String,
        "text",
        "Ids of example slices that show the problem; null if there are none.",
        True,
    ),
)
def health(trace: Trace) -> pl.DataFrame:
    """Checks of the recording: is it complete, and which figures can be trusted.

    The trace is as good as its worst check, which comes first. `degraded` means that some figures
    are missing or unreliable, which the text names; `unusable` that conclusions would be wrong. A
    check that found nothing has no row, except for content, file, launches and steps.
    """
    found = [check._asdict() for check in run_health_checks(trace)]
    table = pl.DataFrame(found, schema={c.name: c.dtype for c in health.columns})
    return table.with_columns(pl.col("value").round(_HEALTH_VALUE_DECIMALS))
