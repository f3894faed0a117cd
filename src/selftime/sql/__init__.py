"""Questions in SQL, as Polars speaks it, to every table and every view of a trace or a job.

`select name, sum(duration) as total from slices group by name order by total desc limit 5`
"""

from collections.abc import Mapping
from difflib import get_close_matches

import polars as pl

from selftime.errors import UsageError
from selftime.sql.relations import MEMBERS, OF_TRACE, TABLES, VIEWED, of_former_names, relations
from selftime.sql.words import names_in, only_asking
from selftime.trace import Job, Trace
from selftime.views import VIEWS

__all__ = ["MEMBERS", "OF_TRACE", "TABLES", "VIEWED", "QueryError", "query"]


class QueryError(UsageError):
    """Polars cannot answer a query."""

    def __init__(self, told: str) -> None:
        super().__init__(f"the query cannot be answered: {told}")
        self.told = told
        """What Polars says; texts of the trace may be in it."""


def query(subject: Trace | Job, text: str, views: Mapping[str, str] | None = None) -> pl.DataFrame:
    """The answer to a query over the tables and views of a trace or a job.

    A relation is called as its table (`selftime.schema.TABLES`) or its view is
    (`selftime.views.VIEWS`); where both have a name, `tables.NAME` and `views.NAME`. Only what the
    query names is computed. `views` defines views with options, such as
    `{"shapes": "operators by=shape"}`. Asked of a job, relations of one trace have a first column
    `trace`, and `members` tells of each.

    Times are nanoseconds and sizes bytes, as the columns declare; decimals are floats. Raises
    `UsageError` if the text is no query, names what is not there, or asks for a file.
    """
    only_asking(text)
    named = names_in(text)
    known = of_former_names(subject, named) | relations(subject, views or {})
    empty = pl.LazyFrame()
    frames = {
        name: _plain(compute()) if not named.isdisjoint({name, name.rpartition(".")[2]}) else empty
        for name, compute in known.items()
    }
    try:
        answer = pl.SQLContext(frames).execute(text, eager=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise _refusal(str(error), known) from error
    return answer.with_columns(pl.selectors.decimal().cast(pl.Float64))


def _plain(frame: pl.LazyFrame) -> pl.LazyFrame:
    """Names as text: SQL's `like` and `||` take nothing else."""
    return frame.with_columns(pl.selectors.by_dtype(pl.Categorical, pl.Enum).cast(pl.String))


def _refusal(told: str, known: Mapping[str, object]) -> UsageError:
    """Why Polars does not answer, and what there is instead."""
    first = " ".join(told.partition("\n")[0].split())
    before, _, after = first.partition("relation '")
    name = after.partition("'")[0]
    if before or not name:
        return QueryError(first)
    if name in TABLES and name in VIEWS:
        return UsageError(
            f"`{name}` is a table and a view; write `tables.{name}` or `views.{name}`"
        )
    close = get_close_matches(name, known, n=3)
    hint = f"; near it are {', '.join(f'`{one}`' for one in close)}" if close else ""
    return UsageError(f"there is no table and no view `{name}`{hint}; ask `show tables` for all")
