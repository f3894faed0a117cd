"""The relations of a query: every table, every view, and views with options."""

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
from selftime.views import FORMER_NAMES, VIEWS, View, find

Relation: TypeAlias = Callable[[], pl.LazyFrame]

TRACE_COLUMN: Final = Column("trace", pl.String, "name", "The trace, by its path in the job.")
"""The first column of tables and views of single traces in a query over a job."""

MEMBERS: Final = Table(
    "members",
    "One row for each trace.",
    (
        TRACE_COLUMN,
        Column("rank", pl.Int64, "id", "The rank.", True),
        Column("size", pl.Int64, "count", "The number of ranks of the job.", True),
        Column("label", pl.String, "name", "The label of the rank or recording.", True),
        Column("run", pl.String, "text", "The run's folder below the job's.", True),
        Column("window", pl.Int64, "id", "The number, from 1, of the process's recording.", True),
        Column("source", pl.String, "text", "The path or address it was read from."),
    ),
)
TABLES: Final = {**schema.TABLES, MEMBERS.name: MEMBERS}
"""Every table that a query may name, by name."""


def _query_name(kind: str, name: str) -> str:
    """Returns a relation's name in a query, with a prefix if a table and a view share it."""
    return f"{kind}.{name}" if name in TABLES and name in VIEWS else name


VIEW_NAMES: Final = {_query_name("views", name): name for name in VIEWS}
"""View names by their names in a query."""


def relations(subject: Trace | Job, views: Mapping[str, str]) -> dict[str, Relation]:
    """Returns a function for each relation, by name, which computes it when called.

    `views` defines additional ones: a name, and a view with its options, such as `operators
    by=shape`.
    """
    tables: dict[str, Relation] = {
        _query_name("tables", name): partial(_table_frame, subject, name) for name in schema.TABLES
    }
    tables[MEMBERS.name] = partial(_members, subject)
    known: dict[str, Relation] = {
        name: partial(_view_frame, subject, VIEWS[view], {}) for name, view in VIEW_NAMES.items()
    }
    return tables | known | _defined_views(subject, views, {*tables, *known, *VIEWS, *TABLES})


def former_relations(subject: Trace | Job, named: AbstractSet[str]) -> dict[str, Relation]:
    """Returns relations for former names of views that the query uses."""
    former = {old: new for old, new in FORMER_NAMES.items() if old in named}
    return {old: partial(_view_frame, subject, VIEWS[new], {}) for old, new in former.items()}


def _defined_views(
    subject: Trace | Job, views: Mapping[str, str], used_names: set[str]
) -> dict[str, Relation]:
    defined: dict[str, Relation] = {}
    for name, words in views.items():
        if name in used_names or not name.isidentifier():
            reason = "is already in use" if name in used_names else "is not a valid name"
            raise UsageError(f"`{name}` {reason}; choose another for `{words}`")
        view, options = _parse_view(words)
        defined[name] = partial(_view_frame, subject, view, options)
    return defined


def _parse_view(words: str) -> tuple[View[Any], dict[str, Any]]:
    """Returns a view and its options from words such as `operators by=shape`."""
    try:
        first, *rest = shlex.split(words) or [""]
    except ValueError:
        raise UsageError(f"`{words}` has an unclosed quote; close it") from None
    view = find(first)
    given = dict(word.partition("=")[::2] for word in rest)
    return view, view.read({name.replace("-", "_"): value for name, value in given.items()})


def _table_frame(subject: Trace | Job, name: str) -> pl.LazyFrame:
    return _stacked(subject, lambda trace: trace.tables()[name], schema.TABLES[name].columns)


def _view_frame(subject: Trace | Job, view: View[Any], options: dict[str, Any]) -> pl.LazyFrame:
    if view.across:
        return view(subject, **options).lazy()
    return _stacked(subject, lambda trace: view(trace, **options), view.columns)


def _stacked(
    subject: Trace | Job, ask: Callable[[Trace], pl.DataFrame], columns: tuple[Column, ...]
) -> pl.LazyFrame:
    """Returns the table of a trace, or the stacked tables of a job's traces."""
    if isinstance(subject, Trace):
        return ask(subject).lazy()
    tables = [
        ask(trace).lazy().select(pl.lit(path).alias(TRACE_COLUMN.name), pl.all())
        for path, trace in subject.traces.items()
    ]
    told = {column.name: column.dtype for column in (TRACE_COLUMN, *columns)}
    return pl.concat(tables) if tables else pl.LazyFrame(schema=told)


def _members(subject: Trace | Job) -> pl.LazyFrame:
    traces = {subject.source: subject} if isinstance(subject, Trace) else subject.traces
    known = {} if isinstance(subject, Trace) else subject.members
    rows = [(path, *_member_row(known.get(path)), trace.source) for path, trace in traces.items()]
    return pl.LazyFrame(rows, schema=MEMBERS.dtypes, orient="row")


def _member_row(member: Any) -> tuple[Any, ...]:
    if member is None:
        return (None,) * 5
    return (member.rank, member.size, member.label, member.run, member.window)
