"""The whole run in a few figures: how long it took, how it ended, its steps."""

from collections.abc import Iterator
from typing import Final, TypeAlias

import polars as pl

from selftime.analysis.run.parts import run_parts
from selftime.analysis.run.step_kinds import step_kinds
from selftime.run import Run
from selftime.schema import Column
from selftime.trace import Trace
from selftime.units import Unit, seconds_text, value_text
from selftime.views.view_declaration import view

_NS_PER_S: Final = 1_000_000_000
_NO_END: Final = "the ledger has no end: the process was killed, or still runs"
"""How a run ended whose ledger has no end."""

_Figure: TypeAlias = tuple[str, float | None, Unit, str | None, str]
"""Metric, value, unit, text and definition."""


@view(
    Column("metric", pl.String, "name", "The name of the metric."),
    Column("text", pl.String, "text", "The value of the metric as text; null where unknown.", True),
    Column(
        "value",
        pl.Float64,
        "text",
        "The metric's value as a number in its unit; null for text.",
        True,
    ),
    Column("unit", pl.String, "name", "The unit of the metric's value; `text` for text."),
    Column("definition", pl.String, "sentence", "The definition of the metric."),
)
def run_summary(trace: Trace) -> pl.DataFrame:
    """The whole run in a few figures: wall time, how it ended, its steps and the slow ones.

    The table is empty for a trace without a ledger. `selftime run` writes the ledger of a run
    beside its recording.
    """
    run = trace.run
    figures = [*_figures_of_process(run), *_figures_of_steps(run)] if run.source else []
    rows = [(metric, text, value, unit, doc) for metric, value, unit, text, doc in figures]
    return pl.DataFrame(rows, schema={c.name: c.dtype for c in run_summary.columns}, orient="row")


def _figures_of_process(run: Run) -> Iterator[_Figure]:
    yield _number("wall time", run.wall_ns, "ns", "From the process's start to its end.")
    status = run.facts.get("status")
    ended = str(status) if isinstance(status, str) else None
    text = "How the process ended."
    yield "ended", None, "text", ended if run.is_whole else _NO_END, text
    command = run.facts.get("command")
    words = " ".join(map(str, command)) if isinstance(command, list | tuple) else None
    yield "command", None, "text", words or None, "The program and its arguments."
    for name, text in (("process", "The number of the process."), ("rank", "Its rank in a job.")):
        told = run.facts.get(name)
        known = isinstance(told, int) and not isinstance(told, bool)
        yield name, None, "text", str(told) if known else None, text


def _figures_of_steps(run: Run) -> Iterator[_Figure]:
    kinds = step_kinds(run)
    yield _number("steps", int(kinds["count"].sum()), "count", "Steps of all kinds.")
    text = "Steps of at least twice the median of their kind, and 20 ms longer."
    yield _number("slow steps", int(kinds["slow"].sum()), "count", text)
    text = "How much longer than the median the slow steps took, together."
    yield _number("slow steps' excess", int(kinds["excess"].sum()), "ns", text)
    text = "Steps that a profiler recorded, which slows them down."
    yield _number("recorded steps", int(kinds["recorded"].sum()), "count", text)
    covered = int(kinds["covered"].sum()) / run.wall_ns if run.wall_ns else None
    text = "Share of the wall time in steps of the kinds that were recorded."
    yield _number("covered", covered, "ratio", text)
    parts = run_parts(run).filter(pl.col("part") == "recording")
    text = "Work of selftime in the process."
    yield _number("recording", int(parts["duration"].sum()), "ns", text)


def _number(metric: str, value: float | None, unit: Unit, definition: str) -> _Figure:
    if value is None:
        return metric, None, unit, None, definition
    is_long = unit == "ns" and value >= _NS_PER_S
    text = seconds_text(value) if is_long else value_text(value, unit)
    return metric, float(value), unit, text, definition
