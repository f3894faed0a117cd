"""`selftime view`: one table of a trace; each view is a command with the view's own options."""

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

from selftime.cli import reading, writing
from selftime.cli.boundary import say
from selftime.cli.engines import EngineName, engine_of, tell_ranks, view_ranks
from selftime.cli.options import FORMAT, ROWS, OutputFile, PrintedRows, TraceName, TracePath
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    import polars as pl

    from selftime.schema import Column
    from selftime.trace import Trace
    from selftime.views import Option, View


class Format(str, Enum):
    """How the table is written."""

    table = "table"
    csv = "csv"
    json = "json"
    parquet = "parquet"
    folded = "folded"


def _shared(  # noqa: PLR0913, PLR0917 - the command's options
    path: TracePath,
    form: Annotated[Format | None, FORMAT] = None,
    output: OutputFile = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only these columns, in this order."),
    ] = None,
    rows: PrintedRows = ROWS,
    trace: TraceName = None,
    engine: Annotated[
        EngineName | None,
        typer.Option(help="What reads a job's ranks: one table of all, by rank."),
    ] = None,
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster; default: RAY_ADDRESS, or this machine.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Ranks to read at once; default: cores.")
    ] = None,
) -> None:
    """What every view's command takes besides the view's own options."""


OPTIONS: Final = frozenset(
    {"address", "columns", "engine", "format", "help", "output", "rows", "trace", "workers"}
)
"""Words of the command itself, which no view may take for an option of its own."""


def join(app: typer.Typer) -> None:
    views = typer.Typer(
        cls=_Views,
        rich_markup_mode=None,
        no_args_is_help=True,
        subcommand_metavar="NAME PATH [OPTIONS]",
        epilog="Example: selftime view operators selftime-runs --format csv -o operators.csv",
    )
    app.add_typer(views, name="view", help="Print one table of a trace, or write it to a file.")


class _Views(TyperGroup):
    """One command for each view, made when it is asked for: views load polars."""

    def list_commands(self, _ctx: Any) -> list[str]:
        from selftime.views import VIEWS

        return sorted(VIEWS)

    def get_command(self, _ctx: Any, cmd_name: str) -> Any:
        from selftime.views import find

        return _command(find(cmd_name))


def _command(view: "View[Any]") -> Any:
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    example = f"Example: selftime view {view.name} selftime-runs"
    alone.command(
        view.name,
        help=_page(view),
        short_help=view.title,
        epilog=example,
        context_settings={"help_option_names": ["-h", "--help"]},
    )(_function(view))
    return typer.main.get_command(alone)


def _page(view: "View[Any]") -> str:
    """The view's documentation, and what each of its columns is."""
    widest = max((len(column.name) for column in view.columns), default=0)
    hanging = " " * (widest + 4)
    lines = [
        fill(f"{c.name:{widest}}  {c.doc}", 78, initial_indent="  ", subsequent_indent=hanging)
        for c in view.columns
    ]
    return "\n\n".join([view.doc, "\b\n" + "\n".join(["Columns:", *lines])])


def _function(view: "View[Any]") -> Callable[..., None]:
    """A function with the view's options in its signature, for the command to be read from."""

    def show(**given: Any) -> None:
        words = {name: given[name] for name in view.options if given[name] is not None}
        shared = {name: value for name, value in given.items() if name not in view.options}
        _show(view, view.read(words), _Asked(**shared))

    shared = list(inspect.signature(_shared).parameters.values())
    own = [_parameter(option) for option in view.options.values()]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*shared, *own)]
    show.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by inspect
    show.__annotations__ = {p.name: p.annotation for p in parameters}
    return show


def _parameter(option: "Option") -> inspect.Parameter:
    """The option as a word that `View.read` understands, whatever its type."""
    is_told = option.default not in (None, "")
    annotation = Annotated[
        str | None,
        typer.Option(
            f"--{option.name.replace('_', '-')}",
            metavar="|".join(option.choices) or _metavar(option),
            help=f"Default: {str(option.default).lower()}." if is_told else "",
        ),
    ]
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(option.name, kind, default=None, annotation=annotation)


def _metavar(option: "Option") -> str:
    if isinstance(option.default, bool):
        return "true|false"
    return "N" if isinstance(option.default, int | float) else "TEXT"


@dataclass(frozen=True, slots=True)
class _Asked:
    """The words of `_shared`, read."""

    path: str
    form: Format | None
    output: Path | None
    columns: str | None
    rows: int
    trace: str | None
    engine: EngineName | None
    address: str | None
    workers: int | None


def _show(view: "View[Any]", options: dict[str, Any], asked: _Asked) -> None:
    form = asked.form or writing.format_of(asked.output, Format.table)
    if view.across or asked.engine is not None:
        columns, tables, tell = _of_ranks(view, options, asked)
    else:
        columns, tables, tell = _of_each(view, options, asked)
    if form is Format.table:
        page: str | bytes = _printed(
            columns, tables, rows=asked.rows, to_file=asked.output is not None
        )
    else:
        page = _written(view, columns, tables, form, options)
    writing.write(page, to=asked.output)
    tell()


