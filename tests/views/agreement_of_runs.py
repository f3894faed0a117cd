"""The whole run, its steps and its workers, wherever they are stated."""

from typing import Final

import polars as pl
from tests.views.agreement import Asked, Sides, summed

_OUTSIDE_OF_STEPS: Final = ("start", "imports", "data", "end", "other")
"""Parts of a run before its first step and after its last one, where nothing else is counted."""
_WAITS_FOR_DATA: Final = ("first_batch", "data_wait", "epoch_boundary")
_PART_BY_MEASURED_COLUMN: Final = {
    "making": "samples",
    "collating": "collate",
    "putting": "put",
    "waited": "wait",
}


def _figures(ask: Asked) -> dict[str, float | None]:
    return dict(ask("run_summary").select("metric", "value").rows())


def _total(amounts: pl.Series) -> int:
    return sum(amounts.to_list())


def wall_time_of_a_run(ask: Asked) -> Sides:
    """The parts of `run` add up to the wall time of `run_summary`."""
    wall = _figures(ask)["wall time"]
    yield "parts", wall, ask("run")["time"].sum()
    shares = [round(time / wall, 12) for time in ask("run")["time"]]
    yield "shares", ask("run")["share"].round(12).to_list(), shares


def steps_of_a_kind(ask: Asked) -> Sides:
    """`run_kinds` sums what `run_steps` states of each step."""
    steps = ask("run_steps").with_columns(
        pl.lit(1).alias("count"), (pl.col("excess") > 0).cast(pl.Int64).alias("slow")
    )
    steps = steps.with_columns(pl.col("recorded").cast(pl.Int64)).rename({"time": "total"})
    sums = ("count", "total", "slow", "excess", "recorded")
    yield "sums", summed(steps, ("kind",), *sums), summed(ask("run_kinds"), ("kind",), *sums)
    recorded = steps.filter((pl.col("recorded") > 0).any().over("kind"))
    covered = ask("run_kinds").select("kind", total="covered")
    yield "covered", summed(recorded, ("kind",), "total"), summed(covered, ("kind",), "total")


def steps_of_a_run(ask: Asked) -> Sides:
    """`run_summary` has the sums over all kinds."""
    told, kinds = _figures(ask), ask("run_kinds")
    columns = {
        "steps": "count",
        "slow steps": "slow",
        "slow steps' excess": "excess",
        "recorded steps": "recorded",
    }
    for metric, column in columns.items():
        yield metric, told[metric], kinds[column].sum()
    yield "covered", told["covered"], _total(kinds["covered"]) / (told["wall time"] or 1)


def slow_steps(ask: Asked) -> Sides:
    """With `slow` the view `run_steps` has those rows that have an excess."""
    every = ask("run_steps").filter(pl.col("excess") > 0)
    yield "rows", every.rows(), ask("run_steps", slow=True).sort("step").rows()


def time_of_steps(ask: Asked) -> Sides:
    """What `run` tells of steps, and of what was counted in them, is their time in `run_steps`."""
    run, steps = ask("run"), ask("run_steps")
    part = pl.col("part")
    before = _total(run.filter(part == "recording")["time"]) - _total(steps["recording"])
    inside = _total(run.filter(~part.is_in(_OUTSIDE_OF_STEPS))["time"])
    yield "in steps", inside - before, _total(steps["time"])
    waits = steps.select(pl.sum_horizontal("data_wait", "epoch_boundary").sum()).item()
    yield "waits for data", _total(run.filter(part.is_in(_WAITS_FOR_DATA))["time"]), waits
    for counted in ("evaluation", "garbage_collection", "compile"):
        yield counted, _total(run.filter(part == counted)["time"]), _total(steps[counted])
    counts = run.filter(part == "steps").rename({"what": "kind"})
    kinds = ask("run_kinds")
    yield "count", summed(counts, ("kind",), "count"), summed(kinds, ("kind",), "count")


def recording_in_a_run(ask: Asked) -> Sides:
    """`run` and `run_summary` state selftime's own work."""
    own = ask("run").filter(pl.col("part") == "recording")
    yield "time", own["time"].sum(), _figures(ask)["recording"]


def curve_of_a_run(ask: Asked) -> Sides:
    """`run_curve` leaves out no step, whatever its resolution."""
    steps = ask("run_steps").with_columns(count=1, slow=pl.col("excess") > 0)
    for pixels in (1, 7, 1000):
        curve, keys = ask("run_curve", pixels=pixels), ("kind", "slow", "recorded")
        yield f"{pixels} count", summed(curve, keys, "count"), summed(steps, keys, "count")
        for side, column in ((pl.Expr.max, "longest"), (pl.Expr.min, "shortest")):
            told = dict(curve.group_by("kind").agg(side(pl.col(column))).iter_rows())
            found = dict(steps.group_by("kind").agg(side(pl.col("time"))).iter_rows())
            yield f"{pixels} {column}", told, found


def time_of_workers(ask: Asked) -> Sides:
    """`workers` by line shares out what it states by worker; both count the same batches."""
    by_worker, by_line = ask("workers", by="worker"), ask("workers", by="line")
    keys = ("loader", "part")
    yield "lines", summed(by_line, keys, "time"), summed(by_worker, keys, "time")
    counts = by_worker.unique(("loader", "worker")).group_by("loader").agg(pl.col("batches").sum())
    told = by_line.group_by("loader").agg(pl.col("batches").first())
    yield "batches", dict(told.iter_rows()), dict(counts.iter_rows())


def batches_of_workers(ask: Asked) -> Sides:
    """Where all batches are kept, `workers` sums those of `worker_batches` but each first one."""
    batches = ask("worker_batches").sort("start").with_columns(batches=1)
    at = pl.int_range(pl.len()).over("loader", "worker")
    rest = batches.filter((at > 0) | (pl.len().over("loader", "worker") == 1))
    keys = ("loader", "worker")
    parts = ask("workers", by="worker")
    for column, part in _PART_BY_MEASURED_COLUMN.items():
        told = parts.filter(pl.col("part") == part).rename({"time": column})
        yield column, summed(told, keys, column), summed(rest, keys, column)
    each = parts.unique(keys)
    for column in ("batches", "samples"):
        yield column, summed(each, keys, column), summed(rest, keys, column)
    spent = pl.sum_horizontal("making", "collating", "putting").alias("duration")
    yield "durations", batches["duration"].to_list(), batches.select(spent).to_series().to_list()


OF_RUNS: Final = (
    wall_time_of_a_run,
    steps_of_a_kind,
    steps_of_a_run,
    slow_steps,
    time_of_steps,
    recording_in_a_run,
    curve_of_a_run,
)
OF_WORKERS: Final = (time_of_workers, batches_of_workers)
