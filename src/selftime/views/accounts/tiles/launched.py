"""Device work by the calls that launched it."""

import polars as pl

from selftime.trace import Trace
from selftime.views.accounts.kept import kept
from selftime.views.accounts.named import of_kind

__all__ = ["launched_work"]


@kept
def launched_work(trace: Trace) -> pl.DataFrame:
    """Work whose launch is known, in the order of launches.

    Columns: id, launch, start, duration, end; track, thread and launched (where and when the call
    began); device, stream, correlation.
    """
    threads = trace.tracks.select(pl.col("id").alias("track"), "thread")
    work = of_kind(trace, "device").filter(pl.col("launch").is_not_null())
    call = trace.slices.select("track", "start")[work["launch"]]
    return (
        work.select("id", "launch", "start", "duration")
        .with_columns(
            call.select(pl.col("track"), launched=pl.col("start")),
            end=pl.col("start") + pl.col("duration").fill_null(0),
        )
        .join(threads, on="track", how="left", maintain_order="left")
        .join(
            trace.device_args.select("id", "device", "stream", "correlation"),
            on="id",
            how="left",
            maintain_order="left",
        )
        .sort("launch", "id")
    )
