"""Tests the rule `collections_of_run` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge


def test_collections_after_the_first_steps_are_saved_but_a_twentieth(
    judge: Judge[Finding],
) -> None:
    [finding] = judge("run | before 1 s\n run | 55 training 100 ms: garbage_collection 10 ms")
    assert finding.saving.run_s == pytest.approx(0.95 * 0.49)
    assert finding.saving.run_high_s == pytest.approx(0.49)
    assert [evidence.value for evidence in finding.evidence] == [500, 50, 10]


def test_few_long_ones_count_as_well(judge: Judge[Finding]) -> None:
    drawn = "run | 50 training 100 ms\n run | 2 training 1100 ms: garbage_collection 1 s"
    [finding] = judge(drawn)
    assert finding.saving.run_s == pytest.approx(0.95)


def test_one_long_one_is_made_by_the_fix_as_well(judge: Judge[Finding]) -> None:
    drawn = "run | 50 training 100 ms\n run | training 1100 ms: garbage_collection 1 s"
    assert not judge(drawn)
