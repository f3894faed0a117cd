"""What a repair achieved, as a terminal shows it."""

from collections.abc import Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from selftime.advice.verify import Benched, Promise, Verification
from selftime.reports.plain import plain
from selftime.reports.terminal import sheet

_SAID: Final = {
    "kept": "kept",
    "exceeded": "exceeded, it saves more",
    "missed": "missed, it saves less",
    "unknown": "cannot be told",
}


def as_text(found: Verification, *, width: int = 80) -> str:
    """The step before and after, what was predicted, and which findings are gone, left and new."""
    return sheet(*_parts(found), width=width)


def _parts(found: Verification) -> Iterator[Text | Table]:
    step = found.achieved
    kind = "recorded" if step.recorded else "not recorded"
    yield Text(f"Step       {step.before_ms:.3f} ms before, {step.after_ms:.3f} ms after ({kind})")
    yield Text(
        f"Saved      {step.saved_ms:.3f} ms a step ({step.low_ms:.3f} to {step.high_ms:.3f}, 95 %)"
    )
    yield Text(f"Predicted  {_predicted(found)}")
    if found.benched is not None:
        yield from _benched(found.benched)
    for title, promises in (("GONE", found.gone), ("LEFT", found.left), ("NEW", found.new)):
        if promises:
            yield Text(f"\n{title}", style="bold")
            yield _table(promises)


def _benched(timed: Benched) -> Iterator[Text]:
    """The unprofiled steps, apart from those above, and the promise."""
    yield Text("\nUNPROFILED, by a bench", style="bold")
    rounds = f"{timed.rounds} round{'' if timed.rounds == 1 else 's'}"
    yield Text(
        f"Step       {timed.before_ms:.3f} ms before, {timed.after_ms:.3f} ms after ({rounds})"
    )
    ends = _between(timed.low_ms, timed.high_ms)
    yield Text(f"Saved      {timed.saved_ms:.3f} ms a step ({ends}, 95 %)")
    promised = _between(timed.promised_low_ms, timed.promised_high_ms)
    yield Text(f"Promised   {promised} ms a step by what is gone: {_SAID[timed.verdict]}")
    for note in timed.notes:
        yield Text(f"- {plain(note)}")


def _between(low: float | None, high: float | None) -> str:
    return "unknown" if low is None or high is None else f"{low:.3f} to {high:.3f}"


def _predicted(found: Verification) -> str:
    if not found.gone:
        return "nothing: no finding is gone"
    if found.predicted_ms is None:
        return "unknown: a finding that is gone has no number, or the findings cannot be joined"
    return f"{found.predicted_ms:.3f} ms a step by the {len(found.gone)} that are gone"


def _table(promises: tuple[Promise, ...]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for promise in promises:
        place = promise.file or "line unknown"
        if promise.file and promise.line is not None:
            place = f"{place}:{promise.line}"
        told = "no number"
        if promise.estimate_ms is not None:
            low, high = promise.low_ms or 0.0, promise.high_ms or promise.estimate_ms
            told = f"{promise.estimate_ms:.3f} ms ({low:.3f} to {high:.3f})"
        table.add_row(f"  {promise.rule}", plain(place), told)
    return table
