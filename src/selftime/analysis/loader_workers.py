"""What the workers of DataLoaders recorded of themselves: the fact `workers`, as tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.analysis.cached import cached_per_trace
from selftime.trace import Trace

PARTS: Final = ("samples", "collate")
"""What a worker does with its lines, as the facts number it."""

_LOADERS: Final = {"dataset": pl.String, "workers": pl.Int64, "prefetch_factor": pl.Int64}
_PROCESSES: Final = (
    "loader",
    "worker",
    "threads",
    "lived",
    "batches",
    "samples",
    "waiting",
    "making",
    "collating",
    "putting",
    "cpu",
    "serialising",
    "sending",
    "first_batch",
    "longest",
)
_LINES: Final = ("process", "part", "file", "line", "function", "own", "self", "total", "seen")
_BATCHES: Final = (
    "loader",
    "worker",
    "index",
    "waited",
    "begun",
    "joined",
    "made",
    "put",
    "cpu",
    "samples",
    "longest",
    "taken",
    "ready",
)


@dataclass(frozen=True, slots=True)
class WorkerTables:
    """The record as tables; times in ns."""

    loaders: pl.DataFrame
    processes: pl.DataFrame
    """One row for each worker of a loader, over all processes that were it."""
    lines: pl.DataFrame
    """`process` is the place in `processes`; `self` the time in which a line was seen running."""
    batches: pl.DataFrame
    zero: int | None
    """What a batch's instants count from, in ns from the trace's origin; None if it has none."""


@cached_per_trace
def worker_tables(trace: Trace) -> WorkerTables | None:
    """The tables; None if nothing was recorded, or what there is cannot be read."""
    told = trace.facts.get("workers")
    if not isinstance(told, Mapping):
        return None
    try:
        tables = WorkerTables(
            loaders=pl.DataFrame(told["loaders"], schema=_LOADERS),
            processes=pl.DataFrame(told["processes"], schema=dict.fromkeys(_PROCESSES, pl.Int64)),
            lines=_lines(told["lines"]),
            batches=pl.DataFrame(
                {name: told["batches"][name] for name in _BATCHES},
                schema=dict.fromkeys(_BATCHES, pl.Int64),
            ),
            zero=None if trace.origin is None else int(told["clock"]["zero_ns"]) - trace.origin,
        )
    except (KeyError, TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return None  # a trace may hold anything under this key
    return tables if tables.processes.height else None


def _lines(told: Mapping[str, Any]) -> pl.DataFrame:
    table = pl.DataFrame(
        {name: told[name] for name in _LINES}, schema=dict.fromkeys(_LINES, pl.Int64)
    )
    files = pl.Series(told["files"], dtype=pl.String)
    functions = pl.Series(told["functions"], dtype=pl.String)
    return table.with_columns(
        part=pl.Series(PARTS).gather(table["part"]),
        file=files.gather(table["file"]),
        function=functions.gather(table["function"]),
        own=table["own"] == 1,
    )
