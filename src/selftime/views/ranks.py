"""The ranks of a job side by side: what their steps are made of, and in what they differ."""

from typing import Any, Literal

import polars as pl

from selftime.analysis.ranks.differences import PARTS, counted_steps, differing
from selftime.analysis.ranks.lateness import rounds, with_rounds
from selftime.analysis.ranks.ranks import Rank, Ranks, joined_ranks
from selftime.schema import Column
from selftime.views.base import view

_TIMES = ("time", "host_time", "device_time", *PARTS)


@view(
    Column("label", pl.String, "name", "What the rank is called."),
    Column("rank", pl.Int64, "id", "Its number, if it is known.", True),
    Column("step", pl.Int64, "id", "The step, if by step.", True),
    Column("steps", pl.Int64, "count", "Steps that count, of those recorded.", True),
    Column("time", pl.Float64, "ns", "Of a step: until it was done on host and device.", True),
    Column("kernel", pl.Float64, "ns", "Of the time: a kernel but a collective ran.", True),
    Column("communication", pl.Float64, "ns", "Of the rest: a collective ran, exposed.", True),
    Column("data_loading", pl.Float64, "ns", "Of the rest: it waited for the next batch.", True),
    Column("cpu", pl.Float64, "ns", "Of the rest: the host was in an operator.", True),
    Column("waited", pl.Float64, "ns", "In collectives, until the last rank had come.", True),
    Column("late", pl.Float64, "ns", "By how much it came later than the others, at most.", True),
    Column("differs", pl.String, "sentence", "Of what its steps have more or less.", True),
    Column("host_time", pl.Float64, "ns", "From a step's begin to its end on the host.", True),
    Column("device_time", pl.Float64, "ns", "Between the ends of two steps' work.", True),
    Column("memcpy", pl.Float64, "ns", "Of the time, after kernels: a copy ran.", True),
    Column("memset", pl.Float64, "ns", "Of the rest: a fill ran.", True),
    Column("runtime", pl.Float64, "ns", "Of the rest: the host was in a runtime call.", True),
    Column("other", pl.Float64, "ns", "What is left of the time.", True),
    Column("transfer", pl.Float64, "ns", "In collectives, after the last rank had come.", True),
    Column("last", pl.Int64, "count", "Of all these: to which it came last.", True),
    Column(
        "collectives", pl.Int64, "count", "Collectives that it took part in, in all steps.", True
    ),
    Column("matched", pl.Int64, "count", "Of these: found on another rank too.", True),
    Column("clock", pl.Int64, "ns", "To be added to its clock to be the common one.", True),
    Column("drift", pl.Float64, "ratio", "Seconds that its clock loses a second.", True),
    Column(
        "residual",
        pl.Float64,
        "ns",
        "Median difference that aligned ends keep after this shift.",
        True,
    ),
    Column("device", pl.String, "name", "What its device is called.", True),
    Column("note", pl.String, "sentence", "Problems with the rank's trace.", True),
)
def ranks(job: Ranks, *, by: Literal["rank", "step"] = "rank") -> pl.DataFrame:
    """Each rank of a job: what its steps take on average, what it waited, in what it differs.

    Times are means over the steps that count; `by="step"` has a row for each step of each rank. The
    columns from kernel to other are those of `steps` and add up to the time. Whether a rank differs
    is told where more speaks for it than what varies from step to step. Ranks that are missing have
    a row with a note. The clocks are brought together at the ends of collectives; the reference's
    own row adds 0.
    """
    every = job.by_key()
    rows = _by_step(job, every) if by == "step" else _by_rank(job, every)
    rows += [
        {"label": f"rank {rank}", "rank": rank, "note": "missing: there is no trace of it"}
        for rank in job.missing
        if by == "rank"
    ]
    table = pl.DataFrame(rows, schema={c.name: c.dtype for c in ranks.columns}, orient="row")
    return table.sort("rank", "label", "step", nulls_last=True)


