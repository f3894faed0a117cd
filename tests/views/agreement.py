"""Holds views to each other that state the same quantity.

A pair is a function: its name is the quantity, its docstring the relation, and it yields both sides
as the views state them. Pairs are listed by subject in the modules `agreement_of_*`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import polars as pl

from selftime.trace import Job, Trace
from selftime.views import VIEWS

SITE: Final = ("file", "line", "function", "how")
_SHOWN: Final = 5
"""Of one pair so many differences are told."""
Sides: TypeAlias = Iterator[tuple[str, Any, Any]]
"""What is compared, and its two sides."""


@dataclass(slots=True, repr=False)
class Asked:
    """A trace or a job, and the tables that its views answered so far."""

    subject: Trace | Job
    tables: dict[Any, pl.DataFrame] = field(default_factory=dict)

    def __call__(self, view: str, **options: Any) -> pl.DataFrame:
        key = view, *sorted(options.items())
        if key not in self.tables:
            self.tables[key] = VIEWS[view](self.subject, **options)
        return self.tables[key]

    @property
    def trace(self) -> Trace:
        assert isinstance(self.subject, Trace)
        return self.subject


Pair: TypeAlias = Callable[[Asked], Sides]


def host_rows(operators: pl.DataFrame) -> pl.DataFrame:
    """Of the view `operators`: operators, annotations and calls."""
    return operators.filter(~pl.col("kind").is_in(["kernel", "copy", "memory"]))


def summed(table: pl.DataFrame, keys: tuple[str, ...], *columns: str) -> dict[Any, tuple[int, ...]]:
    """The sums of columns by the keys; a group in which all are 0 or unknown is left out."""
    rows = table.with_columns(pl.col(keys).cast(pl.String)).group_by(keys)
    sums = rows.agg(pl.col(columns).sum()).select(*keys, *columns)
    found = {row[: len(keys)]: row[len(keys) :] for row in sums.iter_rows()}
    return {key: amounts for key, amounts in found.items() if any(amounts)}


def differences(asked: Asked, pairs: tuple[Pair, ...]) -> list[str]:
    """What the views disagree on, in words."""
    return [
        f"{pair.__name__}, {what}: {text}"
        for pair in pairs
        for what, one, other in pair(asked)
        for text in _unequal(one, other)
    ]


def _unequal(one: Any, other: Any) -> list[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted(one.keys() | other.keys(), key=str)
        wrong = [key for key in keys if one.get(key) != other.get(key)]
        return [f"{key}: {one.get(key)} and {other.get(key)}" for key in wrong[:_SHOWN]]
    return [] if one == other else [f"{one} and {other}"]
