"""What DataLoader workers spend their time on, by source line or by worker."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.data_loader_workers import (
    LOADER_WORKER_PARTS,
    LoaderWorkerTables,
    loader_worker_tables,
)
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view

_MEASURED_COLUMNS_BY_PART: Final = {
    "samples": "making",
    "collate": "collating",
    "put": "putting",
    "wait": "waiting",
}
"""Maps what a DataLoader worker does, such as collating, to the column with the measured time."""

_COLUMNS_OF_WORKER_SOURCE_LINE: Final = ("file", "line", "function", "own")


@view(
    Column(
        "part", pl.String, "name", "What the worker processes did: samples, collate, put or wait."
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The source file that worker processes ran; null if no line was seen.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The number, from 1, of the source line that worker processes ran.",
        True,
    ),
    Column(
        "time",
        pl.Int64,
        "ns",
        "Time of the worker processes in the part or line of the row, summed.",
    ),
    Column(
        "share",
        pl.Float64,
        "ratio",
        "The row's time as a share of the worker processes' time, waiting included.",
        True,
    ),
    Column(
        "per_sample",
        pl.Float64,
        "ns",
        "The row's time per sample; null if samples are not counted.",
        True,
    ),
    Column(
        "total",
        pl.Int64,
        "ns",
        "Time in the line, including the program's lines that were called from it.",
        True,
    ),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    Column(
        "own", pl.Boolean, "flag", "Whether the line is the program's own, not a library's.", True
    ),
    Column(
        "loader",
        pl.Int64,
        "id",
        "The DataLoader's number; DataLoaders are numbered in order of first use.",
    ),
    Column("dataset", pl.String, "name", "The class of the DataLoader's dataset.", True),
    Column(
        "worker",
        pl.Int64,
        "id",
        "The worker process's number; null for all workers of the DataLoader.",
        True,
    ),
    Column("batches", pl.Int64, "count", "The number of batches that the worker processes made."),
    Column(
        "samples",
        pl.Int64,
        "count",
        "The number of samples that the worker processes made; null if not counted.",
        True,
    ),
    Column(
        "seen",
        pl.Int64,
        "count",
        "The number of stack samples that found a worker process in the line.",
        True,
    ),
    needs=("workers",),
    sums=("time", "share"),
)
def workers(trace: Trace, *, by: Literal["line", "worker"] = "line") -> pl.DataFrame:
    """What DataLoader workers spend their time on, by source line or by worker.

    The times of `part` are measured: making samples, collating them, putting the batch into the
    queue, waiting for a request. A line's share of its part is estimated by how often samples of
    the stack saw it running, or library code that it called; where no line of the program runs, the
    library's line is shown. With n sampled stacks, a share s is accurate to about 2 * sqrt(s * (1 -
    s) / n). Each worker's first batch, in which files are opened and caches filled, is left out
    unless it is the only one.
    """
    tables = loader_worker_tables(trace)
    if tables is None:
        return pl.DataFrame(schema={column.name: column.dtype for column in workers.columns})
    rows = _part_rows_by_worker(tables)
    if by == "line":
        rows = _part_rows_by_line(rows, tables)
    whole = pl.col("time").sum().over("loader", *(["worker"] if by == "worker" else []))
    return (
        rows.with_columns(
            share=pl.when(whole > 0).then(pl.col("time") / whole),
            per_sample=pl.when(pl.col("samples") > 0).then(pl.col("time") / pl.col("samples")),
            samples=pl.when(pl.col("samples") > 0).then("samples"),
            dataset=_dataset_names(rows, tables),
        )
        .sort(
            "loader",
            "worker",
            "time",
            "part",
            "file",
            "line",
            "function",
            descending=[False, False, True, *[False] * 4],
            nulls_last=True,
        )
        .select(pl.col(column.name).cast(column.dtype) for column in workers.columns)
    )


def _part_rows_by_worker(tables: LoaderWorkerTables) -> pl.DataFrame:
    """Returns the time (ns) of each DataLoader worker's activities, one row per activity."""
    return pl.concat(
        tables.processes.select(
            "loader",
            "worker",
            "batches",
            "samples",
            process=pl.int_range(pl.len(), dtype=pl.Int64),
            part=pl.lit(part),
            time=measured,
            total=pl.lit(None, pl.Int64),
            seen=pl.lit(None, pl.Int64),
            file=pl.lit(None, pl.String),
            line=pl.lit(None, pl.Int64),
            function=pl.lit(None, pl.String),
            own=pl.lit(None, pl.Boolean),
        )
        for part, measured in _MEASURED_COLUMNS_BY_PART.items()
    )


def _part_rows_by_line(parts: pl.DataFrame, tables: LoaderWorkerTables) -> pl.DataFrame:
    """Returns the time (ns) of each activity, such as collating, by DataLoader and source line."""
    key = ("process", "part")
    seen = tables.lines.with_columns(whole=pl.col("self").sum().over(key)).filter(
        pl.col("whole") > 0
    )
    measured = parts.select("loader", *key, measured="time")
    scale = pl.col("measured") / pl.col("whole")
    lines = seen.join(measured, on=key, how="inner").with_columns(
        time=pl.col("self") * scale,
        total=pl.min_horizontal(pl.col("total") * scale, "measured"),
    )
    told = lines.group_by("loader", "part", *_COLUMNS_OF_WORKER_SOURCE_LINE).agg(
        pl.col("time", "total").sum().round(), pl.col("seen").sum()
    )
    rest = parts.join(seen.select(key).unique(), on=key, how="anti").with_columns(
        pl.col("time", "total").cast(pl.Float64)
    )
    rest = rest.group_by("loader", "part", *_COLUMNS_OF_WORKER_SOURCE_LINE).agg(
        pl.col("time").sum(), pl.col("total").first(), pl.col("seen").first()
    )
    counts = tables.processes.group_by("loader").agg(pl.col("batches", "samples").sum())
    table = pl.concat([told, rest.select(told.columns)]).join(counts, on="loader", how="left")
    return table.filter((pl.col("time") > 0) | pl.col("file").is_null()).with_columns(
        worker=pl.lit(None, pl.Int64)
    )


def _dataset_names(rows: pl.DataFrame, tables: LoaderWorkerTables) -> pl.Series:
    known = tables.loaders["dataset"]
    at = rows.select(pl.when(pl.col("loader").is_between(0, known.len() - 1)).then("loader"))
    return known.gather(at.to_series().cast(pl.UInt32))


assert set(LOADER_WORKER_PARTS) <= _MEASURED_COLUMNS_BY_PART.keys()  # noqa: S101 - lines exist of measured parts only
