"""SQL queries, in the dialect of Polars, over all tables and views of a trace or a job.

`select name, sum(duration) as total from slices group by name order by total desc limit 5`
"""

from collections.abc import Mapping
from difflib import get_close_matches

import polars as pl

from selftime.errors import UsageError
from selftime.sql.relations import (
    MEMBERS,
    TABLES,
    TRACE_COLUMN,
    VIEW_NAMES,
    former_relations,
    relations,
)
from selftime.sql.words import names_in, require_read_only
from selftime.trace import Job, Trace
from selftime.views import VIEWS

__all__ = ["MEMBERS", "TABLES", "TRACE_COLUMN", "VIEW_NAMES", "QueryError", "query"]


class QueryError(UsageError):
    """Polars cannot execute a query."""

    def __init__(self, message: str) -> None:
        super().__init__(f"the query cannot be answered: {message}")
        self.message = message
        """Polars' message, which may contain texts of the trace."""


def query(subject: Trace | Job, text: str, views: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Returns the result of a query over the tables and views of a trace or a job.

    A relation has the name of its table (`selftime.schema.TABLES`) or view
    (`selftime.views.VIEWS`); names that both have are written `tables.NAME` and `views.NAME`. Only
    relations that the query names are computed. `views` defines views with options, such as
    `{"shapes": "operators by=shape"}`. For a job, relations of one trace have a first column
    `trace`, and `members` describes each trace.

    Times are nanoseconds and sizes bytes, as the columns declare; decimals are floats. Raises
    `UsageError` if the text is not a query, names an unknown relation, or opens a file.
    """
    require_read_only(text)
    named = names_in(text)
    known = former_relations(subject, named) | relations(subject, views or {})
    empty = pl.LazyFrame()
    frames = {
        name: _categories_as_text(compute())
        if not named.isdisjoint({name, name.rpartition(".")[2]})
        else empty
        for name, compute in known.items()
    }
    try:
        answer = pl.SQLContext(frames).execute(text, eager=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _error_for(str(error), known) from error
    return answer.with_columns(pl.selectors.decimal().cast(pl.Float64))


def _categories_as_text(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Returns categorical columns as text, as SQL's `like` and `||` require."""
    return frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))


def _error_for(message: str, known: Mapping[str, object]) -> UsageError:
    """Returns the error for a failed query, with similar names of relations."""
    first = " ".join(message.partition("\n")[0].split())
    before, _, after = first.partition("relation '")
    name = after.partition("'")[0]
    if before or not name:
        return QueryError(first)
    if name in TABLES and name in VIEWS:
        return UsageError(
            f"`{name}` is a table and a view; write `tables.{name}` or `views.{name}`"
        )
    close = get_close_matches(name, known, n=3)
    hint = f"; similar names are {', '.join(f'`{one}`' for one in close)}" if close else ""
    return UsageError(f"there is no table and no view `{name}`{hint}; ask `show tables` for all")
