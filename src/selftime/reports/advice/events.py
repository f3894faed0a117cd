"""The events that a number was measured on, as a drill-down shows them."""

from dataclasses import dataclass
from typing import Final

from selftime import units
from selftime.advice.base import Evidence
from selftime.trace import Trace

_MOST: Final = 8
"""Events of one number that are told; the JSON has all of their ids."""


@dataclass(frozen=True, slots=True)
class Event:
    """One slice of the trace: its name is the trace's own, and unchecked."""

    id: int
    name: str
    times: str
    """How long it lasted and when it began, in words."""


def events_of(trace: Trace | None, evidence: Evidence) -> list[Event]:
    """The first of them, as the trace has them; none of an answer whose trace is gone."""
    if trace is None:
        return []
    known = [one for one in evidence.events[:_MOST] if one < trace.slices.height]
    rows = trace.slices.select("name", "start", "duration")[known].iter_rows()
    return [
        Event(number, str(name), _times(start, duration))
        for number, (name, start, duration) in zip(known, rows, strict=True)
    ]


def more_text(evidence: Evidence) -> str | None:
    """How many more there are."""
    more = len(evidence.events) - _MOST
    return f"and {more:,} more, by id in `--format json`" if more > 0 else None


def _times(start: int, duration: int | None) -> str:
    return f"{units.text(duration, 'ns')}, from {units.text(start, 'instant')}"
