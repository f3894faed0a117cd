"""Compares the ranks of a job: how the time of their steps divides, and where ranks differ."""

from typing import Any, Literal

import polars as pl

from selftime.analysis.ranks.job_ranks import RankOfJob, Ranks, collectives_on_one_clock
from selftime.analysis.ranks.lateness import (
    STEP_TIME_PARTS,
    collectives_with_rounds,
    counted_steps,
    differing_time_categories_of_ranks,
    rank_lateness_by_round,
)
from selftime.analysis.ranks.rank_places import rank_places
from selftime.schema import Column
from selftime.units import count_text
from selftime.views.view_declaration import view

_STEP_TIME_COLUMNS = ("time", "host_time", "device_time", *STEP_TIME_PARTS)


@view(
    Column("label", pl.String, "name", "The name of the rank."),
    Column("rank", pl.Int64, "id", "The rank's number; null if unknown.", True),
    Column("step", pl.Int64, "id", "The number of the step; null if not by step.", True),
    Column(
        "steps",
        pl.Int64,
        "count",
        "The number of recorded steps of the rank that count for averages.",
        True,
    ),
    Column(
        "time",
        pl.Float64,
        "ns",
        "The rank's average time of a step, until done on host and device.",
        True,
    ),
    Column(
        "kernel",
        pl.Float64,
        "ns",
        "Time per step in which a kernel ran that is not a collective.",
        True,
    ),
    Column(
        "communication",
        pl.Float64,
        "ns",
        "Time per step in which a collective ran, but no other kernel, copy or fill.",
        True,
    ),
    Column(
        "data_loading",
        pl.Float64,
        "ns",
        "Time per step in which the host waited for the next batch while the device was idle.",
        True,
    ),
    Column(
        "cpu",
        pl.Float64,
        "ns",
        "Device-idle time per step in host operators outside runtime calls and data loading.",
        True,
    ),
    Column(
        "waited",
        pl.Float64,
        "ns",
        "Time per step that the rank waited in collectives for the last rank to begin them.",
        True,
    ),
    Column(
        "late",
        pl.Float64,
        "ns",
        "The most by which this rank began a collective of a step later than the others.",
        True,
    ),
    Column(
        "differs",
        pl.String,
        "sentence",
        "The time categories in which this rank's steps differ from other ranks' steps.",
        True,
    ),
    Column(
        "host_time",
        pl.Float64,
        "ns",
        "Time per step from the step's start to its end on the host.",
        True,
    ),
    Column(
        "device_time",
        pl.Float64,
        "ns",
        "Time per step between the ends of the device work of two successive steps.",
        True,
    ),
    Column("memcpy", pl.Float64, "ns", "Time per step in which a copy ran, but no kernel.", True),
    Column(
        "memset",
        pl.Float64,
        "ns",
        "Time per step in which a fill ran, but no kernel or copy.",
        True,
    ),
    Column(
        "runtime",
        pl.Float64,
        "ns",
        "Time per step in which the host was in a runtime call while the device was idle.",
        True,
    ),
    Column(
        "other",
        pl.Float64,
        "ns",
        "Time per step that none of the other time categories explains.",
        True,
    ),
    Column(
        "transfer",
        pl.Float64,
        "ns",
        "Time per step in collectives after the last rank began them.",
        True,
    ),
    Column(
        "last",
        pl.Int64,
        "count",
        "The number of collectives that this rank was the last to begin.",
        True,
    ),
    Column(
        "collectives",
        pl.Int64,
        "count",
        "The number of collectives that the rank took part in, in all steps.",
        True,
    ),
    Column(
        "matched",
        pl.Int64,
        "count",
        "The number of the rank's collectives that another rank's trace contains too.",
        True,
    ),
    Column(
        "clock",
        pl.Int64,
        "ns",
        "What must be added to the rank's clock to get the common clock.",
        True,
    ),
    Column(
        "drift",
        pl.Float64,
        "ratio",
        "Seconds per second that the rank's clock loses against the common clock.",
        True,
    ),
    Column(
        "residual",
        pl.Float64,
        "ns",
        "Median difference between ranks of the ends of collectives, with clocks corrected.",
        True,
    ),
    Column(
        "own_work",
        pl.Float64,
        "ns",
        "Time per step in which the rank did not just communicate: `time` less `communication`.",
        True,
    ),
    Column(
        "stage",
        pl.Int64,
        "id",
        "The stage of a pipeline that the rank computes, by its messages, else by its process "
        "group; null without a pipeline.",
        True,
    ),
    Column("host", pl.String, "name", "The machine that the rank ran on; null if unknown.", True),
    Column("device", pl.String, "name", "The name of the rank's device.", True),
    Column("note", pl.String, "sentence", "Problems with the rank's trace.", True),
)
def ranks(job: Ranks, *, by: Literal["rank", "step"] = "rank") -> pl.DataFrame:
    """Each rank of a job: the average time of its steps, its waits, and how it differs from others.

    Times are means over the steps that count; `by="step"` has a row for each step of each rank. The
    columns from kernel to other are those of `steps` and add up to the time. A difference is
    reported if the variation between steps does not explain it. Missing ranks have a row with a
    note. The clocks are aligned at the ends of collectives; the correction of the reference rank is
    0.
    """
    every = job.ranks_by_key()
    table = _table_by_step(job, every) if by == "step" else _table_by_rank(job, every)
    return table.sort("rank", "label", "step", nulls_last=True)


def _table_by_rank(job: Ranks, rank_by_key: dict[int, RankOfJob]) -> pl.DataFrame:
    rows = _rows_by_rank(job, rank_by_key)
    rows += [
        {"label": f"rank {rank}", "rank": rank, "note": "missing: there is no trace of it"}
        for rank in job.missing
    ]
    return pl.DataFrame(rows, schema={c.name: c.dtype for c in ranks.columns}, orient="row")


