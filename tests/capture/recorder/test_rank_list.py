"""Tests that `--ranks` names the ranks that are recorded, and says what is wrong with a list."""

import pytest

from selftime.capture.recorder.rank_list import (
    checked_rank_list,
    parse_rank_list,
    reason_of_left_out_rank,
    sentence_on_missing_ranks,
)
from selftime.errors import UsageError


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        ("0", ((0, 0),)),
        ("0,7-9", ((0, 0), (7, 9))),
        (" 8 , 0, 7 - 9 ", ((0, 0), (7, 9))),
        ("2-4,3-9,10", ((2, 10),)),
        ("0-999999999", ((0, 999_999_999),)),
    ],
)
def test_a_list_has_numbers_and_ranges(text: str, ranges: tuple[tuple[int, int], ...]) -> None:
    assert parse_rank_list(text).ranges == ranges


@pytest.mark.parametrize("text", ["", ",", "1,", "x", "-1", "1-", "1-2-3", "1.5", "²", "9" * 5000])
def test_what_is_no_list_is_told_in_one_sentence(text: str) -> None:
    with pytest.raises(UsageError) as told:
        checked_rank_list(text)
    sentence = str(told.value)
    assert "is no list of ranks; write numbers and ranges, such as `0,7-9`" in sentence
    assert len(sentence) < 120


def test_a_range_ends_after_it_begins() -> None:
    with pytest.raises(UsageError, match=r"the range 9-7 ends before it begins; write 7-9"):
        checked_rank_list("0,9-7")


def test_only_listed_ranks_are_recorded() -> None:
    reasons = [reason_of_left_out_rank("0,7-9", rank, 16) for rank in (0, 1, 7, 9, 10)]
    assert [reason is None for reason in reasons] == [True, False, True, True, False]
    assert reasons[1] == "`--ranks 0,7-9` leaves it out; only its ledger is kept"
    assert reason_of_left_out_rank(None, 3, 4) is None
    assert reason_of_left_out_rank("0", None, None) is None  # a program without ranks


def test_a_list_without_any_rank_of_the_job_is_told_as_such() -> None:
    told = reason_of_left_out_rank("7", 1, 2)
    assert told is not None
    assert "names no rank of this job, whose ranks are 0-1" in told
    assert sentence_on_missing_ranks("7", 2) is None  # the reason says so


def test_ranks_beyond_the_job_are_told() -> None:
    told = sentence_on_missing_ranks("0,2-3,1-9,12", 4)
    assert told is not None
    assert "also names 4-9, 12, which this job does not have: its ranks are 0-3" in told
    assert sentence_on_missing_ranks("0,3", 4) is None
    assert sentence_on_missing_ranks(None, 4) is None
