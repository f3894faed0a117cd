"""A rule's page and outcomes, and what a saving may be."""

from collections.abc import Iterator

import pytest

from selftime.advice import Checked, Finding, Fix, Outcome, Rule, Saving, Unknown, Where
from selftime.trace import Trace

PAGE = """Work waits.

## What it means
Something waits.

## Why it costs
Waiting is time.

## What to do
Do not wait.

## Fires on
Two lanes, then one.

    cpu 1 | a b
    gpu 7 |   c

    cpu 1 | a  b

## Silent on
Nothing.

    cpu 1 |
"""


def rule_of(*outcomes: Outcome, covers: tuple[str, ...] = ("A1", "A10")) -> Rule:
    def check(_trace: Trace) -> Iterator[Outcome]:
        yield from outcomes

    return Rule("waiting", PAGE, covers, (), check)


def finding(covers: tuple[str, ...] = ()) -> Finding:
    return Finding(
        title="It waits",
        where=Where("train.py", 3, "main", "stack"),
        saving=Saving(),
        confidence="low",
        fix=Fix("Do not."),
        covers=covers,
    )


def test_a_page_has_sections_and_drawings() -> None:
    rule = rule_of()
    assert rule.title == "Work waits."
    assert rule.sections["Why it costs"] == "Waiting is time."
    assert rule.drawings("Fires on") == ["cpu 1 | a b\ngpu 7 |   c", "cpu 1 | a  b"]
    assert rule.drawings("Silent on") == ["cpu 1 |"]
    assert rule.drawings("What to do") == []


def test_outcomes_are_signed_with_the_rule() -> None:
    outcomes = rule_of(finding(), finding(("A10",)), Checked("no"), Unknown("stacks"))(Trace())
    assert [outcome.rule for outcome in outcomes] == ["waiting"] * 4
    covers = [outcome.covers for outcome in outcomes if isinstance(outcome, Finding)]
    assert covers == [("A1", "A10"), ("A10",)]


def test_a_finding_covers_no_more_than_its_rule() -> None:
    with pytest.raises(ValueError, match="covers"):
        rule_of(finding(("F1",)))(Trace())


def test_a_saving_knows_its_speedup() -> None:
    saving = Saving.of_step(100.0, 20.0, method="model", low_ms=5.0, high_ms=25.0, upper_ms=30.0)
    assert saving.speedup == 1.25
    assert Saving.of_step(10.0, 10.0, method="model").speedup is None


@pytest.mark.parametrize(
    "values",
    [(5.0, 6.0, 7.0, 8.0), (5.0, 1.0, 4.0, 8.0), (5.0, 1.0, 9.0, 8.0), (-1.0, None, None, None)],
)
def test_a_saving_lies_in_its_interval(values: tuple[float | None, ...]) -> None:
    estimate, low, high, upper = values
    with pytest.raises(ValueError, match="low <= estimate"):
        Saving(estimate, low, high, upper, method="model")


def test_a_number_comes_with_its_method() -> None:
    with pytest.raises(ValueError, match="method"):
        Saving(estimate_ms=1.0)
    with pytest.raises(ValueError, match="method"):
        Saving(method="replay")


@pytest.mark.parametrize(
    ("where", "text"),
    [
        (Where(), "line unknown"),
        (Where("a.py"), "`a.py`"),
        (Where("a.py", 3), "`a.py:3`"),
        (Where("a.py", 3, "f", "stack"), "`a.py:3 in f`"),
        (Where("a`b.py", 3), "`a'b.py:3`"),
    ],
)
def test_a_place_reads_as_an_editor_opens_it(where: Where, text: str) -> None:
    assert str(where) == text
