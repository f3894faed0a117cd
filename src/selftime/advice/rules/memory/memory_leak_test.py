"""Edges of `memory_leak` that its page does not draw."""

from pathlib import Path

import pytest

import selftime
from selftime.advice.base import Finding, Rule, Unknown
from selftime.testing import Judge, sketch
from selftime.trace import Trace


def test_it_tells_the_growth_and_no_saving(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.evidence[0].value == 65536
    assert finding.saving.estimate_ms is None


def test_a_few_steps_cannot_tell(rule: Rule) -> None:
    drawing = rule.drawings("Fires on")[0].replace("sssstttuuuvvvwwwxxxyyy", "sssstttuuuvvv")
    assert any(isinstance(outcome, Unknown) for outcome in rule(sketch(drawing)))


def test_one_step_without_growth_is_no_leak(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    assert not judge(drawing.replace("B A  A  A  A  A  A  A", "B A  A  A  A     A  A"))


def test_growth_that_takes_thousands_of_steps_is_left_alone(
    rule: Rule, judge: Judge[Finding]
) -> None:
    assert not judge(rule.drawings("Fires on")[0].replace("bytes = 65536", "bytes = 512"))


@pytest.mark.torch
@pytest.mark.parametrize("keeps", ["graph", "number"])
def test_on_a_program(rule: Rule, tmp_path: Path, keeps: str) -> None:
    torch = pytest.importorskip("torch")
    weight = torch.randn(64, 64, requires_grad=True)
    losses = []
    path = tmp_path / "trace.json"
    plan = selftime.schedule(wait=0, warmup=1, active=8, repeat=1)
    with selftime.profile(schedule=plan, profile_memory=True, record_shapes=True) as prof:
        for _ in range(9):
            loss = (torch.randn(64, 64) @ weight).exp().sum()
            losses.append(loss if keeps == "graph" else loss.item())
            prof.step()
    prof.export_chrome_trace(str(path))
    trace = selftime.load(path)
    assert isinstance(trace, Trace)
    found = [outcome for outcome in rule(trace) if isinstance(outcome, Finding)]
    assert len(found) == (keeps == "graph")
