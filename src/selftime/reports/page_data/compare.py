"""Prepares the tables of a comparison of two traces for queries by the web page."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec
import polars as pl

from selftime.compare import TABLES, Metric, compare, metrics
from selftime.compare.kernels import KERNELS_TABLE, compared_kernels
from selftime.reports.compare import (
    NO_STEPS_SENTENCE,
    StepComparisonText,
    run_comparison_sentence,
    step_comparison_texts,
)
from selftime.reports.page_data.table_queries import (
    MAX_RESPONSE_BYTES,
    PreparedTable,
    RowQuery,
    prepare_table,
)
from selftime.reports.page_data.views import label_data
from selftime.reports.tables.tabular import column_description_data
from selftime.schema import Table
from selftime.trace import Trace

MAX_COMPARISON_TREE_ROWS: Final = 20_000
"""Largest number of tree rows in a response; modules and operators with the most time are kept."""

_NAME_OF_TABLE_OF_KERNEL_NAMES: Final = "kernel_names"
"""Key of the table that compares kernels by name; the key `kernels` has those by class."""
_DESCRIPTION_BY_COMPARISON_TABLE: Final[dict[str, Table]] = {
    **TABLES,
    _NAME_OF_TABLE_OF_KERNEL_NAMES: KERNELS_TABLE,
}
"""Descriptions of the comparison's tables, by name."""
_SUMMABLE_COLUMNS: Final = ("before", "after", "difference")
"""Columns of the comparison's tables whose sum is meaningful."""
_SUMMABLE_COLUMNS_BY_TABLE: Final = {
    name: () if name in ("steps", "run_steps") else _SUMMABLE_COLUMNS
    for name in _DESCRIPTION_BY_COMPARISON_TABLE
}
"""Columns whose sum is meaningful, by table."""
_COLUMNS_NOT_SENT_BY_TABLE: Final = {"tree": ("path",)}
"""Columns that are not sent to the page, by table, since the page computes them itself."""


@dataclass(frozen=True, slots=True)
class PreparedComparison:
    """A comparison of two traces, with tables that are prepared for queries."""

    metric: Metric
    """Compared time: `host` or `device`."""
    metrics: tuple[Metric, ...]
    """Times that can be compared, as both recordings contain them: `host`, or also `device`."""
    notes: tuple[str, ...]
    """Sentences about differences between the two recordings."""
    steps: tuple[StepComparisonText, ...]
    """Texts that compare each kind of step time before and after."""
    run: str | None
    """A sentence about the wall time of both runs; None unless both have a ledger."""
    tables: dict[str, PreparedTable]
    """Tables of the comparison, by name."""

    def comparison_json(
        self,
        *,
        tree_rows: int = MAX_COMPARISON_TREE_ROWS,
        max_table_bytes: int = MAX_RESPONSE_BYTES,
    ) -> bytes:
        """Returns the comparison as the JSON object `Compared` of the page's interface.

        The tree has at most `tree_rows` rows; each table takes at most `max_table_bytes` bytes.
        """
        pages = {
            name: msgspec.Raw(
                table.page_json(
                    RowQuery(rows=tree_rows if name == "tree" else None),
                    view=name,
                    options={},
                    max_bytes=max_table_bytes,
                )
            )
            for name, table in self.tables.items()
        }
        descriptions = {
            name: _table_description_data(name, table) for name, table in self.tables.items()
        }
        header = {"metric": self.metric, "metrics": self.metrics, "notes": self.notes}
        is_told = bool(self.steps) or self.run is not None
        no_steps = None if is_told else NO_STEPS_SENTENCE
        sentences = {"run": self.run, "steps": self.steps, "no_steps": no_steps}
        return msgspec.json.encode(
            {**header, "said": sentences, "specs": descriptions, "tables": pages}
        )


def prepare_comparison(
    before: Trace, after: Trace, metric: Metric | None = None
) -> PreparedComparison:
    """Returns the comparison of two traces as `selftime compare` makes it, prepared for queries."""
    comparison = compare(before, after, metric=metric)
    tables = {
        **comparison.tables(),
        _NAME_OF_TABLE_OF_KERNEL_NAMES: compared_kernels(before, after, "name"),
    }
    tables["tree"] = _sort_tree_by_total_time(comparison.tree)
    prepared = {
        name: prepare_table(
            table, _columns_sent_to_page(name), sums=_SUMMABLE_COLUMNS_BY_TABLE[name]
        )
        for name, table in tables.items()
    }
    return PreparedComparison(
        comparison.metric,
        metrics(before, after),
        comparison.notes,
        step_comparison_texts(comparison.steps),
        run_comparison_sentence(comparison.run_parts) if comparison.run_parts.height else None,
        prepared,
    )


def _sort_tree_by_total_time(tree: pl.DataFrame) -> pl.DataFrame:
    """Returns the tree's rows by total time, so that each row comes after its parent."""
    weight = pl.max_horizontal("total_before", "total_after")
    return tree.sort(weight, "depth", descending=[True, False], maintain_order=True)


def _columns_sent_to_page(table_name: str) -> tuple[Any, ...]:
    """Returns the columns of a table that are sent to the page."""
    omitted = _COLUMNS_NOT_SENT_BY_TABLE.get(table_name, ())
    return tuple(
        column
        for column in _DESCRIPTION_BY_COMPARISON_TABLE[table_name].columns
        if column.name not in omitted
    )


def _table_description_data(table_name: str, table: PreparedTable) -> dict[str, Any]:
    """Returns the description of a table and of its columns as a JSON object."""
    return {
        "doc": _DESCRIPTION_BY_COMPARISON_TABLE[table_name].doc,
        "columns": [
            {**column_description_data(column), "labels": label_data(table_name, column.name)}
            for column in table.columns
        ],
    }
