"""On which line a rank spends more time than the others."""

import polars as pl
import pytest

from selftime.analysis.ranks.excess_time import line_with_most_excess_time
from selftime.analysis.ranks.job_ranks import RankOfJob
from selftime.analysis.ranks.rank_summary import RankSummary

STEPS = pl.DataFrame({"counted": [True, True]})
SPENT = {
    "class": pl.String,
    "file": pl.String,
    "line": pl.Int32,
    "function": pl.String,
    "how": pl.String,
    "time": pl.Int64,
}
SAMPLED = {"file": pl.String, "line": pl.Int32, "function": pl.String, "samples": pl.UInt32}


def rank(
    spent: list[tuple[str, int, int]], sampled: list[tuple[int, int]] | None = None
) -> RankOfJob:
    """A rank that spends times (class, line, ns) in two steps; samples by line."""
    rows = [(kind, "train.py", line, "main", "stack", time) for kind, line, time in spent]
    samples = [("train.py", line, "main", count) for line, count in sampled or []]
    summary = RankSummary(
        collectives=pl.DataFrame(),
        origin=0,
        steps=STEPS,
        spent=pl.DataFrame(rows, SPENT, orient="row"),
        sampled=pl.DataFrame(samples, SAMPLED, orient="row"),
    )
    return RankOfJob("rank", None, summary, ())


@pytest.mark.parametrize(
    ("cause", "line"), [("host", 7), ("gc", 8), ("data", 5), ("compute", 9), (None, 7)]
)
def test_the_line_is_one_of_the_time_that_the_cause_is_about(cause: str | None, line: int) -> None:
    ranks = {
        0: rank([("communication", 7, 900), ("compute", 9, 100), ("data_wait", 5, 20)]),
        1: rank(
            [
                ("python", 7, 800),
                ("garbage_collection", 8, 500),
                ("compute", 9, 400),
                ("data_wait", 5, 60),
                ("communication", 3, 5000),
            ]
        ),
    }
    found = line_with_most_excess_time(1, ranks, cause)
    assert found is not None
    assert found["line"] == line


def test_without_frames_it_is_the_line_that_samples_found_more_often() -> None:
    ranks = {
        0: rank([("compute", 9, 100)], [(3, 40), (9, 60)]),
        1: rank([("compute", 9, 100)], [(3, 30), (9, 40), (12, 30)]),
    }
    found = line_with_most_excess_time(1, ranks, "host")
    assert found is not None
    assert (found["line"], found["how"]) == (12, "stack")
    assert line_with_most_excess_time(0, ranks, "host") is None
    assert line_with_most_excess_time(1, ranks, "gc") is None


def test_a_few_samples_name_no_line() -> None:
    ranks = {0: rank([], [(3, 40)]), 1: rank([], [(3, 4), (12, 5)])}
    assert line_with_most_excess_time(1, ranks, "host") is None
