"""Writes as text the time that a fix saved, next to the time that was predicted for it."""

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from selftime.advice.verify import (
    BenchedSaving,
    PredictedSaving,
    RepairedFinding,
    Verification,
)
from selftime.compare.results.result_comparison import ResultComparison
from selftime.reports.advice.wording import FIX_EFFECT_TEXT, file_and_line_text
from selftime.reports.plain import plain
from selftime.reports.terminal import render_as_text
from selftime.units import milliseconds_text, time_range_text

_TEXT_BY_PREDICTION_VERDICT: Final = {
    "kept": "kept",
    "exceeded": "exceeded, it saves more",
    "missed": "missed, it saves less",
    "unknown": "unclear",
}
"""Text for each verdict on a prediction: kept, exceeded, missed, or unknown."""

_TEXT_BY_BASIS: Final = {
    "bench": "the benchmark",
    "unrecorded": "steps that were not recorded",
    "recorded": "recorded steps",
}
"""Text for each kind of steps that were measured."""

_SMALLEST_SHOWN_MS: Final = 0.005
"""Smallest time in ms that is told as a difference."""


def as_text(verification: Verification, *, width: int = 80, root: str | None = None) -> str:
    """Returns as text the step times before and after a fix, the predicted saving, the findings.

    Files below the folder `root` are written relative to it.
    """
    return render_as_text(*_verification_text_blocks(verification, root), width=width)


def _verification_text_blocks(
    verification: Verification, root: str | None
) -> Iterator[Text | Table]:
    """Yields the parts of the text: step times, saving, prediction, and tables of findings."""
    step = verification.achieved
    recording_text = "recorded" if step.recorded else "not recorded"
    before, after = milliseconds_text(step.before_ms), milliseconds_text(step.after_ms)
    yield Text(f"Step       {before} before, {after} after ({recording_text})")
    yield Text(f"Saved      {_saved_time_text(step.saved_ms, step.low_ms, step.high_ms)}")
    yield Text(f"Predicted  {_predicted_saving_text(verification)}")
    if verification.repaired is not None:
        yield from _repaired_finding_lines(verification.repaired, root)
    for limit in verification.limits:
        yield Text(f"\nOf this saving {limit}.")
    if verification.results is not None:
        yield from _result_lines(verification.results, is_gone=bool(verification.gone))
    if verification.notes:
        yield Text("\nDIFFERENCES BETWEEN THE RECORDINGS", style="bold")
        yield from (Text(f"- {plain(note)}") for note in verification.notes)
    if verification.benched is not None:
        yield from _benched_step_lines(verification.benched)
    for title, promises in (
        ("GONE", verification.gone),
        ("LEFT", verification.left),
        ("NEW", verification.new),
    ):
        if promises:
            yield Text(f"\n{title}", style="bold")
            yield _predicted_savings_table(promises, root)


def _result_lines(results: ResultComparison, *, is_gone: bool) -> Iterator[Text]:
    """Yields lines on whether both programs computed the same, and why that cannot be told."""
    text = plain(results.text)
    yield Text(f"Results    {text}")
    badge = FIX_EFFECT_TEXT[results.semantics]
    promise = f"the repair promises: {badge}" if is_gone else "no finding is gone: they must stay"
    yield Text(f"           {promise}")
    yield from (Text(f"- {plain(reason)}") for reason in results.reasons)


def _repaired_finding_lines(repaired: RepairedFinding, root: str | None) -> Iterator[Text]:
    """Yields lines on the finding that was repaired: its promise, and whether it was kept."""
    promise, title = repaired.promise, f"REPAIRED: {repaired.id}"
    where = "line unknown"
    if promise.file:
        where = file_and_line_text(promise.file, promise.line, root)
    yield Text(f"\n{title}", style="bold")
    low, high = promise.low_ms, promise.high_ms
    text = "no number"
    if promise.estimate_ms is not None:
        text = f"{milliseconds_text(promise.estimate_ms)} a step"
        if low is not None and high is not None:
            text += f" ({_milliseconds_range_text(low, high)})"
    yield Text(f"Promised   {text}, {where}")
    saved = _saved_time_text(repaired.saved_ms, repaired.low_ms, repaired.high_ms)
    yield Text(f"Saved      {saved}, by {_TEXT_BY_BASIS[repaired.basis]}")
    state = "gone" if repaired.is_gone else "still there"
    verdict = _TEXT_BY_PREDICTION_VERDICT[repaired.verdict]
    yield Text(f"Promise    {verdict}; the finding is {state}")


def _benched_step_lines(benched: BenchedSaving) -> Iterator[Text]:
    """Yields lines on the benchmark without profiler: step times, saving, and prediction."""
    yield Text("\nWITHOUT THE PROFILER (`selftime bench`)", style="bold")
    rounds = f"{benched.rounds} round{'' if benched.rounds == 1 else 's'}"
    before, after = milliseconds_text(benched.before_ms), milliseconds_text(benched.after_ms)
    yield Text(f"Step       {before} before, {after} after ({rounds})")
    yield Text(f"Saved      {_saved_time_text(benched.saved_ms, benched.low_ms, benched.high_ms)}")
    low, high = benched.promised_low_ms, benched.promised_high_ms
    predicted_text = (
        "unknown" if low is None or high is None else _milliseconds_range_text(low, high)
    )
    verdict = _TEXT_BY_PREDICTION_VERDICT[benched.verdict]
    yield Text(f"Predicted  {predicted_text} a step by the findings that are gone: {verdict}")
    for note in benched.notes:
        yield Text(f"- {plain(note)}")


def _saved_time_text(saved_ms: float, low_ms: float | None, high_ms: float | None) -> str:
    """Returns the saved time of a step with its interval; `no difference` if all round to 0."""
    known = [value for value in (saved_ms, low_ms, high_ms) if value is not None]
    if max(map(abs, known)) < _SMALLEST_SHOWN_MS:
        return "no difference"
    if low_ms is None or high_ms is None:
        return f"{milliseconds_text(saved_ms)} a step (interval unknown)"
    return (
        f"{milliseconds_text(saved_ms)} a step ({_milliseconds_range_text(low_ms, high_ms)}, 95 %)"
    )


def _milliseconds_range_text(low_ms: float, high_ms: float) -> str:
    return time_range_text(low_ms * 1e6, high_ms * 1e6)


def _predicted_saving_text(verification: Verification) -> str:
    """Returns the predicted saving of the findings that the fix removed, as text."""
    if not verification.gone:
        return "nothing: no finding is gone"
    if verification.predicted_ms is None:
        return "unknown: a finding that is gone has no estimate, or they cannot be combined"
    count = len(verification.gone)
    which = "the finding that is" if count == 1 else f"the {count} findings that are"
    return f"{milliseconds_text(verification.predicted_ms)} a step by {which} gone"


def _predicted_savings_table(promises: tuple[PredictedSaving, ...], root: str | None) -> Table:
    """Returns a table with the rule, the predicted saving and the line of each finding."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for promise in promises:
        location = "line unknown"
        if promise.file:
            location = file_and_line_text(promise.file, promise.line, root)
        saving = "no number"
        if promise.estimate_ms is not None:
            saving = milliseconds_text(promise.estimate_ms)
            if promise.low_ms is not None and promise.high_ms is not None:
                saving += f" ({_milliseconds_range_text(promise.low_ms, promise.high_ms)})"
        table.add_row(f"  {promise.rule}", saving, location)
    return table
