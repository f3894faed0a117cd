"""`selftime sql`: query all tables and views of a trace with SQL."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from selftime.cli import output_writing, query_process, trace_reading
from selftime.cli.query_options import (
    QueryMemory,
    QuerySeconds,
    QueryThreads,
    limits_of_options,
)
from selftime.cli.shared_options import (
    DEFAULT_PRINTED_ROWS,
    FORMAT_OPTION,
    OutputFile,
    PrintedRows,
    TraceName,
    TracePath,
)
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    import polars as pl

    from selftime.trace import Job, Trace


class SqlFormat(str, Enum):
    """Output formats of `selftime sql`."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"


def add_command(app: typer.Typer) -> None:
    app.command(
        epilog='Example: selftime sql selftime-runs "select name, sum(duration) as total '
        'from slices group by name order by total desc limit 10"'
    )(sql)


def sql(  # noqa: PLR0913, PLR0917 - the command's options
    path: TracePath,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="A query that begins with `select` or `with`.")
    ],
    view_definitions: Annotated[
        list[str] | None,
        typer.Option(
            "--let",
            metavar="NAME=VIEW",
            help='Define a table from a view with options: --let "shapes=operators by=shape".',
        ),
    ] = None,
    output_format: Annotated[SqlFormat | None, FORMAT_OPTION] = None,
    output: OutputFile = None,
    rows: PrintedRows = DEFAULT_PRINTED_ROWS,
    trace_name: TraceName = None,
    query_seconds: QuerySeconds = None,
    query_memory: QueryMemory = None,
    query_threads: QueryThreads = None,
) -> None:
    """Query all tables and views of a trace with SQL.

    `show tables` lists them. Times are in nanoseconds, sizes in bytes. For a folder of several
    traces, rows have a column `trace`, and the table `members` describes each trace. A query that
    takes more time or memory than it may is stopped.
    """
    if query_threads is not None:  # Polars reads it while it is imported
        os.environ["POLARS_MAX_THREADS"] = str(query_threads)
    from selftime.sql import query as ask

    limits = limits_of_options(query_seconds, query_memory, query_threads)
    output_format = output_format or output_writing.format_for_file(output, SqlFormat.table)
    views = dict(_parse_view_definition(text) for text in view_definitions or [])
    traces = trace_reading.read_traces(path, name_part=trace_name)
    output_writing.refuse_overwriting_inputs(output, (one.source for one in traces.values()))
    subject = _only_trace_or_job(traces)
    for trace in traces.values():
        trace.tables()  # which are no memory of the query
    with query_process.held_to(limits):
        answer = ask(subject, query, views)
        text = _query_result_text(answer, query, output_format, max_rows=rows, output=output)
    output_writing.write_output(text, to=output)
    trace_reading.report_damaged_traces(traces)


def _only_trace_or_job(traces: "dict[str, Trace]") -> "Trace | Job":
    from selftime.ingest.job_ranks import identity_of_trace, job_members
    from selftime.trace import Job

    if len(traces) == 1:
        return next(iter(traces.values()))
    members, _ = job_members({name: identity_of_trace(one) for name, one in traces.items()}, "")
    return Job(traces, members=members)


def _parse_view_definition(definition: str) -> tuple[str, str]:
    name, equals, view = definition.partition("=")
    if not equals:
        raise UsageError(f"`{definition}` has no `=`; write `--let NAME=VIEW`")
    return name.strip(), view


def _query_result_text(
    result: "pl.DataFrame",
    query: str,
    output_format: SqlFormat,
    *,
    max_rows: int,
    output: Path | None,
) -> str | bytes:
    from selftime.reports import sql as sql_report
    from selftime.reports.tables import tabular

    if output_format is SqlFormat.csv:
        return tabular.as_csv(result)
    if output_format is SqlFormat.parquet:
        return tabular.as_parquet(result)
    if output_format is SqlFormat.json:
        return sql_report.as_json(result, query)
    width = 80 if output is not None else output_writing.terminal_width()
    colour = output_writing.uses_colour() and output is None
    return sql_report.as_table(result, width=width, rows=max_rows or None, colour=colour)
