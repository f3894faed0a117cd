"""Finds the steps of a run that a trace holds, on the trace's own clock."""

import polars as pl

from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.trace import Trace


def step_starts_in_trace(trace: Trace) -> pl.DataFrame:
    """Returns where the trace holds steps of the run: segment, trace_start (ns).

    A recorded step of the run is the step of the trace that ends at the same instant, or within
    half of its duration of that: the two clocks differ by far less. Begins are not compared, for
    the trace leaves out what the recorder does between two steps. The table is empty if either
    clock is not known in relation to the Unix epoch.
    """
    run = trace.run
    recorded = run.segments.filter("recorded")
    found = {"segment": pl.UInt32, "trace_start": pl.Int64}
    if run.began_at is None or trace.origin is None or not recorded.height:
        return pl.DataFrame(schema=found)
    shift = run.began_at - trace.origin
    ended = pl.col("start") + pl.col("duration") + shift
    steps = recorded.select(pl.col("id").alias("segment"), "duration", ended.alias("ended"))
    in_trace = steps_with_counted_flags(trace).select(pl.col("start").alias("trace_start"), "end")
    joined = steps.sort("ended").join_asof(
        in_trace.sort("end"), left_on="ended", right_on="end", strategy="nearest", coalesce=False
    )
    apart = (pl.col("ended") - pl.col("end")).abs()
    return joined.filter(2 * apart <= pl.col("duration")).select(
        pl.col(name).cast(dtype) for name, dtype in found.items()
    )
