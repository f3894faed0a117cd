"""Where a program's steps begin and end, by the best evidence that a trace holds.

Steps are taken from the profiler's own annotations on the host, else from the optimizer's steps,
else the whole recording is one. Device-side copies of annotations are never steps: they last from
the first kernel to the last, if that.
"""

import polars as pl

from selftime import names
from selftime.trace import Trace
from selftime.views.accounts.named import of_kind, whose_name

__all__ = ["find_steps", "window"]


def find_steps(trace: Trace) -> pl.DataFrame:
    """Steps in order of time: columns number, start, end (ns), source, partial."""
    host = of_kind(trace, "host").filter(pl.col("duration").is_not_null())
    annotated = _annotated(host)
    if annotated.height:
        return annotated
    optimized = _between_optimizer_steps(host)
    if optimized.height:
        return optimized
    start, end = window(trace)
    whole = {
        "number": [0],
        "start": [start],
        "end": [end],
        "source": ["window"],
        "partial": [False],
    }
    return pl.DataFrame(whole if end > start else {name: [] for name in whole}, schema=_SCHEMA)


_SCHEMA = {
    "number": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "source": pl.String,
    "partial": pl.Boolean,
}


def window(trace: Trace) -> tuple[int, int]:
    """Begin and end of the recording, from host and device work; the profiler's own is left out."""
    tracks = trace.tracks.filter(pl.col("kind").is_in(["host", "python", "device"]))["id"]
    work = trace.slices.filter(pl.col("track").is_in(tracks.implode()))
    if not work.height:
        return 0, 0
    ends = work.select((pl.col("start") + pl.col("duration").fill_null(0)).max()).item()
    return int(work.select(pl.col("start").min()).item()), int(ends)


def _annotated(host: pl.DataFrame) -> pl.DataFrame:
    """The profiler's steps on the thread that has most of them, less those within others."""
    steps = whose_name(host, lambda name: names.step_number(name) is not None)
    steps = _busiest_track(steps).sort("start")
    text = steps["name"].cast(pl.String).to_list()
    table = pl.DataFrame(
        {
            "number": [names.step_number(name) for name in text],
            "start": steps["start"],
            "end": steps["start"] + steps["duration"],
            "source": ["profiler"] * steps.height,
            "partial": [False] * steps.height,
        },
        schema=_SCHEMA,
    )
    reach = pl.col("end").shift(1).cum_max().fill_null(-1)
    return table.filter(pl.col("start") >= reach)


def _between_optimizer_steps(host: pl.DataFrame) -> pl.DataFrame:
    """From the end of one optimizer step to the end of the next; the first began before."""
    steps = _busiest_track(whose_name(host, names.is_optimizer_step)).sort("start")
    if not steps.height:
        return pl.DataFrame(schema=_SCHEMA)
    first = steps["name"].cast(pl.String)[0]
    steps = steps.filter(pl.col("name").cast(pl.String) == first)
    ends = (steps["start"] + steps["duration"]).to_list()
    begins = [int(host.select(pl.col("start").min()).item()), *ends[:-1]]
    count = len(ends)
    return pl.DataFrame(
        {
            "number": range(count),
            "start": begins,
            "end": ends,
            "source": ["optimizer"] * count,
            "partial": [number == 0 for number in range(count)],
        },
        schema=_SCHEMA,
    )


def _busiest_track(slices: pl.DataFrame) -> pl.DataFrame:
    if not slices.height:
        return slices
    tracks = slices.group_by("track").len().sort("len", "track", descending=[True, False])
    return slices.filter(pl.col("track") == tracks["track"][0])
