"""From outcomes to the ranked answer."""

import json
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib import import_module
from typing import Any

import jsonschema
import numpy as np
import pytest

from selftime.advice import (
    Advice,
    Checked,
    Evidence,
    Finding,
    Fix,
    Health,
    Note,
    Outcome,
    Rule,
    Saving,
    TypicalStep,
    Unknown,
    Where,
    advise,
)
from selftime.advice.advice_result import JointSaving
from selftime.advice.replay import CutHostTime, ScaleDeviceWork
from selftime.analysis.recording_requirements import RecordingNeed
from selftime.intervals import union
from selftime.reports.schemas import schema as published
from selftime.testing import sketch
from selftime.trace import Trace

ADVISE = import_module("selftime.advice.advise")
OUTCOME_OF_FAILED_RULE = ADVISE.outcome_of_failed_rule  # the tests have another in its place
BUSY = "column = 10 ms\ncpu 1 | aaa bbb cc"
"""A step of 100 ms."""


def rules(*outcomes: Outcome, needs: tuple[RecordingNeed, ...] = ()) -> dict[str, Rule]:
    """One rule that says these outcomes."""

    def check(_trace: Trace) -> Iterator[Outcome]:
        yield from outcomes

    return {"waiting": Rule("waiting", "Work waits.", ("A1", "A10"), needs, check)}


def finding(estimate_ms: float | None = None, line: int | None = None, **more: Any) -> Finding:
    plain = Finding(
        title="It waits",
        where=Where() if line is None else Where("train.py", line, "main", "stack"),
        saving=Saving()
        if estimate_ms is None
        else Saving.of_step(100.0, estimate_ms, method="model"),
        confidence="high",
        fix=Fix("Do not wait."),
    )
    return replace(plain, **more)


def validated(advice: Advice) -> dict[str, Any]:
    schema = published("advice")
    document = json.loads(advice.to_json())
    jsonschema.Draft202012Validator(schema).validate(document)
    assert isinstance(document, dict)
    return document


def test_an_unusable_trace_gets_no_advice() -> None:
    advice = advise(Trace(), rules=rules(finding(9.0, line=1)))
    assert advice.health.verdict == "unusable"
    assert (advice.findings, advice.checked, advice.joint) == ((), (), JointSaving())
    [unknown] = advice.unknown
    assert unknown.rule == "waiting"
    assert unknown.needs == "; ".join(note.text for note in advice.health.notes)
    validated(advice)


def test_findings_rank_by_what_they_save() -> None:
    told = [
        finding(50.0, line=1, semantics="training"),
        finding(9.0, line=2, semantics="numerics"),
        finding(None, line=3),
        finding(1.0, line=4),
        finding(5.0, line=5),
        finding(1.0, line=6),
    ]
    forth = advise(sketch(BUSY), rules=rules(*told))
    back = advise(sketch(BUSY), rules=rules(*reversed(told)))
    assert [f.where.line for f in forth.findings] == [1, 2, 5, 4, 6, 3]
    assert forth.to_json() == back.to_json()


def test_one_finding_a_rule_and_line() -> None:
    first = Evidence("waits", 1.0, "count", (1,))
    second = Evidence("waits", 2.0, "count", (2,))
    small = finding(2.0, line=7, confidence="low", count_per_step=1.0, evidence=(first,))
    large = finding(5.0, line=7, semantics="numerics", count_per_step=2.0, evidence=(second, first))
    [merged] = advise(sketch(BUSY), rules=rules(small, large)).findings
    assert merged.saving.estimate_ms == 5.0
    assert merged.count_per_step == 3.0
    assert set(merged.evidence) == {first, second}
    assert len(merged.evidence) == 2
    assert merged.confidence == "low"
    assert merged.semantics == "numerics"


def test_unknown_lines_are_not_the_same_line() -> None:
    advice = advise(sketch(BUSY), rules=rules(finding(2.0, title="a"), finding(2.0, title="b")))
    assert [f.title for f in advice.findings] == ["a", "b"]


def test_savings_are_never_added() -> None:
    one = advise(sketch(BUSY), rules=rules(finding(20.0, line=1)))
    assert one.joint == JointSaving(20.0, 1.25)
    two = advise(sketch(BUSY), rules=rules(finding(20.0, line=1), finding(5.0, line=2)))
    assert two.joint == JointSaving(None, None)


