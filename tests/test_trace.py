"""A trace is immutable, holds the declared tables, and says what it is."""

from dataclasses import FrozenInstanceError
from types import MappingProxyType
from typing import Any

import polars as pl
import pytest

from selftime import schema, units
from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Job, Trace


def test_an_empty_trace_has_every_table_as_declared() -> None:
    tables = Trace().tables()
    assert list(tables) == list(schema.TABLES)
    for name, table in tables.items():
        assert table.is_empty()
        assert dict(table.schema) == schema.TABLES[name].dtypes


@pytest.mark.parametrize("table", schema.TABLES.values(), ids=schema.TABLES)
def test_every_table_is_declared_in_full(table: schema.Table) -> None:
    assert table.doc.endswith(".")
    columns = [column.name for column in table.columns]
    assert len(set(columns)) == len(columns)
    for column in table.columns:
        assert column.name.isidentifier()
        assert column.doc.endswith(".")
        assert column.unit in units.UNITS


def test_it_cannot_be_changed() -> None:
    trace = Trace()
    with pytest.raises(FrozenInstanceError):
        trace.source = "x"  # type: ignore[misc]  # the point of the test


def test_empty_traces_do_not_share_tables() -> None:
    assert Trace().slices is not Trace().slices


@pytest.mark.parametrize(
    ("metadata", "facts"),
    [({}, {}), ({"selftime": {"format": "x"}}, {"format": "x"}), ({"selftime": [1]}, {})],
)
def test_facts(metadata: dict[str, Any], facts: dict[str, Any]) -> None:
    assert Trace(metadata=MappingProxyType(metadata)).facts == facts


def test_what_it_says_of_itself() -> None:
    assert repr(Trace()) == "<Trace (in memory): 0 slices, 0 ms>"
    drawing = "column = 1 s\ncpu 1 | aa b"
    assert repr(sketch(drawing)) == "<Trace (sketch): 2 slices, 4.00 s>"


def test_an_unknown_end_does_not_spoil_the_length() -> None:
    slices = sketch("cpu 1 | aa").slices
    trace = Trace(slices=slices.with_columns(duration=pl.lit(None, pl.Int64)))
    assert "0 ms" in repr(trace)


def test_views_are_found_by_name() -> None:
    assert sketch("cpu 1 | aa").view("operators").height == 1
    with pytest.raises(UsageError):
        Trace().view("nosuch")


def test_a_job_is_its_traces() -> None:
    traces = {"a": Trace(source="a"), "b": Trace(source="b")}
    job = Job(traces)
    assert len(job) == 2
    assert [trace.source for trace in job] == ["a", "b"]
    assert not job.refused
