"""Groups memory blocks by what allocated them: line, module, operator, category."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import polars as pl

from selftime.analysis.memory.block_categories import categories_of_memory_blocks
from selftime.analysis.memory.block_holders import (
    modules_of_memory_records,
    operator_labels_of_memory_records,
    source_sites_of_memory_records,
)
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS
from selftime.trace import Trace

GROUPING_COLUMNS_BY_OPTION: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "line": SOURCE_SITE_COLUMNS,
        "module": ("module",),
        "operator": ("operator",),
        "category": ("category",),
    }
)
"""The columns by which each word of an option `by` groups memory blocks."""

_ALL_GROUPING_COLUMNS: Final = ("category", "operator", "module", *SOURCE_SITE_COLUMNS)


def grouping_columns(by: str) -> list[str]:
    """Returns the columns of words joined by `+`, in the order in which tables have them.

    >>> grouping_columns("module+category")
    ['category', 'module']
    """
    chosen = {column for word in by.split("+") for column in GROUPING_COLUMNS_BY_OPTION[word]}
    return [column for column in _ALL_GROUPING_COLUMNS if column in chosen]


def memory_blocks_with_grouping_columns(
    trace: Trace, blocks: pl.DataFrame, columns: list[str]
) -> pl.DataFrame:
    """Returns the memory blocks with `columns` added, of what allocated each."""
    if "category" in columns:
        blocks = blocks.with_columns(category=categories_of_memory_blocks(trace, blocks))
    if "operator" in columns:
        blocks = blocks.with_columns(
            operator=operator_labels_of_memory_records(trace, blocks["allocation"])
        )
    if "module" in columns:
        blocks = blocks.with_columns(module=modules_of_memory_records(trace, blocks["allocation"]))
    if "file" in columns:
        blocks = blocks.with_columns(
            source_sites_of_memory_records(trace, blocks["allocation"]).select(SOURCE_SITE_COLUMNS)
        )
    return blocks
