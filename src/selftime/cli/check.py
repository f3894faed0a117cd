"""`selftime check`: a recording held against a baseline and budgets, for CI."""

# ruff: noqa: PLC0415 - a command loads what it needs when it runs, `--help` nothing
import os
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from selftime.cli import reading, writing
from selftime.cli.arguments import share
from selftime.cli.boundary import say
from selftime.cli.options import FORMAT, OutputFile, TraceName
from selftime.errors import UsageError

if TYPE_CHECKING:  # polars stays out until a command runs
    from selftime.compare.check import Check


class Format(str, Enum):
    """How the answer is written."""

    text = "text"
    json = "json"
    markdown = "markdown"
    sarif = "sarif"
    junit = "junit"


_NOTHING: Final = (
    "nothing to hold it against: give `--baseline FILE`, which `--write-baseline FILE` makes of a "
    "recording, or `--budget NAME=MOST`, or `[tool.selftime.budgets]` in pyproject.toml"
)
_Config: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="With `[tool.selftime.budgets]`; default: pyproject.toml here."
    ),
]
_Kept: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write this recording's measures as a baseline; check nothing."
    ),
]


def join(app: typer.Typer) -> None:
    app.command(
        "check",
        short_help="Check a recording against a baseline and budgets: 0 within, 1 over, 3 unknown.",
        epilog="Example: selftime check selftime-runs --baseline baseline.json",
    )(check)


def check(  # noqa: PLR0913, PLR0917 - the command's options
    path: Annotated[str, typer.Argument(metavar="PATH", help="A trace, or a folder with one.")],
    baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Baseline file to compare with.")
    ] = None,
    max_regress: Annotated[
        str, typer.Option(metavar="SHARE", help="Allowed slowdown of times, such as 5%.")
    ] = "5%",
    budget: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MOST", help="Limit of a measure for a step; repeat for several."
        ),
    ] = None,
    config: _Config = None,
    write_baseline: _Kept = None,
    trace: TraceName = None,
    form: Annotated[Format | None, FORMAT] = None,
    output: OutputFile = None,
) -> None:
    """Check a recording against a baseline, budgets, or both.

    Counts (operators, launches, syncs, copies, bytes) are exact. Times are over a baseline where a
    step is slower by more than chance and by more than `--max-regress`, and over a budget where
    three steps of four are.

    The exit status is 0 within what is allowed, 1 if anything is over, 3 if something cannot be
    judged, and 2 for an error.
    """
    from selftime.compare.baselines import Baseline
    from selftime.compare.check import check as hold

    form = form or writing.format_of(output, Format.text)
    found = reading.read_one(path, choice=trace)
    if write_baseline is not None:
        writing.write(Baseline.of(found).to_json(), to=write_baseline)
        say(f"Baseline written to `{write_baseline}`.")
        return
    budgets = _budgets(config) | dict(_given(word) for word in budget or ())
    if baseline is None and not budgets:
        raise UsageError(_NOTHING)
    known = None if baseline is None else Baseline.read(baseline)
    report = hold(
        found, baseline=known, budgets=budgets, max_regress=share("--max-regress", max_regress)
    )
    writing.write(_page(report, form, is_colourful=output is None), to=output)
    if report.status:
        raise typer.Exit(report.status)


def _page(report: "Check", form: Format, *, is_colourful: bool) -> str:
    from selftime.reports import check as checked

    root = os.getcwd()  # noqa: PTH109 - as text
    if form is Format.text:
        colour = is_colourful and writing.is_colourful()
        return checked.as_text(report, width=writing.terminal_width(), colour=colour, root=root)
    if form is Format.json:
        return checked.as_json(report)
    pages = {
        Format.markdown: checked.as_markdown,
        Format.sarif: checked.as_sarif,
        Format.junit: checked.as_junit,
    }
    return pages[form](report, root=root)


def _budgets(config: Path | None) -> dict[str, float]:
    """What a configuration allows; none if there is none."""
    import msgspec

    file = config or Path("pyproject.toml")
    if config is None and not file.is_file():
        return {}
    try:
        told: Any = msgspec.toml.decode(file.read_bytes())
    except OSError as error:
        raise UsageError(f"`{file}` cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"`{file}` is no TOML: {error}") from error
    for key in ("tool", "selftime", "budgets"):
        told = told.get(key, {}) if isinstance(told, dict) else {}
    if not isinstance(told, dict):
        raise UsageError(
            f"`[tool.selftime.budgets]` of `{file}` is no table: write `launches = 500`"
        )
    return {name: _most(name, value) for name, value in told.items()}


def _given(word: str) -> tuple[str, float]:
    name, equals, value = word.partition("=")
    if not equals:
        raise UsageError(
            f"`--budget {word[:60]}`: write a name and a number, such as `launches=500`"
        )
    return name, _most(name, value)


def _most(name: str, value: object) -> float:
    from selftime.compare.measures import MEASURES

    if name not in MEASURES:
        raise UsageError(f"there is no measure `{name[:40]}`; there are {', '.join(MEASURES)}")
    try:
        most = float(value) if isinstance(value, str | int | float) else float("nan")
    except ValueError:
        most = float("nan")
    if not (isfinite(most) and most >= 0) or isinstance(value, bool):
        raise UsageError(f"the budget of `{name}` is `{str(value)[:40]}`; write a number from 0")
    return most
