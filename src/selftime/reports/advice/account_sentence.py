"""Writes in one sentence what the time of a step was spent on."""

from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.advice.advice_result import Advice, TypicalStep
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.reports.advice.wording import file_and_line_text
from selftime.reports.labels import TIME_CLASS_LABELS
from selftime.reports.plain import plain
from selftime.trace import Trace
from selftime.units import milliseconds_text, whole_percent_text

_MIN_SHARE_OF_STEP: Final = 0.05
"""Smallest share of the step of a class that the sentence names."""
_MAX_CLASSES: Final = 4
"""Largest number of classes that the sentence names."""
_MIN_SHARE_OF_CLASS: Final = 0.1
"""Smallest share of a class's time of the line or operator that the sentence names with it."""
_SHARE_OF_MOST: Final = 0.5
"""Share of a class's time from which a line or operator is told to take most of it."""
_MAX_DIFFERENCE_WITHOUT_BASIS: Final = 0.02
"""Largest difference, as a share of the step's time, between the time that is divided and the times
in the line on the step, for the sentence not to say what it divides."""
_SHARE_OF_NEARLY_ALL: Final = 0.9
"""Share of a class's time from which a line or operator stands for the class."""


@dataclass(frozen=True, slots=True)
class _ClassTime:
    """What a class of time takes of a step, and the line or the name that most of it belongs to."""

    name: str
    share: float
    per_step_ms: float
    file: str | None
    line: int | None
    what: str | None
    place_share: float
    """Share of the class's time that belongs to that line or name."""


def account_sentence(advice: Advice, root: str | None = None) -> str | None:
    """Returns the largest classes of the step's account with their lines; None without steps.

    Paths of files below `root` are relative to it. Where the time that is divided is neither the
    step's host time nor its device time, the sentence begins with it.
    """
    trace = advice.trace
    if trace is None or not advice.step.count:
        return None
    divided_ms, classes = _largest_classes(trace)
    if not classes:
        return None
    texts = [
        f"{whole_percent_text(one.share)} ({milliseconds_text(one.per_step_ms)}) "
        f"{TIME_CLASS_LABELS[one.name].phrase}{_place_text(one, root)}"
        for one in classes
    ]
    return _basis_text(advice.step, divided_ms) + ", ".join(texts)


def _basis_text(step: TypicalStep, divided_ms: float) -> str:
    """Returns a text on the time that is divided; empty if the line on the step shows that time.

    That line shows medians. The shares are of the mean, and of the time in which no earlier step
    was at work on the device.
    """
    shown = [time for time in (step.host_ms, step.device_ms) if time is not None]
    if any(abs(divided_ms - time) <= _MAX_DIFFERENCE_WITHOUT_BASIS * time for time in shown):
        return ""
    if step.count > 1:
        return f"of {milliseconds_text(divided_ms)}, the mean of {step.count} steps: "
    return f"of {milliseconds_text(divided_ms)}, since the device's work of earlier steps ended: "


def _place_text(one: _ClassTime, root: str | None) -> str:
    """Returns the line, else the name, with most of a class's time; may be empty."""
    if one.place_share >= _SHARE_OF_NEARLY_ALL:
        most = ""
    elif one.place_share >= _SHARE_OF_MOST:
        most = ", most"
    else:
        most = f", {whole_percent_text(one.place_share)} of it"
    if one.file is not None:
        return f"{most} at `{file_and_line_text(one.file, one.line, root)}`"
    return "" if one.what is None else f"{most} in `{plain(one.what)}`"


@cached_per_trace
def _largest_classes(trace: Trace) -> tuple[float, tuple[_ClassTime, ...]]:
    """Returns the time (ms) of a step that the account divides, and its largest classes."""
    every = trace.view("account", by="class")
    by_line, by_name = trace.view("account", by="line"), trace.view("account", by="what")
    classes = every.filter(pl.col("share") >= _MIN_SHARE_OF_STEP).head(_MAX_CLASSES)
    return sum(every["per_step"].to_list()) / 1e6, tuple(
        _class_time(row, by_line, by_name) for row in classes.iter_rows(named=True)
    )


def _class_time(
    of_class: dict[str, Any], by_line: pl.DataFrame, by_name: pl.DataFrame
) -> _ClassTime:
    is_own = pl.col("class") == of_class["class"]
    least = _MIN_SHARE_OF_CLASS * of_class["time"]
    lines = by_line.filter(is_own & pl.col("file").is_not_null() & (pl.col("time") >= least))
    named = by_name.filter(is_own & pl.col("what").is_not_null() & (pl.col("time") >= least))
    line = lines.row(0, named=True) if lines.height else None
    name = named.row(0, named=True) if named.height else None
    if line and name and line["time"] < _SHARE_OF_MOST * of_class["time"] <= name["time"]:
        line = None  # the name says more
    place = line or name
    return _ClassTime(
        of_class["class"],
        of_class["share"],
        of_class["per_step"] / 1e6,
        line["file"] if line else None,
        line["line"] if line else None,
        str(name["what"]) if name else None,
        0.0 if place is None else place["time"] / of_class["time"],
    )
