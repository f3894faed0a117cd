"""From a row of a view to the line of the user's code."""

from collections.abc import Mapping
from typing import Any

from selftime.advice.base import How, Where
from selftime.analysis.sites import EXECUTING


def where(row: Mapping[str, Any] | None) -> Where:
    """The line in a row's columns file, line, function and how; unknown where they are null."""
    if row is None or row.get("file") is None:
        return Where()
    how: How = row["how"] if row["how"] in EXECUTING else "definition"
    return Where(row["file"], row["line"], row["function"], how)
