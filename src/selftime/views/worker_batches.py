"""The batches that DataLoader workers made, with times on the trace's clock."""

import polars as pl

from selftime.analysis.data_loader_workers import loader_worker_tables
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


@view(
    Column(
        "start",
        pl.Int64,
        "instant",
        "When the worker process began to make the batch; null if unknown.",
        True,
    ),
    Column(
        "duration",
        pl.Int64,
        "ns",
        "Time from the start of making the batch until it was in the queue.",
    ),
    Column(
        "loader",
        pl.Int64,
        "id",
        "The DataLoader's number; DataLoaders are numbered in order of first use.",
    ),
    Column("worker", pl.Int64, "id", "The number of the worker process that made the batch."),
    Column("batch", pl.Int64, "id", "The batch's number in its epoch."),
    Column(
        "waited",
        pl.Int64,
        "ns",
        "Time that the worker process waited for the request for the batch.",
    ),
    Column(
        "making",
        pl.Int64,
        "ns",
        "Time spent making samples, and collating samples if that was not measured separately.",
    ),
    Column(
        "collating",
        pl.Int64,
        "ns",
        "Time spent collating the samples into the batch; null if not recorded.",
        True,
    ),
    Column(
        "putting",
        pl.Int64,
        "ns",
        "Time spent putting the batch into the queue to the training loop.",
    ),
    Column("cpu", pl.Int64, "ns", "CPU time that the worker's main thread spent on the batch."),
    Column(
        "samples",
        pl.Int64,
        "count",
        "The number of samples in the batch; null if not counted.",
        True,
    ),
    Column(
        "longest",
        pl.Int64,
        "ns",
        "Time to make the slowest sample of the batch; null if not measured.",
        True,
    ),
    Column(
        "taken",
        pl.Int64,
        "instant",
        "When the training loop took the batch from the queue; null if it did not.",
        True,
    ),
    Column(
        "ready_time",
        pl.Int64,
        "ns",
        "Time the batch was ready before the loop took it; negative if it was sent late.",
        True,
    ),
    Column(
        "ready",
        pl.Int64,
        "count",
        "The number of other batches that were ready when the loop took this one.",
        True,
    ),
    needs=("workers",),
)
def worker_batches(trace: Trace) -> pl.DataFrame:
    """The latest batches of each DataLoader worker: when each was made, and when the loop took it.

    The training loop is starved where `ready` is 0 and `ready_time` is short: it waited for that
    batch. Instants are converted to the trace's clock by two readings of both clocks; the fact
    `workers.clock.error_ns` bounds the error.
    """
    tables = loader_worker_tables(trace)
    if tables is None:
        return pl.DataFrame(schema={column.name: column.dtype for column in worker_batches.columns})
    joined = pl.col("joined").fill_null(pl.col("made"))
    return (
        tables.batches.sort("begun", "loader", "worker", "index")
        .with_columns(
            start=pl.col("begun") + tables.time_origin,
            duration=pl.col("put") - pl.col("begun"),
            batch="index",
            making=joined - pl.col("begun"),
            collating=pl.col("made") - pl.col("joined"),
            putting=pl.col("put") - pl.col("made"),
            ready_time=pl.col("taken") - pl.col("put"),
        )
        .with_columns(taken=pl.col("taken") + tables.time_origin)
        .select(pl.col(column.name).cast(column.dtype) for column in worker_batches.columns)
    )
