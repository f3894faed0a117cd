"""What a finding is called."""

from dataclasses import replace

import pytest

from selftime.advice import (
    RULES,
    Advice,
    Checked,
    Finding,
    Fix,
    Health,
    JointSaving,
    Saving,
    Unknown,
    Where,
    rule_registry,
)
from selftime.advice.finding_ids import select_findings, with_finding_ids
from selftime.errors import UsageError

PLACED = Finding(
    rule="slow_input",
    title="It waits 3 ms",
    where=Where("train.py", 3, "main", "stack"),
    saving=Saving.of_step(100.0, 20.0, method="model"),
    confidence="high",
    fix=Fix("Do not wait."),
)
ELSEWHERE = replace(PLACED, where=Where("train.py", 4, "main", "stack"))
UNPLACED = replace(PLACED, where=Where())


def ids(*findings: Finding) -> list[str]:
    return [finding.id for finding in with_finding_ids(findings)]


def test_an_id_is_of_the_rule_and_the_place() -> None:
    [one] = ids(PLACED)
    assert one.startswith("slow_input-")
    assert ids(ELSEWHERE) != [one]
    assert ids(replace(PLACED, rule="other")) != [one]
    assert ids(UNPLACED) != ids(replace(UNPLACED, title="It waits elsewhere"))


def test_an_id_stays_whatever_else_is_found() -> None:
    [one] = ids(PLACED)
    assert ids(ELSEWHERE, UNPLACED, PLACED)[2] == one
    assert ids(replace(PLACED, title="It waits 4 ms", confidence="low")) == [one]


def test_ids_differ() -> None:
    many = [replace(PLACED, where=Where("train.py", line)) for line in range(20_000)]
    assert len(set(ids(*many))) == len(many)


ANSWER = Advice(
    Health("good"),
    findings=tuple(with_finding_ids([PLACED, ELSEWHERE, replace(UNPLACED, rule="small_batch")])),
    joint=JointSaving(30.0, 1.5),
    checked=(Checked("no float64", rule="float64"), Checked("short", rule="slow_input")),
    unknown=(Unknown("stacks", rule="slow_rank"),),
)


def test_one_finding_is_had_alone() -> None:
    [_, second, _] = ANSWER.findings
    part = select_findings(ANSWER, second.id)
    assert part.findings == (second,)
    assert (part.checked, part.unknown) == ((), ())
    assert part.joint == JointSaving(20.0, 1.25)


def test_all_that_a_rule_says_is_had() -> None:
    part = select_findings(ANSWER, "slow_input")
    assert [finding.where.line for finding in part.findings] == [3, 4]
    assert [one.reason for one in part.checked] == ["short"]
    assert part.joint == JointSaving()
    assert select_findings(ANSWER, "slow_rank").unknown == ANSWER.unknown


def test_a_wrong_id_is_told_with_the_right_ones() -> None:
    with pytest.raises(UsageError, match=ANSWER.findings[0].id):
        select_findings(ANSWER, "slow_input-1")
    with pytest.raises(UsageError, match="selftime explain"):
        select_findings(replace(ANSWER, findings=()), "x" * 500)


def test_the_name_of_the_release_before_is_understood() -> None:
    found = replace(PLACED, rule="exposed_communication")
    [former] = with_finding_ids([replace(PLACED, rule="exposed_exchange")])
    answer = replace(ANSWER, findings=tuple(with_finding_ids([found])))
    assert select_findings(answer, "exposed_exchange").findings == answer.findings
    assert select_findings(answer, former.id).findings == answer.findings
    assert rule_registry.find("exposed_exchange") is rule_registry.find("exposed_communication")
    assert set(rule_registry.CURRENT_NAMES_OF_RENAMED_RULES.values()) <= set(RULES)
    assert not set(rule_registry.CURRENT_NAMES_OF_RENAMED_RULES) & set(RULES)