_Shown: TypeAlias = "tuple[tuple[Column, ...], dict[str, pl.DataFrame], Callable[[], None]]"
"""Columns, tables by the name of their trace, and what tells of them when they are written."""


def _of_each(view: "View[Any]", options: dict[str, Any], asked: _Asked) -> _Shown:
    """A table for each trace."""
    if asked.address is not None or asked.workers is not None:
        raise UsageError("`--address` and `--workers` are an engine's: add `--engine local` or ray")
    columns = _chosen(view.name, view.columns, asked.columns)
    traces = reading.read_traces(asked.path, choice=asked.trace)
    named = [column.name for column in columns]
    tables = {name: view(one, **options).select(named) for name, one in traces.items()}

    def tell() -> None:
        _tell_lacks(view, traces)
        reading.tell_doubts(traces)

    return columns, tables, tell


def _of_ranks(view: "View[Any]", options: dict[str, Any], asked: _Asked) -> _Shown:
    """One table of all ranks, by an engine."""
    from selftime.views import OF_RANK

    engine = engine_of(asked.engine, asked.address, asked.workers)
    every = view.columns if view.across else (*OF_RANK, *view.columns)
    columns = _chosen(view.name, every, asked.columns)
    found = view_ranks(view, options, asked.path, choice=asked.trace, engine=engine)
    table = found.table.select([column.name for column in columns])
    return columns, {asked.path: table}, lambda: tell_ranks(view, found, asked.path)


def _tell_lacks(view: "View[Any]", traces: "dict[str, Trace]") -> None:
    """Why a table is empty or less than whole, on stderr: what the recording lacks."""
    for name, trace in traces.items():
        lacks = [] if reading.is_foreign(trace) else view.lacks(trace)
        for lack in lacks:
            say(f"`{view.name}` of `{name}` lacks {lack}")


def _chosen(view: str, columns: "tuple[Column, ...]", words: str | None) -> "tuple[Column, ...]":
    """The columns that were asked for, in that order; all of them if none was named."""
    if words is None:
        return columns
    declared = {column.name: column for column in columns}
    asked = dict.fromkeys(word.strip() for word in words.split(","))
    unknown = [name for name in asked if name not in declared]
    if unknown:
        raise UsageError(f"`{view}` has no column `{unknown[0]}`; it has {', '.join(declared)}")
    return tuple(declared[name] for name in asked)


def _printed(
    columns: "tuple[Column, ...]",
    tables: "dict[str, pl.DataFrame]",
    *,
    rows: int,
    to_file: bool,
) -> str:
    from selftime.reports.plain import plain
    from selftime.reports.tables.table import as_text

    width = 80 if to_file else writing.terminal_width()
    colour = writing.is_colourful() and not to_file
    pages = {
        name: as_text(
            table, columns, width=width, rows=rows or None, colour=colour, root=str(Path.cwd())
        )
        for name, table in tables.items()
    }
    if len(pages) == 1:
        return next(iter(pages.values()))
    return "\n".join(f"{plain(name)}\n{page}" for name, page in pages.items())


def _written(
    view: "View[Any]",
    columns: "tuple[Column, ...]",
    tables: "dict[str, pl.DataFrame]",
    form: Format,
    options: dict[str, Any],
) -> str | bytes:
    from selftime.reports.tables import tabular

    table, columns = _one(columns, tables)
    if form is Format.folded:
        return _folded(view, table)
    if form is Format.csv:
        return tabular.as_csv(table)
    if form is Format.parquet:
        return tabular.as_parquet(table)
    defaults = {name: option.default for name, option in view.options.items()}
    return tabular.as_json(table, columns, view=view.name, options={**defaults, **options})


def _folded(view: "View[Any]", table: "pl.DataFrame") -> str:
    """One line a stack, with its own nanoseconds, as programs for flame graphs read it."""
    from selftime.reports.exports.stacks import as_folded

    if not {"trace", "rank"}.isdisjoint(table.columns):
        raise UsageError("folded stacks are of one trace; choose one with `--trace NAME`")
    lacking = {"name", "parent", "self_time"} - set(table.columns)
    if lacking:
        raise UsageError(
            f"`{view.name}` has no stacks to fold; write `selftime view flame PATH "
            "--min-share 0 --format folded`, without `--columns`"
        )
    return as_folded(table)


def _one(
    columns: "tuple[Column, ...]", tables: "dict[str, pl.DataFrame]"
) -> "tuple[pl.DataFrame, tuple[Column, ...]]":
    """The only table, or all below one another with the trace's name in a column before."""
    if len(tables) == 1:
        return next(iter(tables.values())), columns
    import polars as pl

    from selftime.schema import Column

    named = [t.select(pl.lit(name).alias("trace"), pl.all()) for name, t in tables.items()]
    column = Column("trace", pl.String, "text", "The trace that the row comes from.")
    return pl.concat(named), (column, *columns)
