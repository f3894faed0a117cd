"""Reads the times and counts that DataLoader workers recorded about themselves in a trace."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.trace import Trace

LOADER_WORKER_PARTS: Final = ("samples", "collate")
"""What a DataLoader worker does in a source line: it loads samples, or collates them. The index is
the code in the trace.
"""

_DATA_LOADERS_SCHEMA: Final = {
    "dataset": pl.String,
    "workers": pl.Int64,
    "prefetch_factor": pl.Int64,
}
_WORKER_PROCESS_COLUMNS: Final = (
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
_WORKER_LINE_COLUMNS: Final = (
    "process",
    "part",
    "file",
    "line",
    "function",
    "own",
    "self",
    "total",
    "seen",
)
_WORKER_BATCH_COLUMNS: Final = (
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
class LoaderWorkerTables:
    """Tables of the times and counts that DataLoader workers recorded; times in ns."""

    loaders: pl.DataFrame
    processes: pl.DataFrame
    """One row for each worker number of a DataLoader, summed over all processes that had the
    number.
    """
    lines: pl.DataFrame
    """One row for each source line of a worker. `process` is the row of `processes`; `self` is the
    time in ns in which stack samples saw the line running.
    """
    batches: pl.DataFrame
    time_origin: int | None
    """The instant from which the times in `batches` count, in ns from the trace's origin; None if
    unknown.
    """


@cached_per_trace
def loader_worker_tables(trace: Trace) -> LoaderWorkerTables | None:
    """Returns tables of what DataLoader workers recorded; None if nothing valid was recorded."""
    told = trace.facts.get("workers")
    if not isinstance(told, Mapping):
        return None
    try:
        tables = LoaderWorkerTables(
            loaders=pl.DataFrame(told["loaders"], schema=_DATA_LOADERS_SCHEMA),
            processes=pl.DataFrame(
                told["processes"], schema=dict.fromkeys(_WORKER_PROCESS_COLUMNS, pl.Int64)
            ),
            lines=_worker_line_table(told["lines"]),
            batches=pl.DataFrame(
                {name: told["batches"][name] for name in _WORKER_BATCH_COLUMNS},
                schema=dict.fromkeys(_WORKER_BATCH_COLUMNS, pl.Int64),
            ),
            time_origin=None
            if trace.origin is None
            else int(told["clock"]["zero_ns"]) - trace.origin,
        )
    except (KeyError, TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return None  # a trace may hold anything under this key
    return tables if tables.processes.height else None


def _worker_line_table(recorded_lines: Mapping[str, Any]) -> pl.DataFrame:
    table = pl.DataFrame(
        {name: recorded_lines[name] for name in _WORKER_LINE_COLUMNS},
        schema=dict.fromkeys(_WORKER_LINE_COLUMNS, pl.Int64),
    )
    files = pl.Series(recorded_lines["files"], dtype=pl.String)
    functions = pl.Series(recorded_lines["functions"], dtype=pl.String)
    return table.with_columns(
        part=pl.Series(LOADER_WORKER_PARTS).gather(table["part"]),
        file=files.gather(table["file"]),
        function=functions.gather(table["function"]),
        own=table["own"] == 1,
    )
