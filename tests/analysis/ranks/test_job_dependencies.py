"""The job's path and its replay are read from one graph: what one says the other agrees with."""

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest

from selftime import load
from selftime.advice.replay.job_replays import job_replay
from selftime.analysis.graph.collective_arrivals import OWN_WORK_KINDS
from selftime.analysis.ranks.job_critical_path import job_critical_path
from selftime.analysis.ranks.job_dependencies import (
    NO_ROW,
    JobDependencies,
    job_dependencies,
    rank_finishes,
)
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.testing.simulated_jobs import RankDelay, simulate_job
from selftime.trace import Job

LATE = (None, RankDelay(2, 8_000_000, "data"), RankDelay(1, 8_000_000, "compute"))


@cache
def simulated(late: RankDelay | None) -> Ranks:
    with TemporaryDirectory() as folder:
        for rank, text in simulate_job(ranks=4, steps=6, late=late).traces.items():
            Path(folder, f"rank{rank}.json").write_bytes(text)
        job = load(folder, cache=False)
    assert isinstance(job, Job)
    return Ranks.of(job)


def agree(ranks: Ranks) -> None:
    """The path is as long as the replay of the unchanged job takes, from where the path begins."""
    dependencies, finishes = job_dependencies(ranks), rank_finishes(ranks)
    path, times = job_critical_path(ranks), dependencies.times()
    finish = max(one.time(times) for one in finishes.values())
    assert path["time"].sum() == finish - begin_of_path(ranks, dependencies)


def begin_of_path(ranks: Ranks, dependencies: JobDependencies) -> int:
    """When the recording began in which the path ends, from the origin of the graph on."""
    finishes, times = rank_finishes(ranks), dependencies.times()
    last = dependencies.last_rows(times)
    finish = max(finishes.values(), key=lambda one: one.time(times))
    at, row = finish.previous_collective_row, NO_ROW
    while at != NO_ROW:
        row = int(last[at])
        held = times.is_held_by_group[row]
        at = int(
            (dependencies.previous_of_group if held else dependencies.previous_collective_row)[row]
        )
    return finish.begin if row == NO_ROW else int(dependencies.begin[row])


@pytest.mark.parametrize("late", LATE)
def test_the_path_of_a_simulated_job_is_as_long_as_its_replay(late: RankDelay | None) -> None:
    agree(simulated(late))


@pytest.mark.parametrize("late", LATE)
def test_the_replay_gives_back_when_collectives_ended(late: RankDelay | None) -> None:
    """Ranks are done at once up to some hundred nanoseconds, which add up over the steps."""
    ranks = simulated(late)
    dependencies, rows = job_dependencies(ranks), collectives_on_one_clock(ranks).rows
    recorded = rows["end"].to_numpy() - dependencies.origin
    assert np.abs(dependencies.times().end - recorded).max() < 5_000


@pytest.mark.parametrize("late", LATE)
def test_the_last_rank_is_the_one_that_arrivals_show(late: RankDelay | None) -> None:
    """Of two that came at once, as far as the clocks and the replay are right, it is either."""
    ranks = simulated(late)
    dependencies, rows = job_dependencies(ranks), collectives_on_one_clock(ranks).rows
    last = dependencies.last_rows(dependencies.times())
    latest = rows.select(pl.col("start").max().over("match")).to_series().to_numpy()
    behind = latest - rows["start"].to_numpy()[last]
    assert behind.max() < 5_000


def test_replay_and_path_are_read_from_one_graph() -> None:
    ranks = simulated(LATE[1])
    assert job_replay(ranks).dependencies is job_dependencies(ranks)


def test_own_work_is_the_sum_of_its_kinds() -> None:
    ranks = simulated(LATE[2])
    for rank in ranks.ranks_by_key().values():
        for table in (rank.summary.arrivals, rank.summary.work_after_last_collective):
            assert (
                table.select(pl.sum_horizontal(OWN_WORK_KINDS))
                .to_series()
                .equals(table["work"], check_names=False)
            )


@pytest.mark.parametrize(("rank", "saves"), [(2, True), (0, False), (3, False)])
def test_only_less_work_of_a_rank_on_the_path_saves_time(rank: int, saves: bool) -> None:
    """Rank 2 is 8 ms late in each step: 1 ms less of its work is 1 ms less, of others nothing."""
    ranks = simulated(LATE[1])
    summary = ranks.ranks_by_key()[rank].summary
    first_of_step = summary.collectives["step"].diff().fill_null(1).to_numpy() != 0
    saved = job_replay(ranks).saving_ns(rank, np.where(first_of_step, 1e6, 0.0))
    assert saved == pytest.approx(1e6 if saves else 0.0, abs=1)
    assert rank in job_critical_path(ranks)["rank"] or not saves


@pytest.mark.traces
@pytest.mark.parametrize(
    "names",
    [
        ("a100-2022-sampled-rank0", "a100-2022-sampled-rank1"),
        ("a100-2022-diff-control", "a100-2022-diff-test"),
        ("a100-2024-nccl-2ranks",),
        ("mi300-2025-resnet-ddp-recompute",),
        ("cpu-2024-gloo-rank34",),
    ],
)
@pytest.mark.sweep(2)
def test_the_path_of_real_ranks_is_as_long_as_their_replay(
    names: tuple[str, ...], real_files: Callable[[str], Path], tmp_path: Path
) -> None:
    for name in names:
        shutil.copy(real_files(name), tmp_path)
    asked = tmp_path / "*.gz" if len(names) > 1 else real_files(names[0])  # unrelated ones, too
    ranks = Ranks.of(load(asked))
    agree(ranks)
