"""A comparison as the page asks for it: tables in the form of views' tables, and what they mean."""

from dataclasses import dataclass
from typing import Any, Final

import msgspec
import polars as pl

from selftime.compare import TABLES, Metric, compare, metrics
from selftime.compare.kernels import KERNELS, compared_kernels
from selftime.reports.compare import NO_STEPS, StepWords, step_words
from selftime.reports.page_data.rows import LIMIT, Prepared, Query, prepare
from selftime.reports.tables.tabular import described
from selftime.schema import Table
from selftime.trace import Trace

MOST_NODES: Final = 20_000
"""Rows of the tree in an answer: those that take most, before or after."""

_NAMES: Final = "kernel_names"
"""The table of kernels by their names; that by class is called as everywhere."""
_ALL: Final[dict[str, Table]] = {**TABLES, _NAMES: KERNELS}
_SUMS: Final = ("before", "after", "difference")
_ADDING_UP: Final = {name: () if name == "steps" else _SUMS for name in _ALL}
_LEFT_OUT: Final = {"tree": ("path",)}
"""Columns that others tell."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison whose tables are ready for questions."""

    metric: Metric
    metrics: tuple[Metric, ...]
    """What may be asked for."""
    notes: tuple[str, ...]
    steps: tuple[StepWords, ...]
    """The rows of the table of that name, in words."""
    tables: dict[str, Prepared]
    """By name."""

    def answer(self, *, nodes: int = MOST_NODES, limit: int = LIMIT) -> bytes:
        """`Compared` of the page's contract as JSON, with at most so many rows of the tree.

        The tree has room for `limit` bytes, as any other table.
        """
        pages = {
            name: msgspec.Raw(
                table.answer(
                    Query(rows=nodes if name == "tree" else None),
                    view=name,
                    options={},
                    limit=limit,
                )
            )
            for name, table in self.tables.items()
        }
        specs = {name: _spec(name, table) for name, table in self.tables.items()}
        head = {"metric": self.metric, "metrics": self.metrics, "notes": self.notes}
        said = {"steps": self.steps, "no_steps": None if self.steps else NO_STEPS}
        return msgspec.json.encode({**head, "said": said, "specs": specs, "tables": pages})


def compared(before: Trace, after: Trace, metric: Metric | None = None) -> Compared:
    """What `selftime compare` tells of two recordings, kernels by class and by name."""
    found = compare(before, after, metric=metric)
    tables = {**found.tables(), _NAMES: compared_kernels(before, after, "name")}
    tables["tree"] = _heaviest_first(found.tree)
    ready = {
        name: prepare(table, _columns(name), sums=_ADDING_UP[name])
        for name, table in tables.items()
    }
    return Compared(
        found.metric, metrics(before, after), found.notes, step_words(found.steps), ready
    )


def _heaviest_first(tree: pl.DataFrame) -> pl.DataFrame:
    """So that the first rows are a tree, too: no node takes more than the one around it."""
    weight = pl.max_horizontal("total_before", "total_after")
    return tree.sort(weight, "depth", descending=[True, False], maintain_order=True)


def _columns(name: str) -> tuple[Any, ...]:
    left = _LEFT_OUT.get(name, ())
    return tuple(column for column in _ALL[name].columns if column.name not in left)


def _spec(name: str, table: Prepared) -> dict[str, Any]:
    return {"doc": _ALL[name].doc, "columns": [described(column) for column in table.columns]}
