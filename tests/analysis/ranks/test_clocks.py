"""Clocks that were set wrong and run fast are recovered from the ends of collectives."""

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from selftime.analysis.ranks.clocks import align_rank_clocks

ORIGIN = 1_700_000_000_000_000_000
SECOND = 1_000_000_000


def job(
    groups: list[list[int]], *, count: int, seconds: float, noise: float, seed: int = 0
) -> tuple[pl.DataFrame, dict[int, tuple[int, float]]]:
    """Ends of `count` collectives in turn over the groups, by clocks set wrong by up to 10 s.

    Clocks drift by up to 10 parts in a million. One end in twenty is late by up to 1 ms.
    """
    draw = np.random.default_rng(seed)
    ranks = sorted({rank for group in groups for rank in group})
    clocks = {
        rank: (int(draw.integers(-10 * SECOND, 10 * SECOND)), draw.uniform(-10e-6, 10e-6))
        for rank in ranks
    }
    rows = []
    times = np.sort(draw.uniform(0, seconds * SECOND, count))
    for number, time in enumerate(times):
        for rank in groups[number % len(groups)]:
            offset, drift = clocks[rank]
            late = draw.uniform(0, 1e6) if draw.random() < 0.05 else 0.0
            end = time + abs(draw.normal(0, noise)) + late
            rows.append((rank, number, ORIGIN + offset + round(end * (1 + drift))))
    return pl.DataFrame(rows, ["rank", "collective", "end"], orient="row"), clocks


def errors(
    ends: pl.DataFrame, clocks: dict[int, tuple[int, float]], seconds: float
) -> dict[int, NDArray[np.float64]]:
    """How far apart each rank and the reference read one instant, at the begin, middle and end."""
    found = align_rank_clocks(ends)
    assert found.reference is not None
    instants = np.array([0, seconds / 2, seconds]) * SECOND

    def read(rank: int) -> NDArray[np.int64]:
        offset, drift = clocks[rank]
        own = np.rint(instants * (1 + drift)).astype(np.int64) + ORIGIN + offset
        return found.clock_by_rank[rank].to_reference_times(own)

    common = read(found.reference)
    return {rank: np.abs(read(rank) - common).astype(np.float64) for rank in clocks}


EIGHT = list(range(8))
RING = [[rank, (rank + 1) % 8] for rank in range(8)]
GRID = [[0, 1, 2, 3], [4, 5, 6, 7], [0, 4], [1, 5], [2, 6], [3, 7]]


@pytest.mark.parametrize("groups", [[EIGHT], RING, GRID], ids=["all", "ring", "grid"])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("seconds", [0.5, 10.0])
@pytest.mark.sweep(6)
def test_offsets_of_seconds_and_drift_are_recovered(
    groups: list[list[int]], seed: int, seconds: float
) -> None:
    ends, clocks = job(groups, count=400, seconds=seconds, noise=5_000, seed=seed)
    for rank, error in errors(ends, clocks, seconds).items():
        assert error.max() < 50_000, rank


def test_few_collectives_tell_no_drift() -> None:
    ends, clocks = job([EIGHT], count=4, seconds=0.2, noise=5_000)
    assert {clock.drift for clock in align_rank_clocks(ends).clock_by_rank.values()} == {0.0}
    assert max(error.max() for error in errors(ends, clocks, 0.2).values()) < 500_000


def test_what_shares_nothing_is_not_aligned() -> None:
    ends, _ = job([[0, 1], [2, 3, 4]], count=60, seconds=1.0, noise=1_000)
    clocks = align_rank_clocks(ends)
    assert clocks.reference == 2
    assert {rank for rank, clock in clocks.clock_by_rank.items() if clock.residual is None} == {
        0,
        1,
    }


def test_one_rank_is_its_own_reference() -> None:
    ends = pl.DataFrame({"rank": [3, 3], "collective": [0, 1], "end": [10, 20]})
    clocks = align_rank_clocks(ends)
    assert clocks.reference is None
    assert clocks.residual is None
    assert clocks.clock_by_rank[3].to_reference_times(np.array([10, 20])).tolist() == [10, 20]


def test_the_residual_is_that_of_the_ends() -> None:
    ends, _ = job([EIGHT], count=400, seconds=1.0, noise=20_000)
    residual = align_rank_clocks(ends).residual
    assert residual is not None
    assert 5_000 < residual < 30_000


def test_ranks_of_one_machine_have_one_clock_however_late_one_returns() -> None:
    late = {0: 0, 1: 7_000_000, 2: 0, 3: 3_000_000}
    ends = pl.DataFrame(
        [(rank, n, ORIGIN + n * SECOND + late[rank]) for rank in late for n in range(6)],
        ["rank", "collective", "end"],
        orient="row",
    )
    found = align_rank_clocks(ends, dict.fromkeys(late, "a"))
    assert {clock.offset for clock in found.clock_by_rank.values()} == {0}
    assert found.residual == 1000
    assert found.reference == 0


def test_machines_are_aligned_by_the_first_of_their_ranks_to_return() -> None:
    clock = {0: 0, 1: 0, 2: SECOND, 3: SECOND}
    late = {0: 0, 1: 7_000_000, 2: 5_000_000, 3: 0}
    ends = pl.DataFrame(
        [
            (rank, n, ORIGIN + n * SECOND + late[rank] - clock[rank])
            for rank in late
            for n in range(6)
        ],
        ["rank", "collective", "end"],
        orient="row",
    )
    found = align_rank_clocks(ends, {0: "a", 1: "a", 2: "b", 3: "b"})
    offset = {rank: one.offset for rank, one in found.clock_by_rank.items()}
    assert offset[0] == offset[1]
    assert offset[2] == offset[3]
    assert offset[2] - offset[0] == SECOND


def test_ranks_without_a_collective_in_common_share_the_clock_of_their_machine() -> None:
    ends = pl.DataFrame({"rank": [0, 1, 2], "collective": [0, 1, 2], "end": [5, 6, 7]})
    found = align_rank_clocks(ends, {0: "a", 2: "a"})
    known = {rank: one.residual is not None for rank, one in found.clock_by_rank.items()}
    assert known == {0: True, 1: False, 2: True}
