"""Executes SQL queries in Polars' dialect over the tables and views of a trace or a job.

`select name, sum(duration) as total from slices group by name order by total desc limit 5`
"""

from collections.abc import Mapping
from difflib import get_close_matches

import polars as pl

from selftime.errors import UsageError
from selftime.sql.query_relations import (
    MEMBERS,
    TABLES,
    TRACE_COLUMN,
    VIEW_NAMES,
    relations_by_former_name,
    relations_of_query,
)
from selftime.sql.query_tokens import names_written_in_query, require_read_only_query
from selftime.trace import Job, Trace
from selftime.views import VIEWS

__all__ = ["MEMBERS", "TABLES", "TRACE_COLUMN", "VIEW_NAMES", "QueryError", "query"]


class QueryError(UsageError):
    """Raised if Polars cannot parse or execute an SQL query."""

    def __init__(self, message: str) -> None:
        super().__init__(f"the query cannot be answered: {message}")
        self.message = message
        """Polars' error message, which may quote texts of the trace."""


def query(subject: Trace | Job, text: str, views: Mapping[str, str] | None = None) -> pl.DataFrame:
    """Executes an SQL query over the tables and views of a trace or a job.

    A relation has the name of its table (`selftime.schema.TABLES`) or view
    (`selftime.views.VIEWS`); names that both have are written `tables.NAME` and `views.NAME`. Only
    relations that the query names are computed. `views` defines views with options, such as
    `{"shapes": "operators by=shape"}`. For a job, relations of one trace have a first column
    `trace`, and `members` describes each trace.

    Times are nanoseconds and sizes bytes, as the columns declare; decimals are floats. Raises
    `UsageError` if the text is not a query, names an unknown relation, or opens a file.
    """
    require_read_only_query(text)
    named = names_written_in_query(text)
    known = relations_by_former_name(subject, named) | relations_of_query(subject, views or {})
    empty = pl.LazyFrame()
    frames = {
        name: _categorical_columns_as_text(compute())
        if not named.isdisjoint({name, name.rpartition(".")[2]})
        else empty
        for name, compute in known.items()
    }
    try:
        answer = pl.SQLContext(frames).execute(text, eager=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _query_error_with_similar_names(str(error), known) from error
    return answer.with_columns(pl.selectors.decimal().cast(pl.Float64))


def _categorical_columns_as_text(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Converts categorical columns to text, which SQL's `like` and `||` require."""
    return frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))


def _query_error_with_similar_names(
    message: str, relations_by_name: Mapping[str, object]
) -> UsageError:
    """Returns the error for a failed query; suggests names similar to an unknown table or view."""
    first = " ".join(message.partition("\n")[0].split())
    before, _, after = first.partition("relation '")
    name = after.partition("'")[0]
    if before or not name:
        return QueryError(first)
    if name in TABLES and name in VIEWS:
        return UsageError(
            f"`{name}` is a table and a view; write `tables.{name}` or `views.{name}`"
        )
    close = get_close_matches(name, relations_by_name, n=3)
    hint = f"; similar names are {', '.join(f'`{one}`' for one in close)}" if close else ""
    return UsageError(f"there is no table and no view `{name}`{hint}; ask `show tables` for all")
