"""The command that gives a number of the advice again, to whoever wants to check it."""

import math
from dataclasses import dataclass
from shlex import quote
from typing import Final, Protocol

import polars as pl

from selftime.advice.answer import Advice
from selftime.advice.base import Evidence
from selftime.reports.plain import plain
from selftime.trace import Trace

_JOB: Final = "J"
_TRACE: Final = "T"
_LONGEST: Final = 200
"""Characters of a path that is written out."""
_PER_MS: Final = 1_000_000
_CLOSE: Final = 1e-9


class Ways(Protocol):
    """How to ask again: in the words of a shell, or of a call of a tool."""

    @property
    def names(self) -> str:
        """What the short names in the others stand for."""

    def whole(self) -> str:
        """For all of the answer, however long."""

    def values(self) -> str:
        """For all of its numbers."""

    def finding(self, word: str) -> str:
        """For a finding by its id, or for a rule by its name."""

    def step(self, advice: Advice) -> str:
        """For the typical step."""

    def event(self, number: int) -> str:
        """For an event."""

    def evidence(self, evidence: Evidence) -> str | None:
        """For a number, if it is that of an event."""


@dataclass(frozen=True, slots=True)
class Queries:
    """Commands about one answer, with what was asked of named once and short.

    `path` is what the advice was asked of, a trace or a folder. Ids of events count in one trace:
    that of a folder that the advice is about.
    """

    path: str
    trace: Trace | None = None

    @property
    def names(self) -> str:
        """What the short names stand for, as a shell reads it."""
        named = [f"{_TRACE}={_written(self._events_in)}"]
        if self._advised != _TRACE:
            named.append(f"{_JOB}={_written(self.path)}")
        return " ".join(named)

    def whole(self) -> str:
        return f"selftime advise ${self._advised} --format markdown --all"

    def values(self) -> str:
        return f"selftime advise ${self._advised} --format json"

    def finding(self, word: str) -> str:
        """Of a finding by its id, or of a rule by its name."""
        return f"selftime advise ${self._advised} --finding {word}"

    def view(self, name: str, options: str = "") -> str:
        """Of the trace that the advice is about."""
        return f"selftime view {name} ${_TRACE} {options}".rstrip()

    def step(self, advice: Advice) -> str:
        """That the typical step is told by: a view of the trace, of which nothing was changed."""
        known = advice.step.host_ms is not None or advice.step.device_ms is not None
        return self.view("overview") if known and self.trace is not None else self.values()

    def event(self, number: int) -> str:
        return self.view("slice", f"--id {number}")

    def evidence(self, evidence: Evidence) -> str | None:
        """A view whose answer has this number; None where only the finding's command has it."""
        number = None if self.trace is None else event_of(self.trace, evidence)
        return None if number is None else self.event(number)

    @property
    def _events_in(self) -> str:
        return self.path if self.trace is None or not self.trace.source else self.trace.source

    @property
    def _advised(self) -> str:
        return _TRACE if self._events_in == self.path else _JOB


def event_of(trace: Trace, evidence: Evidence) -> int | None:
    """The event that lasted as long as the number says, if it is that of one."""
    if evidence.unit not in ("ms", "ns") or evidence.value is None:
        return None
    events = [one for one in evidence.events if one < trace.slices.height]
    lasted = trace.slices["duration"].gather(events).cast(pl.Float64)
    value = evidence.value * (_PER_MS if evidence.unit == "ms" else 1)
    for number, duration in zip(events, lasted, strict=True):
        if duration is not None and math.isclose(duration, value, rel_tol=_CLOSE):
            return number
    return None


def _written(path: str) -> str:
    """The path for a shell; a word for it where a page cannot hold it as it is."""
    fits = len(path) <= _LONGEST and plain(path) == path and "`" not in path
    return quote(path) if fits else "PATH"
