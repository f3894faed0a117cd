"""`selftime sql`: a question of one's own to every table and every view."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftime.cli import reading, writing
from selftime.cli.options import FORMAT, ROWS, OutputFile, PrintedRows, TraceName, TracePath
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    import polars as pl

    from selftime.trace import Job, Trace


class SqlFormat(str, Enum):
    """How the answer is written."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def join(app: typer.Typer) -> None:
    app.command(
        epilog='Example: selftime sql selftime-runs "select name, sum(duration) as total '
        'from slices group by name order by total desc limit 10"'
    )(sql)


def sql(  # noqa: PLR0913, PLR0917 - the command's options
    path: TracePath,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="One that begins with `select` or `with`.")
    ],
    let: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VIEW",
            help='A view with options under a name: --let "shapes=operators by=shape".',
        ),
    ] = None,
    form: Annotated[SqlFormat | None, FORMAT] = None,
    output: OutputFile = None,
    rows: PrintedRows = ROWS,
    trace: TraceName = None,
) -> None:
    """Ask every table and every view of a trace in SQL.

    `show tables` lists what can be asked. Times are nanoseconds, sizes are bytes. Of a folder of
    several traces each row tells its `trace`, and `members` tells of each.
    """
    from selftime.sql import query as ask

    form = form or writing.format_of(output, SqlFormat.table)
    views = dict(_named(words) for words in let or [])
    traces = reading.read_traces(path, choice=trace)
    answer = ask(_subject(traces), query, views)
    writing.write(_written(answer, query, form, rows=rows, to=output), to=output)
    reading.tell_doubts(traces)


def _subject(traces: "dict[str, Trace]") -> "Trace | Job":
    from selftime.ingest.ranks import identity_of, members_of
    from selftime.trace import Job

    if len(traces) == 1:
        return next(iter(traces.values()))
    members, _ = members_of({name: identity_of(one) for name, one in traces.items()}, "")
    return Job(traces, members=members)


def _named(words: str) -> tuple[str, str]:
    name, equals, view = words.partition("=")
    if not equals:
        raise UsageError(f"`{words}` names no view; write `--let NAME=VIEW`")
    return name.strip(), view


def _written(
    answer: "pl.DataFrame", text: str, form: SqlFormat, *, rows: int, to: Path | None
) -> str | bytes:
    from selftime.reports import sql as queried
    from selftime.reports.tables import tabular

    if form is SqlFormat.csv:
        return tabular.as_csv(answer)
    if form is SqlFormat.parquet:
        return tabular.as_parquet(answer)
    if form is SqlFormat.json:
        return queried.as_json(answer, text)
    width = 80 if to is not None else writing.terminal_width()
    colour = writing.is_colourful() and to is None
    return queried.as_table(answer, width=width, rows=rows or None, colour=colour)
