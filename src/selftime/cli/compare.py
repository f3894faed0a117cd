"""`selftime compare`: what changed between two recordings."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.error_reporting import print_notice
from selftime.cli.shared_options import FORMAT_OPTION, OutputFile
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    import polars as pl

    from selftime.trace import Trace

_NAMES_OF_COMPARED_RECORDINGS: Final = ("before", "after")


class OutputFormat(str, Enum):
    """Output formats of `selftime compare`."""

    text = "text"
    json = "json"
    csv = "csv"
    html = "html"


class TableName(str, Enum):
    """Names of the tables that a comparison of two recordings contains."""

    steps = "steps"
    account = "account"
    parts = "parts"
    tree = "tree"
    kernels = "kernels"
    run_parts = "run_parts"
    run_steps = "run_steps"


class MetricName(str, Enum):
    """Kinds of time that the tree of modules and operators can compare, such as device time."""

    host = "host"
    device = "device"


class KernelGroupingName(str, Enum):
    """How the table of kernels groups its rows: by class of kernels, or by kernel name."""

    class_ = "class"
    name = "name"


_MoreRecordings: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="MORE...", help="Further ones, each compared with the first."),
]
_MetricOption: TypeAlias = Annotated[
    MetricName | None,
    typer.Option(help="Time that the module tree compares; default: device time if both have it."),
]
_KernelsOption: TypeAlias = Annotated[
    KernelGroupingName,
    typer.Option(help="Group the table of kernels by kernel class or by name."),
]
_RowsOption: TypeAlias = Annotated[
    int | None, typer.Option(min=0, help="Rows of a table; 0 is all. Default: 10, of CSV all.")
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "compare",
        short_help="Compare recordings: what changed, and how certain that is.",
        epilog="Example: selftime compare before.json.gz after.json.gz",
    )(compare)


def compare(  # noqa: PLR0913, PLR0917 - the command's options
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The first recording.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The second.")],
    more: _MoreRecordings = None,
    metric: _MetricOption = None,
    kernels: _KernelsOption = KernelGroupingName.class_,
    rank: Annotated[
        int | None, typer.Option(min=0, help="For jobs: the rank to compare; default: the lowest.")
    ] = None,
    rows: _RowsOption = None,
    table: Annotated[TableName, typer.Option(help="For CSV: the table.")] = TableName.tree,
    output_format: Annotated[OutputFormat | None, FORMAT_OPTION] = None,
    output: OutputFile = None,
) -> None:
    """Compare two recordings of a program, or more of them with the first.

    Prints the step times of host and device with the 95 % interval of the difference, the parts of
    a step, modules and operators matched by position and name, and kernels. Times are per step,
    differences are after minus before, and the rows of a table add up to the total difference. As
    HTML, writes one file about both recordings: the comparison with a difference flame graph, and
    the contents of `selftime report` without source lines. Where both have the ledger of their
    run, compares its parts and its steps too. Of three recordings and more, prints the times and
    counts of a step of each.
    """
    from selftime.compare import compare as compare_traces
    from selftime.reports.compare import as_json, as_text
    from selftime.reports.tables.tabular import as_csv

    output_format = output_format or output_writing.format_for_file(output, OutputFormat.text)
    if more:
        if metric is not None or rank is not None or output_format is OutputFormat.html:
            raise UsageError("`--metric`, `--rank` and html are for two recordings; name two")
        _compare_several([before, after, *more], output_format, output)
        return
    if output_format is OutputFormat.html:
        _write_comparison_html(before, after, rank, metric, output)
        return
    first, second = _read_two_traces(before, after, rank)
    output_writing.refuse_overwriting_inputs(output, (first.source, second.source))
    found = compare_traces(first, second, metric=metric and metric.value, kernels=kernels.value)  # type: ignore[arg-type]  # their words are the choices
    if output_format is OutputFormat.json:
        page = as_json(found)
    elif output_format is OutputFormat.csv:
        page = as_csv(_first_rows(found.tables()[table.value], rows))
    else:
        width = output_writing.terminal_width()
        colour = output is None and output_writing.uses_colour()
        page = as_text(found, width=width, rows=10 if rows is None else rows, colour=colour)
    output_writing.write_output(page, to=output)


def _compare_several(paths: list[str], output_format: OutputFormat, output: Path | None) -> None:
    """Writes what several recordings took, side by side."""
    from selftime.compare.several_recordings import compare_several
    from selftime.reports import several_recordings as report
    from selftime.reports.tables.tabular import as_csv

    traces = [trace_reading.read_only_trace(path) for path in paths]
    output_writing.refuse_overwriting_inputs(output, [trace.source for trace in traces])
    found = compare_several(traces)
    if output_format is OutputFormat.json:
        page = report.as_json(found)
    elif output_format is OutputFormat.csv:
        page = as_csv(found.measures)
    else:
        colour = output is None and output_writing.uses_colour()
        page = report.as_text(found, width=output_writing.terminal_width(), colour=colour)
    output_writing.write_output(page, to=output)


def _first_rows(table: "pl.DataFrame", rows: int | None) -> "pl.DataFrame":
    """Returns the first rows of a table; all of them if their number is not given, or 0."""
    return table.head(rows or table.height)


def _write_comparison_html(
    before: str, after: str, rank: int | None, metric: MetricName | None, output: Path | None
) -> None:
    """Writes an HTML file about two recordings that opens at their comparison."""
    from selftime.reports.html import Pair, as_html
    from selftime.reports.page_data.assets import assets

    if output is None:
        raise UsageError("html cannot be printed; write it to a file with `-o FILE`")
    assets()  # report a missing page before reading traces
    sides = _read_two_traces(before, after, rank)
    output_writing.refuse_overwriting_inputs(output, (one.source for one in sides))
    names = [
        f"{side}/{Path(one.source).name}"
        for side, one in zip(_NAMES_OF_COMPARED_RECORDINGS, sides, strict=True)
    ]
    pair = Pair(names[0], names[1], metric and metric.value)  # type: ignore[arg-type]  # their words are the choices
    with trace_reading.progress_bar("Writing", counts_bytes=False) as progress:
        page = as_html(
            dict(zip(names, sides, strict=True)), shows_source=False, pair=pair, progress=progress
        )
    output_writing.write_output(page, to=output)
    print_notice(f"selftime: comparison written to {output}")


def _read_two_traces(before: str, after: str, rank: int | None) -> "tuple[Trace, Trace]":
    """Returns the traces before and after a change; for multi-rank jobs, those of one rank."""
    sides = [trace_reading.read_traces(path) for path in (before, after)]
    if rank is None and all(len(side) == 1 for side in sides):
        first, second = (next(iter(side.values())) for side in sides)
        return first, second
    ranked = [_newest_trace_by_rank(side) for side in sides]
    common = sorted(ranked[0].keys() & ranked[1].keys())
    if not common or (rank is not None and rank not in common):
        wanted = (
            f"rank {rank} in both recordings" if rank is not None else "a rank in both recordings"
        )
        told = [", ".join(map(str, sorted(side))) or "none" for side in ranked]
        raise UsageError(
            f"there is no trace of {wanted}: `{before}` has the ranks {told[0]}, `{after}` has "
            f"{told[1]}; name one file of each"
        )
    chosen = common[0] if rank is None else rank
    print_notice(f"Comparing rank {chosen}; `--rank` chooses another.")
    return ranked[0][chosen], ranked[1][chosen]


def _newest_trace_by_rank(traces: "dict[str, Trace]") -> "dict[int, Trace]":
    """Returns {rank: newest trace of that rank}."""
    from selftime.ingest.job_ranks import identity_of_trace, job_members

    members, _ = job_members({name: identity_of_trace(one) for name, one in traces.items()}, "")
    found: dict[int, Trace] = {}
    for name in sorted(traces, key=lambda name: traces[name].origin or 0):
        rank = members[name].rank
        if rank is not None:
            found[rank] = traces[name]
    return found
