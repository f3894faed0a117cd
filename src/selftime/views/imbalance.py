"""What imbalance between the ranks of a job costs: slow ranks, stages, micro-batches."""

from typing import Final

import polars as pl

from selftime.analysis.ranks.job_imbalance import JobImbalance, job_imbalance
from selftime.analysis.ranks.job_ranks import RankOfJob, Ranks
from selftime.analysis.ranks.job_step_replay import StepTimes
from selftime.schema import Column
from selftime.views.view_declaration import view

_MAX_RANKS_IN_TEXT: Final = 8
"""Largest number of ranks that are listed by number."""


@view(
    Column(
        "without",
        pl.String,
        "text",
        "What the job is computed without: slow ranks, unequal stages of its pipeline, "
        "micro-batches of unequal cost, all three, or one rank that is slower than its peers.",
    ),
    Column(
        "step_time",
        pl.Float64,
        "ns",
        "What a mean step would then take, with waits of unknown cause as recorded.",
    ),
    Column(
        "step_time_without_unknown_waits",
        pl.Float64,
        "ns",
        "What it would then take if waits of unknown cause were for what changes.",
    ),
    Column(
        "least_saving", pl.Float64, "ns", "What that saves a step at least; less than 0 is a loss."
    ),
    Column("most_saving", pl.Float64, "ns", "What that saves a step at most."),
    Column(
        "ranks",
        pl.String,
        "text",
        "The ranks that are slower than their peers, or that have the stage with the most work; "
        "null if none stands out.",
        True,
    ),
    Column(
        "ratio",
        pl.Float64,
        "ratio",
        "How long the slowest of these ranks takes, against its peers; how much the largest stage "
        "has to compute, against the mean; how much the time of the same work varies.",
        True,
    ),
)
def imbalance(job: Ranks) -> pl.DataFrame:
    """What a step of a job would take if its ranks were alike, computed anew from all their paths.

    The job is replayed from the work that each rank did between its collectives and messages. A
    rank is compared with its peers, the ranks of its stage of a pipeline, or all. The first row is
    the job as it is. Nothing is computed unless two ranks have two steps in a row.
    """
    found, every = job_imbalance(job), job.ranks_by_key()
    rows = [] if found is None else _rows(found, every)
    schema = {column.name: column.dtype for column in imbalance.columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _rows(found: JobImbalance, every: dict[int, RankOfJob]) -> list[tuple[object, ...]]:
    slow = found.slow_ranks
    slowest = max((found.slowness_of_rank[rank] for rank in slow), default=None)
    heaviest = max(found.load_of_stage, key=lambda at: found.load_of_stage[at], default=None)
    of_stage = [rank for rank, stage in found.stage_of_rank.items() if stage == heaviest]
    load = None if heaviest is None else found.load_of_stage[heaviest]
    rows = [
        ("nothing", found.recorded, [], None),
        ("slow ranks", found.without_slow_ranks, slow, slowest),
        ("unequal stages", found.without_stage_imbalance, of_stage, load),
        ("unequal micro-batches", found.without_micro_batch_imbalance, [], found.variation),
        ("all of these", found.balanced, [], None),
        *(
            (every[rank].label, times, [rank], found.slowness_of_rank[rank])
            for rank, times in found.without_rank.items()
        ),
    ]
    if not found.load_of_stage:
        rows = [row for row in rows if row[0] != "unequal stages"]
    return [
        (without, *_times(found, times), _ranks_text(ranks, every), ratio)
        for without, times, ranks, ratio in rows
    ]


def _times(found: JobImbalance, times: StepTimes) -> tuple[float, float, float, float]:
    saved = found.recorded.longer_than(times)
    return times.with_unknown_waits, times.without_unknown_waits, *saved


def _ranks_text(ranks: list[int], every: dict[int, RankOfJob]) -> str | None:
    numbers = [
        str(every[rank].rank if every[rank].rank is not None else every[rank].label)
        for rank in ranks
    ]
    if len(numbers) > _MAX_RANKS_IN_TEXT:
        more = len(numbers) - _MAX_RANKS_IN_TEXT
        return f"{', '.join(numbers[:_MAX_RANKS_IN_TEXT])} and {more} more"
    return ", ".join(numbers) or None
