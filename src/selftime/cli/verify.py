"""`selftime verify`: compare the time that a fix saved with the predicted time."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import typer

from selftime.cli import output_writing, trace_reading
from selftime.errors import SelftimeError

if TYPE_CHECKING:  # NumPy stays out until a command runs
    from selftime.advice.verify import ResultComparer
    from selftime.bench import Bench
    from selftime.trace import Trace

_EXIT_STATUS_BY_VERDICT: Final = {"differs": 1, "unknown": 3}


class OutputFormat(str, Enum):
    """Output formats of `selftime verify`."""

    text = "text"
    json = "json"


FindingOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--finding",
        metavar="ID",
        help="The id or rule of the finding that was repaired; by default all that are gone.",
    ),
]


ResultsOption: TypeAlias = Annotated[
    bool,
    typer.Option("--results", help="Also compare what both computed; record with `run --results`."),
]
RepeatOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="TRACE", help="Another recording of BEFORE: how far it repeats its results."
    ),
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "verify",
        short_help="Compare what a fix saved with what was predicted.",
        epilog="Example: selftime verify before.json.gz after.json.gz",
    )(verify)


def verify(  # noqa: PLR0913, PLR0917 - a command's options are its arguments
    before: Annotated[str, typer.Argument(metavar="BEFORE", help="The trace with the finding.")],
    after: Annotated[str, typer.Argument(metavar="AFTER", help="The trace after the fix.")],
    bench_file: Annotated[
        Path | None,
        typer.Option(
            "--bench",
            metavar="FILE",
            help="A JSON file that `selftime bench -o` wrote about both programs.",
        ),
    ] = None,
    finding: FindingOption = None,
    results: ResultsOption = False,
    repeat: RepeatOption = None,
    output_format: Annotated[
        OutputFormat, typer.Option("--format", help="Output format.")
    ] = OutputFormat.text,
    log_file: Annotated[
        Path | None,
        typer.Option(
            "--keep", metavar="FILE", help="Append the result to this file, as a line of JSON."
        ),
    ] = None,
) -> None:
    """Compare the time that a fix saved with the prediction of the findings that it removed.

    With `--finding`, hold it against the promise of that finding alone. With `--bench`, also
    compare the step times without the profiler from `selftime bench`.

    With `--results`, the exit status is 0 if both programs computed the same as far as the repair
    promises, 1 if not, and 3 if that cannot be told.
    """
    from selftime.advice import verify as advice_verify
    from selftime.reports.verify import as_text

    timed = None if bench_file is None else _read_bench_file(bench_file)
    traces = trace_reading.read_only_trace(before), trace_reading.read_only_trace(after)
    comparer = _result_comparer(*traces, repeat) if results or repeat is not None else None
    found = advice_verify.verify(*traces, timed, finding, comparer)
    line = found.to_json() + "\n"
    if output_format is OutputFormat.json:
        output_writing.write_output(line)
    else:
        output_writing.write_output(
            as_text(found, width=output_writing.terminal_width(), root=str(Path.cwd()))
        )
    if log_file is not None:
        _append_line_to_file(log_file, line)
    if found.results is not None and found.results.verdict in _EXIT_STATUS_BY_VERDICT:
        raise typer.Exit(_EXIT_STATUS_BY_VERDICT[found.results.verdict])


def _result_comparer(before: "Trace", after: "Trace", repeat: str | None) -> "ResultComparer":
    from functools import partial

    from selftime.compare.results.result_comparison import compare_results

    repeated = None if repeat is None else trace_reading.read_only_trace(repeat)
    return partial(compare_results, before, after, repeated=repeated)


def _read_bench_file(file: Path) -> "Bench":
    from selftime.bench.result import read_bench

    return read_bench(file)


def _append_line_to_file(file: Path, line: str) -> None:
    try:
        with file.open("a", encoding="utf-8") as kept:
            kept.write(line)
    except OSError as error:
        raise SelftimeError(
            f"`{file}` cannot be written: {error.strerror}; choose another path with `--keep`"
        ) from error
