"""`selftime compare`: two recordings held against each other."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from selftime.cli import reading, report, writing
from selftime.cli.boundary import say
from selftime.cli.options import FORMAT, OutputFile
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.trace import Trace

_SIDES: Final = ("before", "after")


class Format(str, Enum):
    """How the answer is written."""

    text = "text"
    json = "json"
    csv = "csv"
    html = "html"


class Part(str, Enum):
    """One of the tables."""

    steps = "steps"
    parts = "parts"
    tree = "tree"
    kernels = "kernels"


class MetricName(str, Enum):
    """Whose time the tree compares."""

    host = "host"
    device = "device"


class Rows(str, Enum):
    """What a row of kernels is."""

    class_ = "class"
    name = "name"


def join(app: typer.Typer) -> None:
    app.command(
        "compare",
        short_help="Compare two recordings: what changed, and how certain that is.",
        epilog="Example: selftime compare before.json.gz after.json.gz",
    )(compare)


def compare(  # noqa: PLR0913, PLR0917 - the command's options
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The first recording.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The second.")],
    metric: Annotated[
        MetricName | None,
        typer.Option(help="Whose time the tree compares; default: device, if both used one."),
    ] = None,
    kernels: Annotated[Rows, typer.Option(help="What a row of kernels is.")] = Rows.class_,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Of jobs: the rank to compare; default: the least.")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="Rows of each table; 0 prints all.")] = 10,
    table: Annotated[Part, typer.Option(help="Of CSV: which table.")] = Part.tree,
    form: Annotated[Format | None, FORMAT] = None,
    output: OutputFile = None,
) -> None:
    """Compare two recordings of a program.

    First the steps, on host and device, with the 95 % interval of the difference; then what a step
    is made of; then modules and operators, joined by where they are and what they are called; then
    kernels. Times are of a step, differences after less before, and the rows of a table add up to
    the whole difference. As HTML it is one file with both recordings, to open or to send: the
    comparison with a difference flame graph, and all that `selftime report` has but source lines.
    """
    from selftime.compare import compare as hold
    from selftime.reports.compare import as_json, as_text
    from selftime.reports.tables.tabular import as_csv

    form = form or writing.format_of(output, Format.text)
    if form is Format.html:
        _to_file(before, after, rank, metric, output)
        return
    first, second = _pair(before, after, rank)
    found = hold(first, second, metric=metric and metric.value, kernels=kernels.value)  # type: ignore[arg-type]  # their words are the choices
    if form is Format.json:
        page = as_json(found)
    elif form is Format.csv:
        page = as_csv(found.tables()[table.value])
    else:
        width = writing.terminal_width()
        colour = output is None and writing.is_colourful()
        page = as_text(found, width=width, rows=rows, colour=colour)
    writing.write(page, to=output)


def _to_file(
    before: str, after: str, rank: int | None, metric: MetricName | None, output: Path | None
) -> None:
    """One HTML file with both recordings, the comparison first."""
    from selftime.reports.html import Pair, as_html
    from selftime.reports.page_data.assets import assets

    if output is None:
        raise UsageError("html is a page for a browser; write it to a file with `-o FILE`")
    assets()  # so that a page that is not built is told before a trace is read
    sides = _pair(before, after, rank)
    report.spare(sides, output)
    names = [f"{side}/{Path(one.source).name}" for side, one in zip(_SIDES, sides, strict=True)]
    pair = Pair(names[0], names[1], metric and metric.value)  # type: ignore[arg-type]  # their words are the choices
    with reading.bar("Writing", counts_bytes=False) as progress:
        page = as_html(
            dict(zip(names, sides, strict=True)), shows_source=False, pair=pair, progress=progress
        )
    writing.write(page, to=output)
    say(f"selftime: comparison written to {output}")


def _pair(before: str, after: str, rank: int | None) -> "tuple[Trace, Trace]":
    """The two traces; of jobs those of one rank."""
    sides = [reading.read_traces(path) for path in (before, after)]
    if rank is None and all(len(side) == 1 for side in sides):
        first, second = (next(iter(side.values())) for side in sides)
        return first, second
    ranked = [_by_rank(side) for side in sides]
    common = sorted(ranked[0].keys() & ranked[1].keys())
    if not common or (rank is not None and rank not in common):
        asked = f"rank {rank} of both" if rank is not None else "a rank that both have"
        told = [", ".join(map(str, sorted(side))) or "none that is told" for side in ranked]
        raise UsageError(
            f"there is no trace of {asked}: `{before}` has the ranks {told[0]}, `{after}` has "
            f"{told[1]}; name one file of each"
        )
    chosen = common[0] if rank is None else rank
    say(f"Compared is rank {chosen}; `--rank` chooses another.")
    return ranked[0][chosen], ranked[1][chosen]


def _by_rank(traces: "dict[str, Trace]") -> "dict[int, Trace]":
    """The latest trace of each rank."""
    from selftime.ingest.ranks import identity_of, members_of

    members, _ = members_of({name: identity_of(one) for name, one in traces.items()}, "")
    found: dict[int, Trace] = {}
    for name in sorted(traces, key=lambda name: traces[name].origin or 0):
        rank = members[name].rank
        if rank is not None:
            found[rank] = traces[name]
    return found
