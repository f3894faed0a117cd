"""Words that all reports of advice share: places and amounts."""

import json
from dataclasses import replace

import pytest

from selftime.advice import Advice, Checked, Evidence, Health, TypicalStep, Unknown
from selftime.advice.advice_result import RunTime
from selftime.analysis.recording_requirements import REQUIREMENT_BY_NEED
from selftime.reports.advice.brief import as_brief
from selftime.reports.advice.queries import ShellQueries
from selftime.reports.advice.text import as_text
from selftime.reports.advice.wording import (
    absent_causes_text,
    causes_not_worth_changing,
    checked_cause_text,
    evidence_text,
    file_and_line_text,
)


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
        checked_cause_text(Checked("It waits", upper_ms=0.25)) == "It waits (at most 250 µs a step)"
    )
    small = "It waits (too small to save a measurable time)"
    assert checked_cause_text(Checked("It waits", upper_ms=0.004)) == small
    assert checked_cause_text(Checked("It waits", upper_ms=0.0)) == small


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.2, "0.2"), (1.8, "1.8"), (2.0, "2"), (0.04, "0.040"), (9.96, "10"), (12.4, "12"), (3, "3")],
)
def test_a_small_mean_count_has_a_decimal(value: float, text: str) -> None:
    assert evidence_text(Evidence("cores available", value, "count")) == f"cores available: {text}"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0031, "3.10 µs"), (0.0004, "400 ns"), (0.01, "10.0 µs"), (0, "0 ms"), (None, "-")],
)
def test_a_time_has_three_digits_in_the_unit_that_it_fills(value: float | None, text: str) -> None:
    assert evidence_text(Evidence("host time", value, "ms")) == f"host time: {text}"


CHECKED = (
    Checked("It waits twice", upper_ms=0.2, rule="wait"),
    Checked("It waits often", upper_ms=2.5, rule="wait"),
    Checked("It waits", rule="wait"),
    Checked("It logs", upper_ms=0.04, rule="log"),
    Checked("It imports `a`", run_upper_s=0.4, rule="import"),
    Checked("It imports `b`", run_upper_s=1.3, rule="import"),
    Checked("It waits for the first batch", run_upper_s=0.05, rule="first_batch"),
    Checked("Nothing is copied", rule="copy", is_absent=True),
)


def test_of_a_rule_the_largest_cause_is_listed_and_small_ones_are_counted() -> None:
    advice = Advice(Health("good"), TypicalStep(4, None, 98.0), checked=CHECKED, run=RunTime(100.0))
    assert causes_not_worth_changing(advice) == (CHECKED[1], CHECKED[5])
    told = "and 3 other causes were checked and not found in this trace, or too small"
    assert absent_causes_text(advice) == told
    assert len(json.loads(advice.to_json())["checked"]) == len(CHECKED)
    assert causes_not_worth_changing(advice, is_complete=True) == CHECKED[:-1]
    assert causes_not_worth_changing(replace(advice, selected_rule_or_finding="wait")) == CHECKED


def test_causes_that_are_all_absent_or_all_small_are_counted_as_such() -> None:
    step = TypicalStep(4, None, 98.0)
    absent = Advice(Health("good"), step, checked=CHECKED[7:])
    assert absent_causes_text(absent) == "1 cause was checked and not found in this trace"
    small = Advice(Health("good"), step, checked=CHECKED[3:4])
    assert absent_causes_text(small) == "1 cause was checked and found too small to matter"


def test_rules_that_need_the_ledger_alone_are_counted() -> None:
    needs = REQUIREMENT_BY_NEED["ledger"].remedy
    unknown = (Unknown(needs, rule="slow_imports"), Unknown(needs, rule="first_batch_wait"))
    advice = Advice(Health("good"), unknown=unknown)
    told = "2 rules need the ledger of the whole run: record with `selftime run`."
    for text in (as_text(advice, width=120), as_brief(advice, ShellQueries("trace.json"))):
        assert told in text
        assert "slow_imports" not in text
    assert "slow_imports" in as_brief(advice, ShellQueries("trace.json"), whole=True)
    assert "slow_imports" in as_text(replace(advice, unknown=unknown[:1]))
