"""`selftime view`: prints a table of a trace; each view is a subcommand with its own options."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer
from typer.core import TyperGroup

from selftime.cli import output_writing, trace_reading
from selftime.cli.error_reporting import print_notice
from selftime.cli.shared_options import (
    DEFAULT_PRINTED_ROWS,
    FORMAT_OPTION,
    OutputFile,
    PrintedRows,
    TraceName,
    TracePath,
)
from selftime.cli.trace_reading import (
    EngineName,
    compute_view_of_ranks,
    make_rank_engine,
    report_problems_of_ranks,
)
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    import polars as pl

    from selftime.schema import Column
    from selftime.trace import Trace
    from selftime.views import Option, View


class OutputFormat(str, Enum):
    """Output formats of `selftime view`."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    folded = "folded"


def _declare_common_options(  # noqa: PLR0913, PLR0917 - the command's options
    path: TracePath,
    output_format: Annotated[OutputFormat | None, FORMAT_OPTION] = None,
    output: OutputFile = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only these columns, in this order."),
    ] = None,
    rows: PrintedRows = DEFAULT_PRINTED_ROWS,
    trace_name: TraceName = None,
    engine: Annotated[
        EngineName | None,
        typer.Option(help="Read the ranks of a job with this engine, into one table."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Address of the Ray cluster; default: RAY_ADDRESS, or this machine."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Ranks to read at once; default: the number of cores."
        ),
    ] = None,
) -> None:
    """Declares, for Typer, the options that all `selftime view NAME` commands have."""


RESERVED_VIEW_OPTION_NAMES: Final = frozenset(
    {"address", "columns", "engine", "format", "help", "output", "rows", "trace", "workers"}
)
"""Names of the options that all `selftime view NAME` commands have; a view's own options must
have other names."""


def add_command(app: typer.Typer) -> None:
    views = typer.Typer(
        cls=_ViewGroup,
        rich_markup_mode=None,
        no_args_is_help=True,
        subcommand_metavar="NAME PATH [OPTIONS]",
        epilog="Example: selftime view operators selftime-runs --format csv -o operators.csv",
    )
    app.add_typer(views, name="view", help="Print one table of a trace, or write it to a file.")


class _ViewGroup(TyperGroup):
    """The subcommands of `selftime view`, created when needed, since importing views is slow."""

    def list_commands(self, _ctx: Any) -> list[str]:
        from selftime.views import VIEWS

        return sorted(VIEWS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        from selftime.views import find_view

        return _click_command_of_view(find_view(cmd_name))


def _click_command_of_view(view: "View[Any]") -> Any:
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    example = f"Example: selftime view {view.name} selftime-runs"
    alone.command(
        view.name,
        help=_view_help_text(view),
        short_help=view.title,
        epilog=example,
        context_settings={"help_option_names": ["-h", "--help"]},
    )(_command_function_of_view(view))
    return typer.main.get_command(alone)


def _view_help_text(view: "View[Any]") -> str:
    """Returns the help text of a view's command: its documentation and its columns."""
    widest = max((len(column.name) for column in view.columns), default=0)
    hanging = " " * (widest + 4)
    lines = [
        fill(f"{c.name:{widest}}  {c.doc}", 78, initial_indent="  ", subsequent_indent=hanging)
        for c in view.columns
    ]
    return "\n\n".join([view.doc, "\b\n" + "\n".join(["Columns:", *lines])])


def _command_function_of_view(view: "View[Any]") -> Callable[..., None]:
    """Returns a function for Typer that prints a view; its parameters are the view's options."""

    def print_view_with_options(**values: Any) -> None:
        texts = {name: values[name] for name in view.options if values[name] is not None}
        shared = {name: value for name, value in values.items() if name not in view.options}
        _print_view(view, view.parse_options(texts), _OptionsOfEveryViewCommand(**shared))

    shared = list(inspect.signature(_declare_common_options).parameters.values())
    own = [_parameter_of_view_option(option) for option in view.options.values()]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*shared, *own)]
    print_view_with_options.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
    print_view_with_options.__annotations__ = {p.name: p.annotation for p in parameters}
    return print_view_with_options


