"""Tests the rule `epoch_worker_starts` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Finding, Rule, Unknown
from selftime.testing import Judge, sketch

EPOCH = """
    run | iterator 500 ms with 2 new workers at train.py:9 main
    run | training 800 ms: epoch_boundary 700 ms
    run | 9 training 100 ms
"""


def test_all_starts_but_the_first_are_saved_and_at_least_half_of_the_waits(
    judge: Judge[Finding],
) -> None:
    [finding] = judge("run | before 1 s" + 4 * EPOCH)
    assert str(finding.where) == "`train.py:9 in main`"
    assert finding.saving.run_s == pytest.approx(3 * (0.5 + 0.2 / 2))
    assert finding.saving.run_low_s == pytest.approx(3 * 0.6 * 0.75)
    assert finding.saving.run_high_s == pytest.approx(3 * 0.7)
    assert finding.saving.estimate_ms is None
    assert finding.confidence == "high"


def test_steps_bound_the_time_of_a_batch(judge: Judge[Finding]) -> None:
    """Two workers that keep up with steps of 10 ms make a batch in 20 ms or less."""
    [finding] = judge(
        "run | before 1 s" + 2 * EPOCH.replace("100 ms", "10 ms").replace("800 ms", "710 ms")
    )
    assert finding.saving.run_s == pytest.approx(0.5 + 0.2 - 0.02)


def test_each_loader_is_a_cause_of_its_own(judge: Judge[Finding]) -> None:
    found = judge("run | before 1 s" + 2 * (EPOCH + EPOCH.replace(":9", ":20")))
    assert sorted(finding.where.line or 0 for finding in found) == [9, 20]
    assert all(finding.saving.run_s == pytest.approx(0.6) for finding in found)


def test_a_start_within_an_evaluation_has_no_wait_of_its_own(judge: Judge[Finding]) -> None:
    [finding] = judge("run | before 1 s" + 2 * EPOCH.replace("epoch_boundary", "evaluation"))
    assert finding.saving.run_s == pytest.approx(0.5)


def test_a_ledger_that_does_not_tell_of_iterators(rule: Rule) -> None:
    lines = [line for line in (2 * EPOCH).splitlines() if "iterator" not in line]
    [outcome] = rule(sketch("\n".join(["run | before 1 s", *lines])))
    assert isinstance(outcome, Unknown)
    assert "record" in outcome.needs


CORES = 'facts = {"cores": {"effective": 2}}\n'
BUSY = EPOCH.replace("500 ms with", "500 ms of which 100 ms on a core with")


def test_a_start_that_waits_for_a_core_saves_the_time_of_its_own(judge: Judge[Finding]) -> None:
    [finding] = judge("run | before 1 s" + 4 * BUSY + CORES)
    assert finding.saving.run_s == pytest.approx(3 * (0.1 + 0.2 / 2))
    assert finding.saving.run_high_s == pytest.approx(3 * 0.7)
    [finding] = judge("run | before 1 s" + 4 * BUSY + CORES.replace("2}", "8}"))
    assert finding.saving.run_s == pytest.approx(3 * (0.5 + 0.2 / 2))
    assert finding.saving.run_low_s == pytest.approx(3 * 0.2 * 0.75)


def test_without_the_time_on_a_core_only_the_most_is_known(judge: Judge[Finding]) -> None:
    [finding] = judge("run | before 1 s" + 4 * EPOCH + CORES)
    assert (finding.saving.run_s, finding.confidence) == (None, "medium")
    assert finding.saving.run_upper_s == pytest.approx(3 * 0.7)


def test_loaders_of_one_line_are_one_change(judge: Judge[Finding]) -> None:
    created = 'facts = {"created": [{"kind": "loader", "class_name": "DataLoader", "file": "d.py", '
    created += '"line": 4, "is_direct": true, "packages": []}]}\n'
    [finding] = judge("run | before 1 s" + 3 * (EPOCH + EPOCH.replace(":9", ":20")) + created)
    assert finding.title == "Worker processes restart 4 times after their first start"
    assert finding.saving.run_s == pytest.approx(4 * 0.6)
    told = [one.metric for one in finding.evidence if one.metric.startswith("of them at")]
    assert told == ["of them at `train.py:9 in main`", "of them at `train.py:20 in main`"]
