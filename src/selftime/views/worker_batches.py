"""Each batch that a worker of a DataLoader made, on the trace's axis."""

import polars as pl

from selftime.analysis.loader_workers import worker_tables
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view


@view(
    Column("start", pl.Int64, "instant", "When the worker was told to make it, if known.", True),
    Column("duration", pl.Int64, "ns", "From there until it lay in the queue."),
    Column("loader", pl.Int64, "id", "The loader, in the order of their first iterators."),
    Column("worker", pl.Int64, "id", "The worker's number."),
    Column("batch", pl.Int64, "id", "The batch's number in its epoch."),
    Column("waited", pl.Int64, "ns", "How long the worker had waited to be told."),
    Column("making", pl.Int64, "ns", "Making samples; all of it, if no collation was seen."),
    Column("collating", pl.Int64, "ns", "Joining them, if that was seen.", True),
    Column("putting", pl.Int64, "ns", "Putting the batch into the queue."),
    Column("cpu", pl.Int64, "ns", "CPU time of the worker's main thread for it."),
    Column("samples", pl.Int64, "count", "Samples in it, where they are counted.", True),
    Column("longest", pl.Int64, "ns", "The sample that took longest, if told apart.", True),
    Column("taken", pl.Int64, "instant", "When the loop took it, if it did.", True),
    Column("lay", pl.Int64, "ns", "How long it was ready before; below 0: sent late.", True),
    Column("ready", pl.Int64, "count", "Batches that were ready besides, then.", True),
    needs=("workers",),
)
def worker_batches(trace: Trace) -> pl.DataFrame:
    """The latest batches of each worker, when each was made and taken, and how many were ready.

    The loop starves where `ready` is 0 and `lay` is short: it waited for that batch. Instants are
    on the trace's axis, by two readings of both clocks; the fact `workers.clock.error_ns` bounds
    the error.
    """
    tables = worker_tables(trace)
    if tables is None:
        return pl.DataFrame(schema={column.name: column.dtype for column in worker_batches.columns})
    joined = pl.col("joined").fill_null(pl.col("made"))
    return (
        tables.batches.sort("begun", "loader", "worker", "index")
        .with_columns(
            start=pl.col("begun") + tables.zero,
            duration=pl.col("put") - pl.col("begun"),
            batch="index",
            making=joined - pl.col("begun"),
            collating=pl.col("made") - pl.col("joined"),
            putting=pl.col("put") - pl.col("made"),
            lay=pl.col("taken") - pl.col("put"),
        )
        .with_columns(taken=pl.col("taken") + tables.zero)
        .select(pl.col(column.name).cast(column.dtype) for column in worker_batches.columns)
    )