def _parameter_of_view_option(option: "Option") -> inspect.Parameter:
    """Returns a view's option as a function parameter for Typer, with a value of type `str`."""
    has_default = option.default not in (None, "")
    annotation = Annotated[
        str | None,
        typer.Option(
            f"--{option.name.replace('_', '-')}",
            metavar="|".join(option.choices) or _option_value_placeholder(option),
            help=f"Default: {str(option.default).lower()}." if has_default else "",
        ),
    ]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.name, kind, default=None, annotation=annotation)


def _option_value_placeholder(option: "Option") -> str:
    if isinstance(option.default, bool):
        return "true|false"
    return "N" if isinstance(option.default, int | float) else "TEXT"


@dataclass(frozen=True, slots=True)
class _OptionsOfEveryViewCommand:
    """Values of the options that all `selftime view NAME` commands have."""

    path: str
    output_format: OutputFormat | None
    output: Path | None
    columns: str | None
    rows: int
    trace_name: str | None
    engine: EngineName | None
    address: str | None
    workers: int | None


def _print_view(
    view: "View[Any]", options: dict[str, Any], common: _OptionsOfEveryViewCommand
) -> None:
    output_format = common.output_format or output_writing.format_for_file(
        common.output, OutputFormat.table
    )
    if view.compares_ranks or common.engine is not None:
        columns, tables, print_trace_notes = _view_table_of_ranks(view, options, common)
    else:
        columns, tables, print_trace_notes = _view_tables_of_traces(view, options, common)
    if output_format is OutputFormat.table:
        page: str | bytes = _view_tables_text(
            columns, tables, max_rows=common.rows, is_for_file=common.output is not None
        )
    else:
        page = _view_file_content(view, columns, tables, output_format, options)
    output_writing.write_output(page, to=common.output)
    print_trace_notes()


_ViewTables: TypeAlias = "tuple[tuple[Column, ...], dict[str, pl.DataFrame], Callable[[], None]]"
"""(columns, {trace name: table}, function that prints notes about the traces)."""


def _view_tables_of_traces(
    view: "View[Any]", options: dict[str, Any], common: _OptionsOfEveryViewCommand
) -> _ViewTables:
    """Computes a view; returns columns, {trace name: table}, and a function that prints notes."""
    if common.address is not None or common.workers is not None:
        raise UsageError(
            "`--address` and `--workers` need an engine: add `--engine local` or `--engine ray`"
        )
    columns = _columns_named_in_list(view.name, view.columns, common.columns)
    traces = trace_reading.read_traces(common.path, name_part=common.trace_name)
    output_writing.refuse_overwriting_inputs(common.output, (one.source for one in traces.values()))
    named = [column.name for column in columns]
    tables = {name: view(one, **options).select(named) for name, one in traces.items()}

    def print_trace_notes() -> None:
        _report_missing_data(view, traces)
        trace_reading.report_damaged_traces(traces)

    return columns, tables, print_trace_notes


def _view_table_of_ranks(
    view: "View[Any]", options: dict[str, Any], common: _OptionsOfEveryViewCommand
) -> _ViewTables:
    """Computes a view of all ranks of a job; returns columns, one table, and a notes function."""
    from selftime.views import RANK_COLUMNS

    engine = make_rank_engine(common.engine, common.address, common.workers)
    every = view.columns if view.compares_ranks else (*RANK_COLUMNS, *view.columns)
    columns = _columns_named_in_list(view.name, every, common.columns)
    job_view = compute_view_of_ranks(
        view, options, common.path, name_part=common.trace_name, engine=engine
    )
    output_writing.refuse_overwriting_inputs(common.output, job_view.outlines)
    table = job_view.table.select([column.name for column in columns])
    return (
        columns,
        {common.path: table},
        lambda: report_problems_of_ranks(view, job_view, common.path),
    )


