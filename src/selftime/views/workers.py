"""What the workers of DataLoaders do, by line or by worker."""

from typing import Final, Literal

import polars as pl

from selftime.analysis.loader_workers import PARTS, WorkerTables, worker_tables
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view

_MEASURED: Final = {
    "samples": "making",
    "collate": "collating",
    "put": "putting",
    "wait": "waiting",
}
"""The parts of a worker's time, by the column that holds each."""

_LINE: Final = ("file", "line", "function", "own")


@view(
    Column("part", pl.String, "name", "What it is of: samples, collate, put or wait."),
    Column("file", pl.String, "text", "The source file; null: no line of it is told.", True),
    Column("line", pl.Int32, "id", "The line, from 1.", True),
    Column("time", pl.Int64, "ns", "Time of the workers in it, over all of them."),
    Column("share", pl.Float64, "ratio", "Of the time of the workers, waiting included.", True),
    Column(
        "per_sample", pl.Float64, "ns", "The time for each sample, where they are counted.", True
    ),
    Column("total", pl.Int64, "ns", "Time with that of own lines called from there.", True),
    Column("function", pl.String, "name", "The function the line is in.", True),
    Column("own", pl.Boolean, "flag", "Whether it is the program's own and no library's.", True),
    Column("loader", pl.Int64, "id", "The loader, in the order of their first iterators."),
    Column("dataset", pl.String, "name", "The class of its data set.", True),
    Column("worker", pl.Int64, "id", "The worker's number; null: all of the loader.", True),
    Column("batches", pl.Int64, "count", "Batches that were made."),
    Column("samples", pl.Int64, "count", "Samples that were made, where they are counted.", True),
    Column("seen", pl.Int64, "count", "How often a sample of the stack met the line.", True),
    needs=("workers",),
    sums=("time", "share"),
)
def workers(trace: Trace, *, by: Literal["line", "worker"] = "line") -> pl.DataFrame:
    """What worker processes spend their time with, by the program's lines or by worker.

    The times of `part` are measured: making samples, joining them (collate), putting the batch into
    the queue, waiting to be asked for one. A line's time is its part's, by how often the line was
    seen running, or the library code that it called; where no line of the program runs, the
    library's own line tells what was called. Of n stacks that were seen, a share s is known to
    about 2 * sqrt(s * (1 - s) / n). Each worker's first batch, in which files are opened and caches
    filled, is left out unless it is the only one.
    """
    tables = worker_tables(trace)
    if tables is None:
        return pl.DataFrame(schema={column.name: column.dtype for column in workers.columns})
    rows = _parts(tables)
    if by == "line":
        rows = _by_line(rows, tables)
    whole = pl.col("time").sum().over("loader", *(["worker"] if by == "worker" else []))
    return (
        rows.with_columns(
            share=pl.when(whole > 0).then(pl.col("time") / whole),
            per_sample=pl.when(pl.col("samples") > 0).then(pl.col("time") / pl.col("samples")),
            samples=pl.when(pl.col("samples") > 0).then("samples"),
            dataset=_dataset(rows, tables),
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


def _parts(tables: WorkerTables) -> pl.DataFrame:
    """One row for each part of each worker."""
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
        for part, measured in _MEASURED.items()
    )


def _by_line(parts: pl.DataFrame, tables: WorkerTables) -> pl.DataFrame:
    """Lines in the stead of the parts that they are of, over all workers of a loader."""
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
    told = lines.group_by("loader", "part", *_LINE).agg(
        pl.col("time", "total").sum().round(), pl.col("seen").sum()
    )
    rest = parts.join(seen.select(key).unique(), on=key, how="anti").with_columns(
        pl.col("time", "total").cast(pl.Float64)
    )
    rest = rest.group_by("loader", "part", *_LINE).agg(
        pl.col("time").sum(), pl.col("total").first(), pl.col("seen").first()
    )
    counts = tables.processes.group_by("loader").agg(pl.col("batches", "samples").sum())
    table = pl.concat([told, rest.select(told.columns)]).join(counts, on="loader", how="left")
    return table.filter((pl.col("time") > 0) | pl.col("file").is_null()).with_columns(
        worker=pl.lit(None, pl.Int64)
    )


def _dataset(rows: pl.DataFrame, tables: WorkerTables) -> pl.Series:
    known = tables.loaders["dataset"]
    at = rows.select(pl.when(pl.col("loader").is_between(0, known.len() - 1)).then("loader"))
    return known.gather(at.to_series().cast(pl.UInt32))


assert set(PARTS) <= _MEASURED.keys()  # noqa: S101 - lines are told of parts that are measured
