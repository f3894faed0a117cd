"""Tests the rule `memory_leak` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule, Unknown
from selftime.testing import Judge, sketch
from selftime.trace import Trace


def test_the_finding_has_the_growth_and_no_saving(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.evidence[0].value == 65536
    assert finding.saving.estimate_ms is None


def test_with_too_few_steps_the_outcome_is_unknown(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[0].replace("sssstttuuuvvvwwwxxxyyy", "sssstttuuuvvv")
    assert any(isinstance(outcome, Unknown) for outcome in rule(sketch(drawing)))


def test_one_step_without_growth_is_no_leak(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    assert not judge(drawing.replace("B A  A  A  A  A  A  A", "B A  A  A  A     A  A"))


def test_growth_by_a_tiny_share_is_not_reported(rule: Rule, judge: Judge[Finding]) -> None:
    assert not judge(rule.drawings("Fires on")[0].replace("bytes = 65536", "bytes = 512"))


@pytest.mark.torch
@pytest.mark.parametrize("kept_result", ["graph", "number"])
def test_recorded_programs_with_and_without_a_leak(
    rule: Rule, tmp_path: Path, kept_result: str
) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.randn(64, 64, requires_grad=True)
    losses = []
    path = tmp_path / "trace.json"
    plan = selftime.schedule(wait=0, warmup=1, active=8, repeat=1)
    with selftime.profile(schedule=plan, profile_memory=True, record_shapes=True) as prof:
        for _ in range(9):
            loss = (torch.randn(64, 64) @ weight).exp().sum()
            losses.append(loss if kept_result == "graph" else loss.item())
            prof.step()
    prof.export_chrome_trace(str(path))
    trace = selftime.load(path)
    assert isinstance(trace, Trace)
    found = [outcome for outcome in rule(trace) if isinstance(outcome, Finding)]
    assert len(found) == (kept_result == "graph")
