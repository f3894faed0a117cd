"""Compresses the comparison of two traces, to be part of an HTML report."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from selftime.compare import Metric, metrics
from selftime.reports.html.packing import compress_json, compress_page_columns
from selftime.reports.html.tables import PackedTable
from selftime.reports.page_data.compare import (
    MAX_COMPARISON_TREE_ROWS,
    PreparedComparison,
    prepare_comparison,
)
from selftime.trace import Trace

_TREE_ROWS_OF_SMALL_AND_LARGE_VERSION: Final = (2_000, MAX_COMPARISON_TREE_ROWS)
"""Largest number of rows of the module and operator tree, in the small and in the large version."""
_MAX_UNCOMPRESSED_TABLE_BYTES: Final = 32 << 20
"""Largest size of a table of the comparison in bytes, before compression."""
_PRIORITIES_OF_CHOSEN_AND_OTHER_METRIC: Final = (0, 3)
"""Priorities of the comparisons by the requested time and by the other time (host or device); lower
priorities are included first."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two traces to compare, by name, and which of their times to compare: host or device."""

    before: str
    after: str
    metric: Metric | None = None
    """Which time to compare: `host` or `device`; None means `device` if both recordings have it."""


def packed_comparison_tables(
    before: Trace, after: Trace, metric: Metric | None
) -> Iterator[PackedTable]:
    """Yields the compressed comparison by the time `metric`, then by the other time if recorded."""
    available = metrics(before, after)
    first = metric or available[0]
    other_metrics = [compared_metric for compared_metric in available if compared_metric != first]
    for priority, compared_metric in zip(
        _PRIORITIES_OF_CHOSEN_AND_OTHER_METRIC, (first, *other_metrics), strict=False
    ):
        comparison = prepare_comparison(before, after, compared_metric)
        height = comparison.tables["tree"].table.height
        row_counts = [
            *(rows for rows in _TREE_ROWS_OF_SMALL_AND_LARGE_VERSION if rows < height),
            min(height, MAX_COMPARISON_TREE_ROWS),
        ]
        versions = (
            _comparison_as_compressed_json(comparison, rows) for rows in dict.fromkeys(row_counts)
        )
        yield PackedTable(priority, "compare", {"metric": compared_metric}, tuple(versions))


def _comparison_as_compressed_json(comparison: PreparedComparison, tree_rows: int) -> str:
    """Returns a comparison as compressed JSON, with at most `tree_rows` rows of its tree."""
    data = msgspec.json.decode(
        comparison.comparison_json(
            tree_rows=tree_rows, max_table_bytes=_MAX_UNCOMPRESSED_TABLE_BYTES
        )
    )
    tables = {
        name: {
            **page,
            "columns": compress_page_columns(page["columns"], _units_of_table_columns(data, name)),
        }
        for name, page in data["tables"].items()
    }
    return compress_json({**data, "tables": tables})


def _units_of_table_columns(comparison_data: dict[str, Any], table_name: str) -> dict[str, str]:
    """Returns the unit of each column of one table of a comparison."""
    return {
        column["name"]: column["unit"] for column in comparison_data["specs"][table_name]["columns"]
    }
