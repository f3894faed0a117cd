"""Tests that the stages of a pipeline are told from the messages of its ranks."""

import polars as pl
import pytest

from selftime.analysis.ranks.pipeline_stages import stage_of_ranks


def messages(*pairs: tuple[int, int]) -> pl.DataFrame:
    """Returns the rows of messages in order of time, each from one rank to another."""
    rows = [
        {"rank": rank, "match": number, "collective": kind, "start": 2 * number + later}
        for number, pair in enumerate(pairs)
        for later, (rank, kind) in enumerate(zip(pair, ("send", "recv"), strict=True))
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize(
    ("pairs", "stages"),
    [
        ([(0, 1), (1, 0)], {0: 0, 1: 1}),
        ([(4, 2), (2, 0), (0, 2), (2, 4)], {4: 0, 2: 1, 0: 2}),
        ([(0, 2), (1, 3), (2, 0), (3, 1)], {0: 0, 2: 1, 1: 0, 3: 1}),
        ([(0, 1), (1, 2), (2, 0), (0, 1)], {0: 0, 1: 1, 2: 2}),
    ],
    ids=["two stages", "three, backward", "two replicas", "a ring of interleaved stages"],
)
def test_stages_are_counted_from_the_rank_that_sends_first(
    pairs: list[tuple[int, int]], stages: dict[int, int]
) -> None:
    assert stage_of_ranks(messages(*pairs)) == stages


@pytest.mark.parametrize(
    "pairs",
    [[(0, 1), (0, 2), (0, 3)], [(0, 1), (1, 2), (1, 3)]],
    ids=["one to all", "a fork"],
)
def test_ranks_that_form_no_chain_have_no_stages(pairs: list[tuple[int, int]]) -> None:
    assert stage_of_ranks(messages(*pairs)) == {}


def test_a_rank_without_messages_is_in_no_pipeline() -> None:
    alone = pl.DataFrame({"rank": [7], "match": [9], "collective": ["allreduce"], "start": [99]})
    assert stage_of_ranks(pl.concat([messages((0, 1)), alone])) == {}
    assert stage_of_ranks(alone) == {}
