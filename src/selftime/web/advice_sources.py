"""Finds the source files that stored advice depends on: where one changes, it is computed anew."""

from pathlib import Path
from typing import Final

import polars as pl

from selftime.advice import Advice
from selftime.reports.page_data.snippets import candidate_source_paths
from selftime.trace import Trace

_MAX_SOURCE_FILES_OF_STORED_ADVICE: Final = 500
"""Largest number of the trace's source files whose change makes stored advice outdated."""


def source_files_of_advice(trace: Trace, advice: Advice) -> set[Path]:
    """Returns the source files that the advice depends on, including files that do not exist."""
    files_of_lines = (
        trace.lines["file"]
        .drop_nulls()
        .unique()
        .cast(pl.String)
        .sort()
        .head(_MAX_SOURCE_FILES_OF_STORED_ADVICE)
    )
    files_of_findings = {
        finding.where.file for finding in advice.findings if finding.where.file is not None
    }
    return {
        path.absolute()
        for file in {*files_of_lines, *files_of_findings}
        for path in candidate_source_paths(trace, file)
    }