def _rows_by_rank(job: Ranks, rank_by_key: dict[int, RankOfJob]) -> list[dict[str, Any]]:
    clocks, steps, differs = (
        collectives_on_one_clock(job).clocks,
        counted_steps(job),
        differing_time_categories_of_ranks(job),
    )
    of_rounds = (
        rank_lateness_by_round(job)
        .group_by("rank")
        .agg(pl.col("waited", "late", "transfer").mean())
    )
    waits = {row.pop("rank"): row for row in of_rounds.iter_rows(named=True)}
    shared, notes = _collective_count_columns_by_rank(job), _notes_on_unshared_steps(job)
    places = rank_places(job)
    rows = []
    for key, rank in rank_by_key.items():
        row: dict[str, Any] = {
            "label": rank.label,
            "rank": rank.rank,
            "device": rank.summary.device,
            "stage": places.stage.get(key),
            "host": places.host.get(key),
        }
        if key in steps:
            row |= steps[key].select(pl.col(_STEP_TIME_COLUMNS).mean()).row(0, named=True)
            row["steps"] = int(rank.summary.steps["counted"].sum())
            own_work = (pl.col("time") - pl.col("communication")).mean()
            row["own_work"] = steps[key].select(own_work).item()
        clock = clocks.clock_by_rank.get(key)
        if clock is not None and clock.residual is not None and len(rank_by_key) > 1:
            row |= {"clock": clock.offset, "drift": clock.drift, "residual": clock.residual}
        row |= waits.get(key, {}) | shared.get(key, {})
        row["note"] = notes.get(key)
        row["differs"] = ", ".join(differs.get(key, [])).replace("_", " ") or None
        rows.append(row)
    return rows


def _collective_count_columns_by_rank(job: Ranks) -> dict[int, dict[str, Any]]:
    """Counts each rank's collectives: all, those also found on other ranks, those begun last."""
    rows = collectives_on_one_clock(job).rows
    if not rows.height:
        return {}
    table = rows.group_by("rank").agg(
        pl.len().alias("collectives"),
        pl.col("match").count().alias("matched"),
        pl.when(pl.col("last").count() > 0).then(pl.col("last").sum()).alias("last"),
    )
    return {row.pop("rank"): row for row in table.iter_rows(named=True)}


def _notes_on_unshared_steps(job: Ranks) -> dict[int, str]:
    """Returns a note for each rank that recorded steps that some other ranks did not record."""
    own = collectives_with_rounds(job).drop_nulls("round").select("rank", "round").unique()
    every = own["rank"].n_unique()
    common = own.filter(pl.len().over("round") == every).group_by("rank").len("common")
    both = own.group_by("rank").len("all").join(common, on="rank", how="left").fill_null(0)
    return {
        rank: (
            f"the other ranks recorded {count_text(shared)} of its {count_text(recorded)} steps "
            "with collectives, too"
        )
        for rank, recorded, shared in both.select("rank", "all", "common").rows()
        if shared < recorded
    }


def _table_by_step(job: Ranks, rank_by_key: dict[int, RankOfJob]) -> pl.DataFrame:
    """Returns a row for each step of each rank, with its waits in collectives."""
    places = rank_places(job)
    tables = [
        rank.summary.steps.select(
            pl.col(_STEP_TIME_COLUMNS).cast(pl.Float64),
            own_work=(pl.col("time") - pl.col("communication")).cast(pl.Float64),
            step=pl.col("number").cast(pl.Int64),
            place=pl.int_range(pl.len(), dtype=pl.Int64),
            key=pl.lit(key, pl.Int64),
            label=pl.lit(rank.label),
            rank=pl.lit(rank.rank, pl.Int64),
            stage=pl.lit(places.stage.get(key), pl.Int64),
            host=pl.lit(places.host.get(key), pl.String),
        )
        for key, rank in rank_by_key.items()
        if rank.summary.steps.height
    ]
    if not tables:
        return ranks.table_of(pl.DataFrame())
    steps = pl.concat(tables)
    for more in (_waits_by_step(job), _lateness_by_step(job)):
        if more.height:
            steps = steps.join(more, on=("key", "place"), how="left")
    return ranks.table_of(steps)


def _waits_by_step(job: Ranks) -> pl.DataFrame:
    """Returns the waits in collectives by rank (key) and index of its step (place)."""
    found = collectives_with_rounds(job)
    if not found.height:
        return pl.DataFrame()
    told = pl.col("wait").count() > 0
    return (
        found.filter(pl.col("place").is_not_null())
        .group_by("rank", "place")
        .agg(
            pl.when(told).then(pl.col("waited").sum()).alias("waited"),
            pl.when(told).then(pl.col("last").sum()).alias("last"),
            pl.col("transfer").sum(),
            pl.len().alias("collectives"),
            pl.col("match").count().alias("matched"),
        )
        .select(
            pl.col("rank").alias("key"),
            pl.col("place").cast(pl.Int64),
            pl.all().exclude("rank", "place"),
        )
    )


def _lateness_by_step(job: Ranks) -> pl.DataFrame:
    """Returns how late (ns) each rank came to collectives, by rank (key) and step index (place)."""
    places = collectives_with_rounds(job).group_by("rank", "round").agg(pl.col("place").min())
    both = rank_lateness_by_round(job).join(places, on=("rank", "round"))
    return (
        both.drop_nulls(["place", "late"])
        .group_by(key="rank", place=pl.col("place").cast(pl.Int64))
        .agg(pl.col("late").last())
    )
