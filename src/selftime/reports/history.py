"""Writes what the commits of a history took: sparklines for a terminal, charts for a page."""

from collections.abc import Iterator, Sequence
from html import escape
from textwrap import fill
from typing import Any, Final

from rich.table import Table
from rich.text import Text

from selftime import units
from selftime.compare.check.history_changes import (
    HistoryChange,
    HistoryPoint,
    HistoryReport,
    HistorySeries,
)
from selftime.compare.check.measured_runs import is_time
from selftime.reports.measures import measure_value_text, measure_value_texts
from selftime.reports.plain import plain

_BARS: Final = "▁▂▃▄▅▆▇█"
"""Characters of a sparkline, from the smallest value to the largest."""
_SMALLEST_RANGE: Final = 0.1
"""Smallest range of times, by the largest, that fills a chart: less is drawn as less."""
_CHART_WIDTH, _CHART_HEIGHT, _CHART_MARGIN = 720.0, 120.0, 8.0
"""Size of a chart in a page, and the space around its points, in pixels."""
_DATE_CHARACTERS: Final = 10
"""Number of characters of a date in ISO 8601 without its time."""


def history_text_blocks(history: HistoryReport, width: int) -> Iterator[Text | Table]:
    """Yields a heading, a sparkline for each measure, and a sentence for each change."""
    yield Text(f"\nHISTORY: {_runs_text(history)} in {plain(history.folder)}", style="bold")
    table = Table.grid(padding=(0, 2, 0, 0))
    shown = max(10, width - 50)
    for series in history.series:
        if series.points:
            values = [point.value for point in series.points]
            first, last = measure_value_texts(series.measure, values[0], values[-1])
            line = sparkline(values[-shown:], is_exact=not is_time(series.measure))
            table.add_row(series.measure, line, f"{first}, now {last}")
    yield table
    for sentence in (*change_sentences(history), *history.notes):
        yield Text(fill(f"- {plain(sentence)}", width, subsequent_indent="  "))


def _runs_text(history: HistoryReport) -> str:
    return f"{history.entries} run{'' if history.entries == 1 else 's'}"


def sparkline(values: Sequence[float], *, is_exact: bool = False) -> str:
    """Returns values as a line of bars, between the smallest and the largest.

    >>> sparkline([50, 51, 50, 66, 65]), sparkline([3, 3])
    ('▁▁▁██', '▁▁')
    >>> sparkline([1008, 1008, 1011]), sparkline([1008, 1008, 1011], is_exact=True)
    ('▁▁▁', '▁▁█')
    """
    low, span = _low_and_span(values, is_exact=is_exact)
    return "".join(
        _BARS[min(int((value - low) / span * len(_BARS)), len(_BARS) - 1)] for value in values
    )


def _low_and_span(values: Sequence[float], *, is_exact: bool) -> tuple[float, float]:
    """Returns the lowest value of a chart and its range, which for times has a smallest size."""
    low, high = min(values), max(values)
    least = 0.0 if is_exact else _SMALLEST_RANGE * abs(high)
    return low, max(high - low, least) or 1.0


def change_sentences(history: HistoryReport) -> list[str]:
    """Returns a sentence for each change of a measure, in the order of commits."""
    ordered = sorted(history.changes, key=lambda pair: pair[1].index)
    sentences = [_change_sentence(series, change) for series, change in ordered]
    return sentences or ["no measure changed its level"]


def _change_sentence(series: HistorySeries, change: HistoryChange) -> str:
    before, after = measure_value_texts(change.measure, change.before, change.after)
    word = "rose" if change.is_worse else "fell"
    share = ""
    if change.before > 0:
        share = f" by {units.share_text(abs(change.after - change.before) / change.before)}"
    chance = "" if change.chance is None else f" (chance {units.share_text(change.chance)})"
    new = ", which these runs show first" if change.is_new else ""
    place = point_text(series.points[change.index])
    return f"{change.measure} {word}{share}, {before} to {after}{chance}, at {place}{new}"


