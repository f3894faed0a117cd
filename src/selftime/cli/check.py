"""`selftime check`: compares a recording's times and counts with a baseline or limits, for CI."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
from dataclasses import replace
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from selftime.cli import output_writing
from selftime.cli.error_reporting import print_notice
from selftime.cli.run_recordings import read_baseline, read_runs
from selftime.cli.shared_options import FORMAT_OPTION, OutputFile, TraceName, parse_share
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.compare.check.baseline_files import Baseline
    from selftime.compare.check.history_changes import HistoryReport
    from selftime.compare.check.limit_checks import RecordingCheck
    from selftime.trace import Trace


class OutputFormat(str, Enum):
    """Output formats of `selftime check`."""

    text = "text"
    json = "json"
    markdown = "markdown"
    sarif = "sarif"
    junit = "junit"
    html = "html"


_NO_BASELINE_OR_BUDGET_MESSAGE: Final = (
    "there is nothing to check against: give `--baseline PATH` (`--write-baseline` writes a file), "
    "or `--budget NAME=MOST`, or `[tool.selftime.budgets]` in pyproject.toml"
)
_RunPaths: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="A trace, a ledger, or a folder; several: runs."),
]
_BaselineOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--baseline",
        metavar="PATH",
        help="Baseline file, trace, ledger, or folder of runs; repeat for several runs.",
    ),
]
_TimesOption: TypeAlias = Annotated[
    bool, typer.Option("--times", help="Also judge times; needs a baseline of 3 runs or more.")
]
_RunsOption: TypeAlias = Annotated[
    int, typer.Option(min=1, metavar="N", help="Read the N newest runs of a folder.")
]
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
_HistoryOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Keep these runs in this folder, and tell at which commit a measure changed.",
    ),
]
_CommitOption: TypeAlias = Annotated[
    str | None,
    typer.Option(metavar="ID", help="For --history: the commit; default: that of git here."),
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
    paths: _RunPaths,
    baseline_paths: _BaselineOptions = None,
    times: _TimesOption = False,
    runs: _RunsOption = 1,
    max_regress: Annotated[
        str, typer.Option(metavar="SHARE", help="Allowed slowdown of times, such as 5%.")
    ] = "5%",
    budget_options: _BudgetOptions = None,
    config_file: _ConfigFileOption = None,
    new_baseline_file: _NewBaselineFileOption = None,
    history: _HistoryOption = None,
    commit: _CommitOption = None,
    trace_name: TraceName = None,
    output_format: Annotated[OutputFormat | None, FORMAT_OPTION] = None,
    output: OutputFile = None,
) -> None:
    """Check recordings against a baseline, budgets (upper limits), or both.

    Counts (operators, launches, syncs, copies, bytes) decide: the machine's load does not change
    them. With `--times`, times exceed a baseline of several runs if they are slower by more than
    runs vary and by more than `--max-regress`, on the same kind of machine. A time exceeds a
    budget if three of four steps do. Figures of the run, such as `wall_s`, `parts.compile` in s
    and `steps.training.p95_ms`, are read from the run's ledger. The exit status is 0 within the
    limits, 1 above one, 3 if unknown, and 2 for an error.
    """
    output_format = output_format or output_writing.format_for_file(output, OutputFormat.text)
    traces = read_runs(paths, name_part=trace_name, runs=runs)
    output_writing.refuse_overwriting_inputs(output, [trace.source for trace in traces])
    if new_baseline_file is not None:
        _write_baseline(traces, new_baseline_file)
        return
    budgets = _read_budgets_from_toml(config_file) | dict(
        _parse_budget_option(option) for option in budget_options or ()
    )
    share = parse_share("--max-regress", max_regress)
    baseline = read_baseline(baseline_paths, name_part=trace_name) if baseline_paths else None
    report = _check_runs(traces, baseline, budgets, share, judges_times=times, kept=history)
    if history is not None:
        told = _kept_history(traces, history, commit, share, judges_times=times)
        report = replace(report, history=told)
    output_writing.write_output(
        _check_report_text(report, output_format, is_colourful=output is None), to=output
    )
    if report.exit_status:
        raise typer.Exit(report.exit_status)


def _check_runs(
    traces: "list[Trace]",
    baseline: "Baseline | None",
    budgets: dict[str, float],
    max_regress: float,
    *,
    judges_times: bool,
    kept: Path | None,
) -> "RecordingCheck":
    """Checks runs; without a limit only if they are kept in a history."""
    from selftime.compare.check.limit_checks import check_recordings

    if baseline is None and not budgets and kept is None:
        raise UsageError(_NO_BASELINE_OR_BUDGET_MESSAGE)
    return check_recordings(
        traces,
        baseline=baseline,
        budgets=budgets,
        max_regress=max_regress,
        judges_times=judges_times,
    )


def _kept_history(
    traces: "list[Trace]",
    folder: Path,
    commit_id: str | None,
    least_change: float,
    *,
    judges_times: bool,
) -> "HistoryReport":
    """Adds runs to a history, and returns what it tells."""
    from selftime.cli.git_commit import current_commit
    from selftime.compare.check.history_changes import history_report
    from selftime.compare.check.history_files import History, HistoryEntry, keep_entries

    commit = current_commit(commit_id)
    entries = [HistoryEntry.from_trace(trace, commit) for trace in traces]
    before = History.read(folder)
    keep_entries(folder, entries)
    return history_report(
        str(folder),
        before.with_entries(entries),
        entries,
        least_change=least_change,
        judges_times=judges_times,
    )


def _write_baseline(traces: "list[Trace]", output: Path) -> None:
    from selftime.compare.check.baseline_files import Baseline

    option = "--write-baseline"
    output_writing.refuse_overwriting_inputs(
        output, [trace.source for trace in traces], option=option
    )
    output_writing.write_output(Baseline.from_traces(*traces).to_json(), to=output, option=option)
    told = f" of {len(traces)} runs" if len(traces) > 1 else ""
    print_notice(f"Baseline{told} written to `{output}`.")


def _check_report_text(
    report: "RecordingCheck", output_format: OutputFormat, *, is_colourful: bool
) -> str:
    from selftime.reports import check as check_report
    from selftime.reports import check_page

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
        OutputFormat.html: check_page.as_html,
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
