"""`selftime check`: compares a recording's times and counts with a baseline or limits, for CI."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from selftime.cli import output_writing, trace_reading
from selftime.cli.error_reporting import print_notice
from selftime.cli.shared_options import FORMAT_OPTION, OutputFile, TraceName, parse_share
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.compare.check.limit_checks import RecordingCheck
    from selftime.trace import Trace


class OutputFormat(str, Enum):
    """Output formats of `selftime check`."""

    text = "text"
    json = "json"
    markdown = "markdown"
    sarif = "sarif"
    junit = "junit"


_NO_BASELINE_OR_BUDGET_MESSAGE: Final = (
    "there is nothing to check against: give `--baseline FILE` (`--write-baseline` writes one), "
    "or `--budget NAME=MOST`, or `[tool.selftime.budgets]` in pyproject.toml"
)
_BudgetOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="NAME=MOST",
        help="Limit of a measure for a step or the run; repeat for several.",
    ),
]
_ConfigFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="TOML file with `[tool.selftime.budgets]`; default: pyproject.toml.",
    ),
]
_NewBaselineFileOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--write-baseline",
        metavar="FILE",
        help="Write this recording's measures as a baseline, without a check.",
    ),
]


def add_command(app: typer.Typer) -> None:
    app.command(
        "check",
        short_help=(
            "Check a recording against limits; exit status 0 within, 1 above one, 3 unknown."
        ),
        epilog="Example: selftime check selftime-runs --baseline baseline.json",
    )(check)


def check(  # noqa: PLR0913, PLR0917 - the command's options
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder with one.")],
    baseline_file: Annotated[
        Path | None,
        typer.Option("--baseline", metavar="FILE", help="Baseline file to compare with."),
    ] = None,
    max_regress: Annotated[
        str, typer.Option(metavar="SHARE", help="Allowed slowdown of times, such as 5%.")
    ] = "5%",
    budget_options: _BudgetOptions = None,
    config_file: _ConfigFileOption = None,
    new_baseline_file: _NewBaselineFileOption = None,
    trace_name: TraceName = None,
    output_format: Annotated[OutputFormat | None, FORMAT_OPTION] = None,
    output: OutputFile = None,
) -> None:
    """Check a recording against a baseline file, budgets (upper limits), or both.

    Counts (operators, launches, syncs, copies, bytes) are exact. A time exceeds a baseline if it is
    significantly slower, by more than `--max-regress`, and a budget if three of four steps exceed
    it. Figures of the run, such as `wall_s`, `parts.compile` in s and `steps.training.p95_ms`, are
    read from the run's ledger. The exit status is 0 within the limits, 1 above one, 3 if
    unknown, and 2 for an error.
    """
    from selftime.compare.check.baseline_files import Baseline
    from selftime.compare.check.limit_checks import check_recording

    output_format = output_format or output_writing.format_for_file(output, OutputFormat.text)
    trace = trace_reading.read_only_trace(path, name_part=trace_name)
    output_writing.refuse_overwriting_inputs(output, [trace.source])
    if new_baseline_file is not None:
        _write_baseline(trace, new_baseline_file)
        return
    budgets = _read_budgets_from_toml(config_file) | dict(
        _parse_budget_option(option) for option in budget_options or ()
    )
    if baseline_file is None and not budgets:
        raise UsageError(_NO_BASELINE_OR_BUDGET_MESSAGE)
    baseline = None if baseline_file is None else Baseline.read(baseline_file)
    report = check_recording(
        trace,
        baseline=baseline,
        budgets=budgets,
        max_regress=parse_share("--max-regress", max_regress),
    )
    output_writing.write_output(
        _check_report_text(report, output_format, is_colourful=output is None), to=output
    )
    if report.exit_status:
        raise typer.Exit(report.exit_status)


def _write_baseline(trace: "Trace", output: Path) -> None:
    from selftime.compare.check.baseline_files import Baseline

    option = "--write-baseline"
    output_writing.refuse_overwriting_inputs(output, [trace.source], option=option)
    output_writing.write_output(Baseline.from_trace(trace).to_json(), to=output, option=option)
    print_notice(f"Baseline written to `{output}`.")


def _check_report_text(
    report: "RecordingCheck", output_format: OutputFormat, *, is_colourful: bool
) -> str:
    from selftime.reports import check as check_report

    root = os.getcwd()  # noqa: PTH109 - as text
    if output_format is OutputFormat.text:
        colour = is_colourful and output_writing.uses_colour()
        return check_report.as_text(
            report, width=output_writing.terminal_width(), colour=colour, root=root
        )
    if output_format is OutputFormat.json:
        return check_report.as_json(report)
    pages = {
        OutputFormat.markdown: check_report.as_markdown,
        OutputFormat.sarif: check_report.as_sarif,
        OutputFormat.junit: check_report.as_junit,
    }
    return pages[output_format](report, root=root)


def _read_budgets_from_toml(config_file: Path | None) -> dict[str, float]:
    """Returns {measure: upper limit} from a TOML file; empty if the default file does not exist."""
    import msgspec

    file = config_file or Path("pyproject.toml")
    if config_file is None and not file.is_file():
        return {}
    try:
        told: Any = msgspec.toml.decode(file.read_bytes())
    except OSError as error:
        raise UsageError(f"`{file}` cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"`{file}` is not valid TOML: {error}") from error
    for key in ("tool", "selftime", "budgets"):
        told = told.get(key, {}) if isinstance(told, dict) else {}
    if not isinstance(told, dict):
        raise UsageError(
            f"`[tool.selftime.budgets]` of `{file}` is not a table: write `launches = 500`"
        )
    return {name: _budget_as_valid_number(name, value) for name, value in told.items()}


def _parse_budget_option(name_and_limit: str) -> tuple[str, float]:
    name, equals, value = name_and_limit.partition("=")
    if not equals:
        raise UsageError(
            f"`--budget {name_and_limit[:60]}`: write a name and a number, such as `launches=500`"
        )
    return name, _budget_as_valid_number(name, value)


def _budget_as_valid_number(measure_name: str, value: object) -> float:
    from selftime.compare.check.account_measures import BUDGET_MEASURES
    from selftime.compare.run_figures import RUN_MEASURE_EXAMPLES, run_measure
    from selftime.run import Run

    if measure_name not in BUDGET_MEASURES and run_measure(Run(), measure_name) is None:
        raise UsageError(
            f"there is no measure `{measure_name[:40]}`; there are "
            f"{', '.join(BUDGET_MEASURES)}, and of the run {', '.join(RUN_MEASURE_EXAMPLES)}"
        )
    try:
        most = float(value) if isinstance(value, str | int | float) else float("nan")
    except ValueError:
        most = float("nan")
    if not (isfinite(most) and most >= 0) or isinstance(value, bool):
        raise UsageError(
            f"the budget of `{measure_name}` is `{str(value)[:40]}`; write a number from 0"
        )
    return most