def point_text(point: HistoryPoint) -> str:
    """Returns the commit of a point with its subject and date, or when it was recorded."""
    commit = point.commit
    if commit is None:
        return f"the run of {point.recorded_at[:19]}"
    date = (commit.time or point.recorded_at)[:_DATE_CHARACTERS]
    subject = f" `{commit.subject}`" if commit.subject else ""
    changed = " with changes" if commit.has_changes else ""
    return f"{commit.short_id}{changed}{subject} of {date}"


def history_as_json_data(history: HistoryReport) -> dict[str, Any]:
    """Returns a history as a JSON object, in `selftime.check/1`."""
    return {
        "folder": history.folder,
        "runs": history.entries,
        "series": [
            {
                "measure": series.measure,
                "points": [_point_as_json_data(point) for point in series.points],
                "changes": [_change_as_json_data(series, change) for change in series.changes],
            }
            for series in history.series
        ],
        "notes": list(history.notes),
    }


def _point_as_json_data(point: HistoryPoint) -> dict[str, Any]:
    commit = point.commit
    return {
        "commit": None if commit is None else commit.id,
        "subject": None if commit is None else commit.subject,
        "time": point.recorded_at if commit is None else commit.time or point.recorded_at,
        "value": point.value,
        "runs": point.runs,
    }


def _change_as_json_data(series: HistorySeries, change: HistoryChange) -> dict[str, Any]:
    commit = series.points[change.index].commit
    return {
        "index": change.index,
        "commit": None if commit is None else commit.id,
        "before": change.before,
        "after": change.after,
        "chance": change.chance,
        "is_new": change.is_new,
    }


def history_as_html(history: HistoryReport) -> Iterator[str]:
    """Yields the elements of a page: a chart for each measure, and the changes as a list."""
    yield f"<h2>History: {_runs_text(history)}</h2><ul>"
    for sentence in (*change_sentences(history), *history.notes):
        yield f"<li>{escape(plain(sentence))}</li>"
    yield "</ul>"
    for series in history.series:
        if series.points:
            yield _chart(series)


def _chart(series: HistorySeries) -> str:
    """Returns a chart of a measure as SVG in a figure; points tell their commit and value."""
    values = [point.value for point in series.points]
    low, span = _low_and_span(values, is_exact=not is_time(series.measure))
    inner = _CHART_WIDTH - 2 * _CHART_MARGIN, _CHART_HEIGHT - 2 * _CHART_MARGIN
    xs = [_CHART_MARGIN + inner[0] * (at + 0.5) / len(values) for at in range(len(values))]
    ys = [_CHART_HEIGHT - _CHART_MARGIN - inner[1] * (value - low) / span for value in values]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    changes = "".join(_change_line(series, change, xs) for change in series.changes)
    points = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3">'
        f"<title>{_point_title(series, point)}</title></circle>"
        for x, y, point in zip(xs, ys, series.points, strict=True)
    )
    texts = measure_value_texts(series.measure, min(values), max(values))
    name = escape(series.measure)
    return (
        f"<figure><figcaption>{name}: {escape(texts[0])} to {escape(texts[1])}</figcaption>"
        f'<svg viewBox="0 0 {_CHART_WIDTH:.0f} {_CHART_HEIGHT:.0f}" role="img" '
        f'aria-label="{name} by commit">{changes}<polyline points="{line}"/>{points}</svg></figure>'
    )


def _change_line(series: HistorySeries, change: HistoryChange, xs: Sequence[float]) -> str:
    x = (xs[change.index - 1] + xs[change.index]) / 2
    kind = "worse" if change.is_worse else "better"
    commit = series.points[change.index].commit
    label = "" if commit is None else escape(commit.short_id)
    side = ("end", -4) if x > _CHART_WIDTH / 2 else ("start", 4)
    return (
        f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{_CHART_HEIGHT:.0f}"/>'
        f'<text x="{x + side[1]:.1f}" y="12" text-anchor="{side[0]}">{label}</text>'
    )


def _point_title(series: HistorySeries, point: HistoryPoint) -> str:
    value = measure_value_text(series.measure, point.value)
    return escape(plain(f"{point_text(point)}: {value}"))
