"""Words that all reports of advice share: places and amounts."""

import pytest

from selftime.advice import Checked, Evidence
from selftime.reports.advice.wording import checked_cause_text, evidence_text, file_and_line_text


@pytest.mark.parametrize(
    ("file", "line", "text"),
    [
        ("/job/train.py", 7, "train.py:7"),
        ("/job/train.py", None, "train.py"),
        ("/lib/data.py", 3, "/lib/data.py:3"),
        ("/job/a\x1b[31mb.py", 3, "ab.py:3"),
    ],
)
def test_a_place_is_a_file_and_its_line_if_known(file: str, line: int | None, text: str) -> None:
    assert file_and_line_text(file, line, "/job") == text


def test_a_saving_that_rounds_to_nothing_is_no_number() -> None:
    assert (
        checked_cause_text(Checked("It waits", upper_ms=0.25))
        == "It waits (at most 0.25 ms a step)"
    )
    small = "It waits (too small to save a measurable time)"
    assert checked_cause_text(Checked("It waits", upper_ms=0.004)) == small
    assert checked_cause_text(Checked("It waits", upper_ms=0.0)) == small


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.2, "0.2"), (1.8, "1.8"), (2.0, "2"), (0.04, "0"), (9.96, "10"), (12.4, "12"), (3, "3")],
)
def test_a_small_mean_count_has_a_decimal(value: float, text: str) -> None:
    assert evidence_text(Evidence("cores available", value, "count")) == f"cores available: {text}"
