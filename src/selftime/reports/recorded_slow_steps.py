"""Writes the sentences on slow steps of a run that were recorded."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from selftime.analysis.run.slow_steps import steps_of_run
from selftime.reports.advice.wording import file_and_line_text, relative_file
from selftime.reports.plain import plain
from selftime.run import Run
from selftime.units import seconds_text

_MAX_LINES: Final = 3
"""Largest number of source lines that a sentence names."""
_MIN_SHARE: Final = 0.05
"""Smallest share of a slow step's time beyond usual steps that a line must take to be named."""

_NO_DIFFERENCES: Final[Mapping[int, pl.DataFrame]] = MappingProxyType({})


def recorded_slow_step_sentences(
    run: Run,
    root: str | None = None,
    differences: Mapping[int, pl.DataFrame] = _NO_DIFFERENCES,
) -> list[str]:
    """Returns what to say of each slow step that was recorded: its trace, and what is slow in it.

    Args:
        run: The run.
        root: Paths of files below it are relative to it.
        differences: Maps segments of the run to tables of `slow_step_difference`.
    """
    steps = steps_of_run(run).filter(pl.col("id").is_in(list(run.recorded_slow_steps)))
    return [
        _sentence(run, row, root, differences.get(row["id"])) for row in steps.iter_rows(named=True)
    ]


def _sentence(
    run: Run, row: dict[str, Any], root: str | None, difference: pl.DataFrame | None
) -> str:
    path = str(Path(run.source).with_name(run.recorded_slow_steps[row["id"]]))
    took = seconds_text(row["duration"] - row["recording"])
    place = plain(relative_file(path, root)).replace("`", "'")
    sentence = f"Slow step {row['step']:,} ({took}) was recorded: `selftime advise {place}`."
    lines = [] if difference is None else _texts_of_lines(difference, row["excess"], root)
    if not lines:
        return sentence
    return f"{sentence} Beyond a usual recorded step it took {', '.join(lines)}."


def _texts_of_lines(difference: pl.DataFrame, excess_ns: int, root: str | None) -> list[str]:
    """Returns the times of the lines that take most of the excess, as texts."""
    largest = pl.max_horizontal("self_cpu_time", "device_time")
    large = difference.filter(largest >= max(1, _MIN_SHARE * excess_ns)).head(_MAX_LINES)
    return [_text_of_line(row, root) for row in large.iter_rows(named=True)]


def _text_of_line(row: dict[str, Any], root: str | None) -> str:
    is_on_device = row["device_time"] > row["self_cpu_time"]
    time = seconds_text(max(row["device_time"], row["self_cpu_time"]))
    what = f"{time} of device work" if is_on_device else time
    if row["file"] is None:
        return f"{what} at no known line"
    place = file_and_line_text(row["file"], row["line"], root).replace("`", "'")
    function = "" if row["function"] is None else plain(row["function"])
    if row["how"] == "definition":
        return f"{what} in {function} (`{place}`)"
    return f"{what} at `{place}`{f' in {function}' if function else ''}"
