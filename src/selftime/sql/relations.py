"""What a query may name: every table of a trace, every view, and views with options of its own."""

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

OF_TRACE: Final = Column("trace", pl.String, "name", "The trace of the job that the row is of.")
"""The column before those of a table or a view of one trace where a job is asked."""

MEMBERS: Final = Table(
    "members",
    "One row for each trace of what was asked.",
    (
        OF_TRACE,
        Column("rank", pl.Int64, "id", "The rank, if it is known.", True),
        Column("size", pl.Int64, "count", "Ranks of the job, if they are known.", True),
        Column("label", pl.String, "name", "What the rank or the recording is called.", True),
        Column("run", pl.String, "text", "The folder of its run, below the job's.", True),
        Column("window", pl.Int64, "id", "Which of its process's recordings, from 1.", True),
        Column("source", pl.String, "text", "Where it was read from."),
    ),
)
TABLES: Final = {**schema.TABLES, MEMBERS.name: MEMBERS}
"""Every table that a query may name."""


def _named(kind: str, name: str) -> str:
    """The name in a query: the plain one, unless a table and a view share it."""
    return f"{kind}.{name}" if name in TABLES and name in VIEWS else name


VIEWED: Final = {_named("views", name): name for name in VIEWS}
"""Every view, by what a query calls it."""


def relations(subject: Trace | Job, views: Mapping[str, str]) -> dict[str, Relation]:
    """What gives each relation, by name; nothing is computed before it is called.

    `views` defines more: a name, and a view with its options, such as `operators by=shape`.
    """
    tables: dict[str, Relation] = {
        _named("tables", name): partial(_table, subject, name) for name in schema.TABLES
    }
    tables[MEMBERS.name] = partial(_members, subject)
    known: dict[str, Relation] = {
        name: partial(_viewed, subject, VIEWS[view], {}) for name, view in VIEWED.items()
    }
    return tables | known | _defined(subject, views, {*tables, *known, *VIEWS, *TABLES})


def of_former_names(subject: Trace | Job, named: AbstractSet[str]) -> dict[str, Relation]:
    """Views that a query calls by the names of the release before."""
    former = {old: new for old, new in FORMER_NAMES.items() if old in named}
    return {old: partial(_viewed, subject, VIEWS[new], {}) for old, new in former.items()}


def _defined(
    subject: Trace | Job, views: Mapping[str, str], taken: set[str]
) -> dict[str, Relation]:
    made: dict[str, Relation] = {}
    for name, words in views.items():
        if name in taken or not name.isidentifier():
            reason = "is one already" if name in taken else "is no name"
            raise UsageError(f"`{name}` {reason}; choose another for `{words}`")
        view, options = _read(words)
        made[name] = partial(_viewed, subject, view, options)
    return made


def _read(words: str) -> tuple[View[Any], dict[str, Any]]:
    """A view and its options from words such as `operators by=shape`."""
    try:
        first, *rest = shlex.split(words) or [""]
    except ValueError:
        raise UsageError(f"`{words}` leaves a quote open; close it") from None
    view = find(first)
    given = dict(word.partition("=")[::2] for word in rest)
    return view, view.read({name.replace("-", "_"): value for name, value in given.items()})


def _table(subject: Trace | Job, name: str) -> pl.LazyFrame:
    return _each(subject, lambda trace: trace.tables()[name], schema.TABLES[name].columns)


def _viewed(subject: Trace | Job, view: View[Any], options: dict[str, Any]) -> pl.LazyFrame:
    if view.across:
        return view(subject, **options).lazy()
    return _each(subject, lambda trace: view(trace, **options), view.columns)


def _each(
    subject: Trace | Job, ask: Callable[[Trace], pl.DataFrame], columns: tuple[Column, ...]
) -> pl.LazyFrame:
    """The table of a trace, or those of a job's traces below one another."""
    if isinstance(subject, Trace):
        return ask(subject).lazy()
    tables = [
        ask(trace).lazy().select(pl.lit(path).alias(OF_TRACE.name), pl.all())
        for path, trace in subject.traces.items()
    ]
    told = {column.name: column.dtype for column in (OF_TRACE, *columns)}
    return pl.concat(tables) if tables else pl.LazyFrame(schema=told)


def _members(subject: Trace | Job) -> pl.LazyFrame:
    traces = {subject.source: subject} if isinstance(subject, Trace) else subject.traces
    known = {} if isinstance(subject, Trace) else subject.members
    rows = [(path, *_told(known.get(path)), trace.source) for path, trace in traces.items()]
    return pl.LazyFrame(rows, schema=MEMBERS.dtypes, orient="row")


def _told(member: Any) -> tuple[Any, ...]:
    if member is None:
        return (None,) * 5
    return (member.rank, member.size, member.label, member.run, member.window)
