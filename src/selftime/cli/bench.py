"""`selftime bench`: compare the speed of two programs, without a profiler."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.error_reporting import print_notice
from selftime.cli.shared_options import FORMAT_OPTION, OutputFile, parse_share
from selftime.errors import UsageError

if TYPE_CHECKING:  # NumPy stays out until a command runs
    from selftime.bench import Bench, BenchedProgram

_EXIT_STATUS_PROGRAM_FAILED: Final = 2
_EXIT_STATUS_IMPRECISE_RESULT: Final = 3
_EXIT_STATUS_INTERRUPTED: Final = 130


class OutputFormat(str, Enum):
    """Output formats of `selftime bench`."""

    text = "text"
    json = "json"
    markdown = "markdown"


class TimedUnit(str, Enum):
    """What to time: steps of the programs, or their processes from start to end."""

    step = "step"
    process = "process"


_TimedUnitOption: TypeAlias = Annotated[
    TimedUnit | None,
    typer.Option(help="What to compare; default: steps, or processes where there are none."),
]


_PrecisionOption: TypeAlias = Annotated[
    str,
    typer.Option(
        metavar="SHARE",
        help="Stop when the 95 % interval of the speed-up is at most this much to either side.",
    ),
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "bench",
        short_help="Compare the speed of two programs, without a profiler.",
        epilog="Example: selftime bench train.py train_fixed.py -- --epochs 1",
    )(bench)


def bench(  # noqa: PLR0913, PLR0917 - the command's options
    programs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[BEFORE AFTER] [-- ARGS]", help="Two scripts, and arguments for both."
        ),
    ] = None,
    before: Annotated[
        str | None, typer.Option(metavar="WORDS", help="The first program with its arguments.")
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="WORDS", help="The second; a module is `-m MODULE`.")
    ] = None,
    metric: _TimedUnitOption = None,
    precision: _PrecisionOption = "2%",
    max_rounds: Annotated[
        int, typer.Option(min=6, max=512, metavar="N", help="Runs of each program at most.")
    ] = 32,
    max_seconds: Annotated[
        float, typer.Option(min=1, metavar="S", help="Longest total time.")
    ] = 1800.0,
    output_format: Annotated[OutputFormat | None, FORMAT_OPTION] = None,
    output: OutputFile = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Compare the speed of two programs by running them alternately, without a profiler.

    They run until the 95 % interval of the speed-up is narrow enough. Their output is not shown; if
    one fails, the last line of its output is.

    The exit status is 0 if the requested precision was reached, 3 if not, and 2 for an error.
    """
    from selftime.bench import Limits
    from selftime.bench import bench as measure
    from selftime.bench.result import BenchMetric

    first, second = _parse_benched_programs(programs or [], before, after)
    asked = _parse_precision(precision)
    output_format = output_format or output_writing.format_for_file(output, OutputFormat.text)
    wanted = None if metric is None else BenchMetric(metric.value)
    limits = Limits(asked, max_rounds, max_seconds)
    with trace_reading.progress_bar("Timing", counts_bytes=False) as bar:
        shown = None if quiet else bar
        found = measure(first, second, metric=wanted, limits=limits, progress=shown)
    text = _bench_result_text(found, output_format, is_colourful=output is None)
    output_writing.write_output(text, to=output)
    _exit_with_status_of_bench_result(found, output)


def _parse_precision(text: str) -> float:
    share = parse_share("--precision", text)
    if share == 0:
        raise UsageError("`--precision` is 0, which cannot be reached; give a share such as `2%`")
    return share


def _bench_result_text(result: "Bench", output_format: OutputFormat, *, is_colourful: bool) -> str:
    from selftime.reports import bench as bench_report

    if output_format is OutputFormat.text:
        colour = is_colourful and output_writing.uses_colour()
        return bench_report.as_text(result, width=output_writing.terminal_width(), colour=colour)
    return (
        bench_report.as_json(result)
        if output_format is OutputFormat.json
        else bench_report.as_markdown(result)
    )


def _exit_with_status_of_bench_result(result: "Bench", output: Path | None) -> None:
    from selftime.bench.result import StopReason
    from selftime.reports.bench import bench_headline

    if output is not None:
        print_notice(f"{bench_headline(result)}; saved to `{output}`.")
    if result.failure is not None:
        kept = "are shown above" if output is None else f"are saved to `{output}`"
        print_notice(f"Error: {result.failure} ({len(result.rounds)} completed rounds {kept})")
        raise typer.Exit(_EXIT_STATUS_PROGRAM_FAILED)
    if result.stop is StopReason.interrupted:
        raise typer.Exit(_EXIT_STATUS_INTERRUPTED)
    if not result.is_precise:
        raise typer.Exit(_EXIT_STATUS_IMPRECISE_RESULT)


def _parse_benched_programs(
    arguments: list[str], before: str | None, after: str | None
) -> "tuple[BenchedProgram, BenchedProgram]":
    """Returns (first program, second program) from the arguments, or from `--before`, `--after`."""
    from selftime.bench import BenchedProgram

    if before is not None and after is not None and not arguments:
        return BenchedProgram.from_command_line(before), BenchedProgram.from_command_line(after)
    if before is None and after is None and len(arguments) > 1:
        first, second, *args = arguments
        return BenchedProgram.from_words([first, *args]), BenchedProgram.from_words([second, *args])
    raise UsageError(
        "name two scripts, as in `selftime bench before.py after.py -- ARGS`, or both programs "
        'with arguments, as in `selftime bench --before "train.py" --after "-m package.train"`'
    )
