"""Tests the rule `long_rollouts` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

UPDATES = "    run | 10 training 100 ms\n"


def acting(ms: int, seen: str = "program {ms} ms at agent.py:20 act") -> str:
    return f"    run | rollout {ms} ms: {seen.format(ms=ms)}\n"


def test_all_of_the_acting_is_the_most_that_can_be_saved(judge: Judge[Finding]) -> None:
    [finding] = judge("run | before 1 s\n" + 2 * (acting(500) + UPDATES))
    assert finding.saving.run_s is None
    assert finding.saving.run_upper_s == pytest.approx(1)
    assert (finding.where.file, finding.where.line) == ("agent.py", 20)
    assert "in 2 rollouts" in finding.title
    assert [evidence.value for evidence in finding.evidence] == [2, 500]
    assert finding.semantics == "training"


def test_the_line_is_the_one_that_takes_longest(judge: Judge[Finding]) -> None:
    seen = "program 100 ms at agent.py:20 act, program 400 ms at game.py:7 step"
    [finding] = judge("run | before 1 s\n" + acting(500, seen) + UPDATES)
    assert (finding.where.file, finding.where.function) == ("game.py", "step")
    assert "in one rollout" in finding.title


def test_without_a_stack_the_line_is_unknown(judge: Judge[Finding]) -> None:
    [finding] = judge("run | before 1 s\n    run | rollout 500 ms\n" + UPDATES)
    assert finding.where.file is None


def test_acting_that_takes_little_is_told(rule: Rule) -> None:
    [outcome] = rule(sketch("run | before 1 s\n" + acting(100) + UPDATES))
    assert isinstance(outcome, Checked)
    assert not outcome.is_absent
    assert "4.8 % of the run" in outcome.reason


def test_a_run_without_rollouts_has_none(rule: Rule) -> None:
    [outcome] = rule(sketch("run | before 1 s\n" + UPDATES))
    assert isinstance(outcome, Checked)
    assert outcome.is_absent
