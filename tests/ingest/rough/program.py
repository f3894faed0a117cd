"""A small program of five steps in pieces, for cases in which parts of it are missing or doubled.

It is `events()` of `case`: each step has ten operators, each operator a launch and a kernel.
"""

from collections.abc import Callable
from typing import Any, Final

import polars as pl
from tests.ingest.rough.case import Event, events

from selftime.advice import Advice, advise
from selftime.trace import Trace

__all__ = [
    "COUNT",
    "PROGRAM",
    "Looks",
    "advice_of",
    "checks",
    "every",
    "frame",
    "held_by_views",
    "is_a",
    "moved",
    "not_checked",
    "quiet",
    "without",
]

Looks = Callable[[Trace], None]


STEPS: Final = 5
COUNT: Final = 31 * STEPS
"""Events of the program: of each step its mark, and three for each of ten operators."""
PROGRAM: Final = events(COUNT)


def is_a(*categories: str) -> Callable[[Event], bool]:
    return lambda event: event.get("cat") in categories


def without(*categories: str) -> list[Event]:
    """The program but for some categories."""
    return [event for event in PROGRAM if event.get("cat") not in categories]


def moved(some: list[Event], by: float = 0, **instead: Any) -> list[Event]:
    """The same events later, by so many microseconds, and with other fields."""
    return [{**event, "ts": event["ts"] + by, **instead} for event in some]


def frame(name: str, at: float, dur: float, number: int, caller: int | None = None) -> Event:
    """A Python frame, with its number and its caller's."""
    return {
        "ph": "X", "cat": "python_function", "name": name, "pid": 7, "tid": 7, "ts": at, "dur": dur,
        "args": {"Python id": number, "Python parent id": caller},
    }  # fmt: skip


def checks(trace: Trace) -> dict[str, str]:
    """The text of each check of health."""
    return dict(trace.view("health").select("check", "text").rows())


def advice_of(trace: Trace) -> Advice:
    return advise(trace)


def not_checked(trace: Trace) -> str:
    """What rules say that they need and do not find, each once."""
    return " | ".join(sorted({unknown.needs for unknown in advise(trace).unknown}))


def quiet(trace: Trace) -> None:
    """Damage makes no confident advice: the whole program has none either."""
    assert [found.rule for found in advise(trace).findings if found.confidence == "high"] == []


def every(*looks: Looks) -> Looks:
    """Several looks at a trace as one."""

    def look(trace: Trace) -> None:
        for one in looks:
            one(trace)

    return look


def held_by_views(**figures: object) -> Looks:
    """Figures of the steps, by metric with `_` for a space; None is an unknown one."""

    def look(trace: Trace) -> None:
        rows = trace.view("overview").filter(pl.col("section").is_in(["steps", "execution"]))
        told = dict(rows.select("metric", "text").rows())
        for metric, expected in figures.items():
            assert told.get(metric.replace("_", " ")) == expected, metric

    return look


def linked(trace: Trace) -> int:
    """How many device slices have a launch."""
    return int(trace.slices["launch"].is_not_null().sum())


def names_of(trace: Trace, ids: pl.Series) -> list[str | None]:
    return trace.slices["name"].gather(ids).cast(pl.String).to_list()
