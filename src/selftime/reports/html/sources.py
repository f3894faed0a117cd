"""Collects source code for a report: lines with findings or high cost, and lines around them.

Everyone who gets the report can read them, so `--no-source` leaves them out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import polars as pl

from selftime.advice import Advice
from selftime.reports.html.packing import compress_json
from selftime.reports.page_data.snippets import source_snippet
from selftime.trace import Trace
from selftime.views.lines import lines

_LINES_SHOWN_AROUND_EACH_CHOSEN_LINE: Final = 30
"""Number of lines shown before and after each line with a finding or a cost."""
_MAX_SOURCE_FILES: Final = 30
"""Largest number of source files in a report."""
_MAX_COSTLIEST_LINES: Final = 300
"""Number of source lines, costliest first, that are included with the lines around them."""
_MAX_LINES_OF_FILE_SHOWN_COMPLETELY: Final = 20_000
"""Largest number of lines of a source file that is included completely."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A source file in two versions: only costly lines with lines around them, and all lines."""

    priority: int
    """Files of lower priority number are included first."""
    name: str
    versions: tuple[str, ...] = field(repr=False)


def report_source_files(trace: Trace, advice: Advice) -> Iterator[SourceFile]:
    """Yields source files that have findings or costly lines; files with findings come first."""
    files_with_findings = {f.where.file for f in advice.findings}
    for name, line_numbers in list(_line_numbers_by_file(trace, advice).items())[
        :_MAX_SOURCE_FILES
    ]:
        source = source_snippet(trace, name, 1, _MAX_LINES_OF_FILE_SHOWN_COMPLETELY)
        if source is None:
            continue
        excerpt = _excerpt_around_lines(source, line_numbers)
        whole = {"count": source["count"], "parts": [{"from": 1, "lines": source["lines"]}]}
        versions = dict.fromkeys((compress_json(excerpt), compress_json(whole)))
        yield SourceFile(1 if name in files_with_findings else 3, name, tuple(versions))


def _line_numbers_by_file(trace: Trace, advice: Advice) -> dict[str, set[int]]:
    """Returns by file the numbers of lines that have a finding or are among the costliest."""
    lines_by_file: dict[str, set[int]] = {}
    finding_lines = [(f.where.file, f.where.line) for f in advice.findings]
    costly = lines(trace).head(_MAX_COSTLIEST_LINES).select("file", "line").rows()
    for file, line in [*finding_lines, *costly, *_lines_of_run(trace)]:
        if file is not None:
            lines_by_file.setdefault(file, set()).add(line or 1)
    return lines_by_file


def _lines_of_run(trace: Trace) -> list[tuple[str | None, int | None]]:
    """Returns (file, line) of the costliest lines in the ledger of the run, and of its loops."""
    read = trace.run.readings.group_by("file", "line").agg(pl.col("duration").sum())
    costly = read.sort("duration", "file", "line", descending=[True, False, False])
    return [
        *trace.run.loop_lines.values(),
        *costly.head(_MAX_COSTLIEST_LINES).select("file", "line").rows(),
    ]


def _excerpt_around_lines(source: Mapping[str, Any], line_numbers: set[int]) -> dict[str, Any]:
    """Returns a source file's data with only the given lines and the lines around them."""
    last = len(source["lines"])
    parts: list[dict[str, Any]] = []
    end = 0
    for line in sorted(number for number in line_numbers if number <= last):
        first, last_shown = (
            max(1, line - _LINES_SHOWN_AROUND_EACH_CHOSEN_LINE),
            min(last, line + _LINES_SHOWN_AROUND_EACH_CHOSEN_LINE),
        )
        if not parts or first > end + 1:
            parts.append({"from": first, "lines": []})
            end = first - 1
        parts[-1]["lines"].extend(source["lines"][end:last_shown])
        end = max(end, last_shown)
    return {"count": source["count"], "parts": parts}