def _by_rank(job: Ranks, every: dict[int, Rank]) -> list[dict[str, Any]]:
    clocks, steps, differs = joined_ranks(job).clocks, counted_steps(job), differing(job)
    of_rounds = rounds(job).group_by("rank").agg(pl.col("waited", "late", "transfer").mean())
    waits = {row.pop("rank"): row for row in of_rounds.iter_rows(named=True)}
    shared, notes = _shared(job), _notes(job)
    rows = []
    for key, rank in every.items():
        row: dict[str, Any] = {"label": rank.label, "rank": rank.rank, "device": rank.part.device}
        if key in steps:
            row |= steps[key].select(pl.col(_TIMES).mean()).row(0, named=True)
            row["steps"] = int(rank.part.steps["counted"].sum())
        clock = clocks.of.get(key)
        if clock is not None and clock.residual is not None and len(every) > 1:
            row |= {"clock": clock.offset, "drift": clock.drift, "residual": clock.residual}
        row |= waits.get(key, {}) | shared.get(key, {})
        row["note"] = notes.get(key)
        row["differs"] = ", ".join(differs.get(key, [])).replace("_", " ") or None
        rows.append(row)
    return rows


def _shared(job: Ranks) -> dict[int, dict[str, Any]]:
    """By key: its collectives, those of them that others took part in, those it came last to."""
    rows = joined_ranks(job).rows
    if not rows.height:
        return {}
    table = rows.group_by("rank").agg(
        pl.len().alias("collectives"),
        pl.col("match").count().alias("matched"),
        pl.when(pl.col("last").count() > 0).then(pl.col("last").sum()).alias("last"),
    )
    return {row.pop("rank"): row for row in table.iter_rows(named=True)}


def _notes(job: Ranks) -> dict[int, str]:
    """By key, how many steps a rank recorded that the others did not."""
    own = with_rounds(job).drop_nulls("round").select("rank", "round").unique()
    every = own["rank"].n_unique()
    common = own.filter(pl.len().over("round") == every).group_by("rank").len("common")
    both = own.group_by("rank").len("all").join(common, on="rank", how="left").fill_null(0)
    return {
        rank: f"the other ranks recorded {shared:,} of its {recorded:,} steps with exchanges, too"
        for rank, recorded, shared in both.select("rank", "all", "common").rows()
        if shared < recorded
    }


def _by_step(job: Ranks, every: dict[int, Rank]) -> list[dict[str, Any]]:
    """A row for each step; what it waited is of the collectives that it issued."""
    found = with_rounds(job).filter(pl.col("place").is_not_null())
    waits: dict[tuple[int, int], dict[str, Any]] = {}
    if found.height:
        told = pl.col("wait").count() > 0
        table = found.group_by("rank", "place").agg(
            pl.when(told).then(pl.col("waited").sum()).alias("waited"),
            pl.when(told).then(pl.col("last").sum()).alias("last"),
            pl.col("transfer").sum(),
            pl.len().alias("collectives"),
            pl.col("match").count().alias("matched"),
        )
        waits = {(row.pop("rank"), row.pop("place")): row for row in table.iter_rows(named=True)}
    late = _late(job)
    rows = []
    for key, rank in every.items():
        for place, step in enumerate(rank.part.steps.iter_rows(named=True)):
            row = {name: step[name] for name in _TIMES}
            row |= {"label": rank.label, "rank": rank.rank, "step": step["number"]}
            row |= waits.get((key, place), {})
            row["late"] = late.get((key, place))
            rows.append(row)
    return rows


def _late(job: Ranks) -> dict[tuple[int, int], float]:
    """By key and place of a step, how late the rank came in that step's round."""
    places = with_rounds(job).group_by("rank", "round").agg(pl.col("place").min())
    both = rounds(job).join(places, on=("rank", "round")).drop_nulls(["place", "late"])
    return {
        (rank, place): late for rank, place, late in both.select("rank", "place", "late").rows()
    }