def _report_missing_data(view: "View[Any]", traces: "dict[str, Trace]") -> None:
    """Prints a line to stderr for each kind of data that a view needs but a trace lacks."""
    for name, trace in traces.items():
        lacks = [] if trace_reading.lacks_profiler_events(trace) else view.missing_data(trace)
        for lack in lacks:
            print_notice(f"`{view.name}` of `{name}` lacks {lack}")


def _columns_named_in_list(
    view_name: str, columns: "tuple[Column, ...]", column_list: str | None
) -> "tuple[Column, ...]":
    """Returns the columns that a text such as `name,calls` lists, in its order; all for None."""
    if column_list is None:
        return columns
    declared = {column.name: column for column in columns}
    requested = dict.fromkeys(name.strip() for name in column_list.split(","))
    unknown = [name for name in requested if name not in declared]
    if unknown:
        raise UsageError(
            f"`{view_name}` has no column `{unknown[0]}`; it has {', '.join(declared)}"
        )
    return tuple(declared[name] for name in requested)


def _view_tables_text(
    columns: "tuple[Column, ...]",
    tables: "dict[str, pl.DataFrame]",
    *,
    max_rows: int,
    is_for_file: bool,
) -> str:
    from selftime.reports.plain import plain
    from selftime.reports.tables.text_table import as_text

    width = 80 if is_for_file else output_writing.terminal_width()
    colour = output_writing.uses_colour() and not is_for_file
    pages = {
        name: as_text(
            table, columns, width=width, rows=max_rows or None, colour=colour, root=str(Path.cwd())
        )
        for name, table in tables.items()
    }
    if len(pages) == 1:
        return next(iter(pages.values()))
    return "\n".join(f"{plain(name)}\n{page}" for name, page in pages.items())


def _view_file_content(
    view: "View[Any]",
    columns: "tuple[Column, ...]",
    tables: "dict[str, pl.DataFrame]",
    output_format: OutputFormat,
    options: dict[str, Any],
) -> str | bytes:
    from selftime.reports.tables import tabular

    table, columns = _concatenate_view_tables(columns, tables)
    if output_format is OutputFormat.folded:
        return _folded_stacks_of_flame_view(view, table)
    if output_format is OutputFormat.csv:
        return tabular.as_csv(table)
    if output_format is OutputFormat.parquet:
        return tabular.as_parquet(table)
    defaults = {name: option.default for name, option in view.options.items()}
    return tabular.as_json(table, columns, view=view.name, options={**defaults, **options})


def _folded_stacks_of_flame_view(view: "View[Any]", table: "pl.DataFrame") -> str:
    """Returns the view `flame` as folded stacks, `frame;frame;… value`, one line per stack."""
    from selftime.reports.export.folded_stacks import as_folded_stacks

    if not {"trace", "rank"}.isdisjoint(table.columns):
        raise UsageError("folded stacks can hold one trace only; choose one with `--trace NAME`")
    lacking = {"name", "parent", "self_time"} - set(table.columns)
    if lacking:
        raise UsageError(
            f"`{view.name}` has no stacks to fold; write `selftime view flame PATH "
            "--min-share 0 --format folded`, without `--columns`"
        )
    return as_folded_stacks(table)


def _concatenate_view_tables(
    columns: "tuple[Column, ...]", tables: "dict[str, pl.DataFrame]"
) -> "tuple[pl.DataFrame, tuple[Column, ...]]":
    """Returns tables of several traces as one with a column `trace`; a single table unchanged."""
    if len(tables) == 1:
        return next(iter(tables.values())), columns
    import polars as pl

    from selftime.schema import Column

    named = [t.select(pl.lit(name).alias("trace"), pl.all()) for name, t in tables.items()]
    column = Column("trace", pl.String, "text", "The trace that the row comes from.")
    return pl.concat(named), (column, *columns)
