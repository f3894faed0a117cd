"""Collectives of several ranks are paired by number, else by place, else not at all."""

from typing import Any

import polars as pl

from selftime.analysis.ranks.matching import matched

DTYPES = {
    "rank": pl.Int64,
    "group": pl.String,
    "group_ranks": pl.String,
    "group_size": pl.Int64,
    "sequence": pl.Int64,
    "collective": pl.String,
    "step": pl.Int64,
    "bytes": pl.Int64,
    "end": pl.Int64,
    "dated": pl.Boolean,
}


def rows(*given: dict[str, Any]) -> pl.DataFrame:
    usual: dict[str, Any] = {"group": "0", "group_ranks": "[0, 1]", "group_size": 2, "end": 0}
    usual |= {"collective": "allreduce", "dated": False}
    return pl.DataFrame([{**usual, **row} for row in given], DTYPES)


def pairs(table: pl.DataFrame) -> list[list[int]]:
    """Places in the table of what is one, in order."""
    found = matched(table).with_row_index("at").drop_nulls("match")
    return found.group_by("match", maintain_order=True).agg("at")["at"].to_list()


def test_by_the_number_in_the_trace() -> None:
    table = rows(*({"rank": rank, "sequence": n} for rank in (0, 1) for n in range(rank, 4 + rank)))
    assert pairs(table) == [[1, 4], [2, 5], [3, 6]]


def test_groups_of_one_name_and_other_ranks_are_others() -> None:
    table = rows(
        {"rank": 0, "sequence": 1},
        {"rank": 1, "sequence": 1},
        {"rank": 2, "sequence": 1, "group_ranks": "[2, 3]"},
        {"rank": 3, "sequence": 1, "group_ranks": "[2, 3]"},
    )
    assert pairs(table) == [[0, 1], [2, 3]]


def test_by_place_where_every_rank_has_as_many() -> None:
    table = rows(*({"rank": rank} for rank in (0, 0, 0, 1, 1, 1)))
    assert pairs(table) == [[0, 3], [1, 4], [2, 5]]


def test_by_no_place_where_one_has_fewer() -> None:
    table = rows(*({"rank": rank} for rank in (0, 0, 0, 1, 1)))
    assert pairs(table) == []


def test_by_place_within_steps_of_the_same_number() -> None:
    steps = {0: [4, 4, 5, 5], 1: [5, 5, 6, 6]}
    table = rows(*({"rank": rank, "step": step} for rank in steps for step in steps[rank]))
    assert pairs(table) == [[2, 4], [3, 5]]


def test_in_a_step_where_one_has_fewer_nothing_is_paired() -> None:
    steps = {0: [4, 4, 5, 5], 1: [4, 5, 5]}
    table = rows(*({"rank": rank, "step": step} for rank in steps for step in steps[rank]))
    assert pairs(table) == [[2, 5], [3, 6]]


def test_other_kinds_are_not_one() -> None:
    table = rows(
        {"rank": 0, "sequence": 1, "collective": "broadcast"},
        {"rank": 1, "sequence": 1},
        {"rank": 0, "sequence": 2},
        {"rank": 1, "sequence": 2},
    )
    assert pairs(table) == [[2, 3]]


def test_several_parts_of_one_number_are_paired_in_order() -> None:
    table = rows(*({"rank": rank, "sequence": 1} for rank in (0, 0, 1, 1)))
    assert pairs(table) == [[0, 2], [1, 3]]


def test_an_unknown_group_is_one_group() -> None:
    unknown = {"group": None, "group_ranks": None, "group_size": None}
    assert pairs(rows({"rank": 0, **unknown}, {"rank": 1, **unknown})) == [[0, 1]]


def test_nothing() -> None:
    assert matched(rows()).columns == [*DTYPES, "match"]


def test_by_time_where_nothing_numbers_them() -> None:
    """Rank 1 began to record two exchanges later; its clock is 3 ms ahead."""
    ends = {0: [100, 200, 310, 400, 520], 1: [313, 403, 523]}
    table = rows(*({"rank": r, "end": e * 10**6, "dated": True} for r in ends for e in ends[r]))
    assert pairs(table) == [[2, 5], [3, 6], [4, 7]]


def test_by_size_where_streams_exchange_in_any_order() -> None:
    sizes = {0: [8, 4, 8, 4], 1: [4, 8, 4, 8]}
    table = rows(*({"rank": rank, "bytes": size} for rank in sizes for size in sizes[rank]))
    assert pairs(table) == [[0, 5], [1, 4], [2, 7], [3, 6]]
