"""`selftime bench`: two programs timed against each other, unprofiled."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from selftime.cli import reading, writing
from selftime.cli.arguments import share
from selftime.cli.boundary import say
from selftime.cli.options import FORMAT, OutputFile
from selftime.errors import UsageError

if TYPE_CHECKING:  # NumPy stays out until a command runs
    from selftime.bench import Bench, BenchedProgram

_FAILED: Final = 2
_CANNOT_TELL: Final = 3
_INTERRUPTED: Final = 130


class Format(str, Enum):
    """How the answer is written."""

    text = "text"
    json = "json"
    markdown = "markdown"


class What(str, Enum):
    """What is timed."""

    step = "step"
    process = "process"


_Metric: TypeAlias = Annotated[
    What | None,
    typer.Option(help="What to compare; default: steps, or processes where there are none."),
]


def join(app: typer.Typer) -> None:
    app.command(
        "bench",
        short_help="Time two programs against each other, unprofiled, in turn.",
        epilog="Example: selftime bench train.py train_fixed.py -- --epochs 1",
    )(bench)


def bench(  # noqa: PLR0913, PLR0917 - the command's options
    programs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[BEFORE AFTER] [-- ARGS]", help="Two scripts, and words for both."),
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="WORDS", help="The first program with its words.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="WORDS", help="The second; a module is `-m MODULE`.")
    ] = None,
    metric: _Metric = None,
    precision: Annotated[
        str, typer.Option(metavar="SHARE", help="Stop at this half-width of the interval.")
    ] = "2%",
    max_rounds: Annotated[
        int, typer.Option(min=6, max=512, metavar="N", help="Runs of each program at most.")
    ] = 32,
    max_seconds: Annotated[
        float, typer.Option(min=1, metavar="S", help="Longest time for all of it.")
    ] = 1800.0,
    form: Annotated[Format | None, FORMAT] = None,
    output: OutputFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Time two programs against each other: as they are, in turn, nothing recorded.

    They run until the 95 % interval of the speed-up is narrow enough. What they print is shown
    nowhere; of one that fails the last line is told.

    The exit status is 0 if it is as precise as asked, 3 if not, and 2 for an error.
    """
    from selftime.bench import Limits
    from selftime.bench import bench as measure
    from selftime.bench.result import Metric

    first, second = _programs(programs or [], before, after)
    asked = share("--precision", precision)
    if asked == 0:
        raise UsageError("`--precision` is 0, which no number of runs reaches; write such as `2%`")
    form = form or writing.format_of(output, Format.text)
    limits = Limits(asked, max_rounds, max_seconds)
    wanted = None if metric is None else Metric(metric.value)
    with reading.bar("Timing", counts_bytes=False) as bar:
        shown = None if quiet else bar
        found = measure(first, second, metric=wanted, limits=limits, progress=shown)
    writing.write(_page(found, form, is_colourful=output is None), to=output)
    _end(found, output)


def _page(found: "Bench", form: Format, *, is_colourful: bool) -> str:
    from selftime.reports import bench as benched

    if form is Format.text:
        colour = is_colourful and writing.is_colourful()
        return benched.as_text(found, width=writing.terminal_width(), colour=colour)
    return benched.as_json(found) if form is Format.json else benched.as_markdown(found)


def _end(found: "Bench", output: Path | None) -> None:
    from selftime.bench.result import Stop
    from selftime.reports.bench import headline

    if output is not None:
        say(f"{headline(found)}; all of it is in `{output}`.")
    if found.failure is not None:
        kept = "what was measured before is told" if output is None else f"is in `{output}`"
        say(f"Error: {found.failure} ({len(found.rounds)} rounds were whole; {kept})")
        raise typer.Exit(_FAILED)
    if found.stop is Stop.interrupted:
        raise typer.Exit(_INTERRUPTED)
    if not found.is_precise:
        raise typer.Exit(_CANNOT_TELL)


def _programs(
    words: list[str], before: str | None, after: str | None
) -> "tuple[BenchedProgram, BenchedProgram]":
    """The programs, by either way of naming them."""
    from selftime.bench import BenchedProgram

    if before is not None and after is not None and not words:
        return BenchedProgram.of_text(before), BenchedProgram.of_text(after)
    if before is None and after is None and len(words) > 1:
        first, second, *args = words
        return BenchedProgram.of_words([first, *args]), BenchedProgram.of_words([second, *args])
    raise UsageError(
        "name two scripts, as in `selftime bench before.py after.py -- ARGS`, or both programs "
        'with their words, as in `selftime bench --before "train.py" --after "-m package.train"`'
    )