LOSSY = """
    a = ProfilerStep#1
    b = ProfilerStep#2
    c = ProfilerStep#3
    mark 1 | aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbbcccccccccccccccccccc
    call 1 | k k k k k k k k k k k k k k k k k k k k k k k k k k k k k m
    gpu 7  |  k k k k k k k k k k k k k k k k k k k k k k k k k k k k k
    k = cudaLaunchKernel
    m = cudaLaunchKernel
"""


def test_nothing_is_surely_saved_of_steps_that_lost_work() -> None:
    """One launch of thirty has no work: what looks idle, or exposed, may not have been."""
    host = finding(2.0, line=1, changes=(CutHostTime(union([0], [100])),))
    device = finding(2.0, line=2, changes=(ScaleDeviceWork(np.array([5])),))
    silent = finding(line=3)
    advice = advise(sketch(LOSSY), rules=rules(host, device, silent))
    assert "launches" in [note.check for note in advice.health.notes]
    sure = {f.where.line: f.confidence for f in advice.findings}
    assert sure == {1: "low", 2: "low", 3: "high"}


def test_a_rule_that_says_nothing_was_still_asked() -> None:
    [checked] = advise(sketch(BUSY), rules=rules()).checked
    assert checked.rule == "waiting"
    assert checked.upper_ms is None


@pytest.mark.parametrize(
    ("need", "remedy"),
    [
        ("stacks", "with_stack"),
        ("shapes", "record_shapes"),
        ("memory", "profile_memory"),
        ("device", "accelerator"),
    ],
)
def test_a_rule_is_not_asked_what_the_recording_cannot_tell(
    need: RecordingNeed, remedy: str
) -> None:
    advice = advise(sketch(BUSY), rules=rules(finding(9.0, line=1), needs=(need,)))
    assert advice.findings == ()
    [unknown] = advice.unknown
    assert remedy in unknown.needs


def test_outcomes_that_are_no_findings_are_in_order() -> None:
    advice = advise(
        sketch(BUSY), rules=rules(Checked("b"), Unknown("d"), Checked("a"), Unknown("c"))
    )
    assert [c.reason for c in advice.checked] == ["a", "b"]
    assert [u.needs for u in advice.unknown] == ["c", "d"]


def test_json_follows_its_schema() -> None:
    evidence = Evidence("waits", float("nan"), "count", (1, 2))
    told: list[Outcome] = [
        finding(9.123456789, line=1, evidence=(evidence,)),
        finding(None),
        Checked("no", 0.5),
        Unknown("x"),
    ]
    document = validated(advise(sketch(BUSY), rules=rules(*told)))
    first, second = document["findings"]
    inner = ["claim", "changes"]  # what a fix changes is for the replay
    assert [*first, *inner] == [f.name for f in fields(Finding)]
    assert first["saving"]["estimate_ms"] == 9.123457
    assert first["evidence"] == [
        {"metric": "waits", "value": None, "unit": "count", "events": [1, 2]}
    ]
    assert second["where"] == {"file": None, "line": None, "function": None, "how": "unknown"}
    assert document["checked"] == [{"rule": "waiting", "reason": "no", "upper_ms": 0.5}]
    assert document["unknown"] == [{"rule": "waiting", "needs": "x"}]


def test_json_is_ascii_and_holds_no_control() -> None:
    note = Note("events", "\x1b[31m\x7f\u202e Zürich")
    text = Advice(Health("degraded", (note,)), TypicalStep(1, None, -0.0)).to_json()
    assert text.isascii()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert '"host_ms": 0.0' in text
    assert json.loads(text)["health"]["notes"][0]["text"] == note.text


def test_the_schema_refuses_what_the_contract_does_not_have() -> None:
    schema = published("advice")
    document = Advice(Health("good")).to_dict()
    jsonschema.Draft202012Validator.check_schema(schema)
    wrongs: tuple[dict[str, Any], ...] = (
        {"format": "selftime.advice/2"},
        {"more": 1},
        {"joint": {}},
    )
    for wrong in wrongs:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**document, **wrong}, schema)


def test_a_rule_that_fails_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_trace: Trace) -> Iterator[Outcome]:
        raise ZeroDivisionError("division by `zero`")
        yield

    monkeypatch.setattr(ADVISE, "outcome_of_failed_rule", OUTCOME_OF_FAILED_RULE)
    broken = Rule("broken", "", (), (), check)
    advice = advise(sketch(BUSY), rules={**rules(finding(20.0, line=1)), "broken": broken})
    assert len(advice.findings) == 1
    [unknown] = advice.unknown
    assert unknown.rule == "broken"
    assert "ZeroDivisionError: division by 'zero'; please report it" in unknown.needs
