"""What the cases of rough input change in sound events, and how they look at what became of it."""

import json
from collections.abc import Callable
from typing import Any, Final

import polars as pl
from tests.ingest.rough.case import Event, document, events

from selftime.advice import advise
from selftime.trace import Trace

__all__ = [
    "added", "advice_on", "args_of", "changed", "figures", "holds", "row", "text_of", "track_of",
    "with_args",
]  # fmt: skip

NUMBER: Final = 3
"""The operator, launch and kernel that a case changes."""


def changed(change: Event, *, name: str = f"op{NUMBER}", made: list[Event] | None = None) -> bytes:
    """Events of which one has other fields; a field that is `...` is left out."""
    made = events() if made is None else made
    [at] = [place for place, event in enumerate(made) if event["name"] == name]
    both = {**made[at], **change}
    made[at] = {key: value for key, value in both.items() if value is not ...}
    return document(made)


def with_args(args: Event, name: str = f"op{NUMBER}") -> bytes:
    [told] = [event["args"] for event in events() if event["name"] == name]
    return changed({"args": {**told, **args}}, name=name)


def added(*more: Event) -> bytes:
    return document([*events(), *more])


def holds(told: Callable[[Trace], bool]) -> Callable[[Trace], None]:
    def check(trace: Trace) -> None:
        assert told(trace)

    return check


def row(trace: Trace, name: str = f"op{NUMBER}") -> dict[str, Any]:
    return trace.slices.filter(pl.col("name") == name).row(0, named=True)


def args_of(trace: Trace, table: str, name: str) -> dict[str, Any]:
    found: pl.DataFrame = trace.tables()[table]
    return found.filter(pl.col("id") == row(trace, name)["id"]).row(0, named=True)


def track_of(trace: Trace, name: str = f"op{NUMBER}") -> dict[str, Any]:
    return trace.tracks.row(row(trace, name)["track"], named=True)


def text_of(trace: Trace, check: str) -> str:
    health = trace.view("health")
    return " | ".join(health.filter(pl.col("check") == check)["text"])


def advice_on(trace: Trace) -> dict[str, Any]:
    """The advice as programs get it."""
    found: dict[str, Any] = json.loads(advise(trace).to_json())
    return found


def figures(trace: Trace) -> dict[str, float | None]:
    """The overview's values, by section and metric."""
    table = trace.view("overview")
    return {
        f"{section} {metric}": value
        for section, metric, value in table.select("section", "metric", "value").rows()
    }
