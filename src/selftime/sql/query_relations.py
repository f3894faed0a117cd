"""Provides what an SQL query can read: tables of the trace, views, and views with options."""

import shlex
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, Final, TypeAlias

import polars as pl

from selftime import schema
from selftime.errors import UsageError
from selftime.schema import Column, Table
from selftime.trace import Job, Trace
from selftime.views import FORMER_NAMES, VIEWS, View, find_view

ComputedRelation: TypeAlias = Callable[[], pl.LazyFrame]
"""A function without arguments that computes a table or view when a query reads it."""

TRACE_COLUMN: Final = Column(
    "trace", pl.String, "name", "Path of the row's trace, relative to the job's folder."
)
"""Column that comes first if a query stacks the tables of a job's traces: the path of the row's
trace."""

MEMBERS: Final = Table(
    "members",
    "One row for each trace.",
    (
        TRACE_COLUMN,
        Column("rank", pl.Int64, "id", "Number of the rank.", True),
        Column("size", pl.Int64, "count", "The number of ranks of the job.", True),
        Column(
            "label",
            pl.String,
            "name",
            "Label of the rank, or of one of the rank's recordings.",
            True,
        ),
        Column("run", pl.String, "text", "Folder of the run, relative to the job's folder.", True),
        Column(
            "window",
            pl.Int64,
            "id",
            "Number of the recording among those of its process, from 1.",
            True,
        ),
        Column("source", pl.String, "text", "Path or URL from which the trace was read."),
    ),
)
TABLES: Final = {**schema.TABLES, MEMBERS.name: MEMBERS}
"""Every table that a query may read (views not included), by the table's name."""


def _relation_name_in_query(kind: str, name: str) -> str:
    """Returns a table's or view's name in a query: with a prefix if a table and a view share it."""
    return f"{kind}.{name}" if name in TABLES and name in VIEWS else name


VIEW_NAMES: Final = {_relation_name_in_query("views", name): name for name in VIEWS}
"""Maps the name of a view in a query, which may have a prefix, to the name of the view."""


def relations_of_query(
    subject: Trace | Job, views: Mapping[str, str]
) -> dict[str, ComputedRelation]:
    """Returns, by name in a query, a function for each table and view that computes it when called.

    `views` defines additional ones: a name, and a view with its options, such as `operators
    by=shape`.
    """
    tables: dict[str, ComputedRelation] = {
        _relation_name_in_query("tables", name): partial(_lazy_frame_of_table, subject, name)
        for name in schema.TABLES
    }
    tables[MEMBERS.name] = partial(_lazy_frame_of_members_table, subject)
    known: dict[str, ComputedRelation] = {
        name: partial(_lazy_frame_of_view, subject, VIEWS[view], {})
        for name, view in VIEW_NAMES.items()
    }
    return (
        tables
        | known
        | _relations_of_user_defined_views(subject, views, {*tables, *known, *VIEWS, *TABLES})
    )


def relations_by_former_name(
    subject: Trace | Job, names_in_query: AbstractSet[str]
) -> dict[str, ComputedRelation]:
    """Returns, for each former view name in a query, a function that computes the view."""
    former = {old: new for old, new in FORMER_NAMES.items() if old in names_in_query}
    return {
        old: partial(_lazy_frame_of_view, subject, VIEWS[new], {}) for old, new in former.items()
    }


def _relations_of_user_defined_views(
    subject: Trace | Job, views: Mapping[str, str], used_names: set[str]
) -> dict[str, ComputedRelation]:
    defined: dict[str, ComputedRelation] = {}
    for name, words in views.items():
        if name in used_names or not name.isidentifier():
            reason = "is already in use" if name in used_names else "is not a valid name"
            raise UsageError(f"`{name}` {reason}; choose another for `{words}`")
        view, options = _parse_view_definition(words)
        defined[name] = partial(_lazy_frame_of_view, subject, view, options)
    return defined


def _parse_view_definition(definition: str) -> tuple[View[Any], dict[str, Any]]:
    """Parses a view and its options from a text such as `operators by=shape`."""
    try:
        first, *rest = shlex.split(definition) or [""]
    except ValueError:
        raise UsageError(f"`{definition}` has an unclosed quote; close it") from None
    view = find_view(first)
    given = dict(word.partition("=")[::2] for word in rest)
    return view, view.parse_options(
        {name.replace("-", "_"): value for name, value in given.items()}
    )


def _lazy_frame_of_table(subject: Trace | Job, name: str) -> pl.LazyFrame:
    return _stack_tables_of_traces(
        subject, lambda trace: trace.tables()[name], schema.TABLES[name].columns
    )


def _lazy_frame_of_view(
    subject: Trace | Job, view: View[Any], options: dict[str, Any]
) -> pl.LazyFrame:
    if view.compares_ranks:
        return view(subject, **options).lazy()
    return _stack_tables_of_traces(subject, lambda trace: view(trace, **options), view.columns)


def _stack_tables_of_traces(
    subject: Trace | Job,
    table_of_trace: Callable[[Trace], pl.DataFrame],
    columns: tuple[Column, ...],
) -> pl.LazyFrame:
    """Returns one trace's table; of a job, the tables of all its traces, one below the other."""
    if isinstance(subject, Trace):
        return table_of_trace(subject).lazy()
    tables = [
        table_of_trace(trace).lazy().select(pl.lit(path).alias(TRACE_COLUMN.name), pl.all())
        for path, trace in subject.traces.items()
    ]
    told = {column.name: column.dtype for column in (TRACE_COLUMN, *columns)}
    return pl.concat(tables) if tables else pl.LazyFrame(schema=told)


def _lazy_frame_of_members_table(subject: Trace | Job) -> pl.LazyFrame:
    traces = {subject.source: subject} if isinstance(subject, Trace) else subject.traces
    known = {} if isinstance(subject, Trace) else subject.members
    rows = [
        (path, *_row_of_members_table(known.get(path)), trace.source)
        for path, trace in traces.items()
    ]
    return pl.LazyFrame(rows, schema=MEMBERS.dtypes, orient="row")


def _row_of_members_table(member: Any) -> tuple[Any, ...]:
    if member is None:
        return (None,) * 5
    return (member.rank, member.size, member.label, member.run, member.window)
