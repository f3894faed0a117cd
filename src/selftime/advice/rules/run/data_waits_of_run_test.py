"""Tests the rule `data_waits_of_run` on sketched runs."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge, sketch

RUN = """
    run | before 1 s
    run | iterator 1 ms with {} at train.py:9 main
    run | 101 training 100 ms: data_wait {} ms
"""


def test_without_workers_waits_are_hidden_behind_the_rest(judge: Judge[Finding]) -> None:
    [finding] = judge(RUN.format("0 workers", 30))
    assert finding.saving.run_s == pytest.approx(3)
    assert finding.saving.run_low_s == pytest.approx(1.5)
    assert finding.where.line == 9
    [longer] = judge(RUN.format("0 workers", 80))
    assert longer.saving.run_s == pytest.approx(2)
    assert longer.saving.run_high_s == pytest.approx(8)


def test_with_workers_the_wait_is_the_most(judge: Judge[Finding]) -> None:
    [finding] = judge(RUN.format("2 new workers", 30))
    assert finding.saving.run_s is None
    assert finding.saving.run_upper_s == pytest.approx(3)


def test_without_known_iterators_the_wait_is_the_most(judge: Judge[Finding]) -> None:
    drawn = "\n".join(
        line for line in RUN.format("0 workers", 30).splitlines() if "iterator" not in line
    )
    [finding] = judge(drawn)
    assert finding.saving.run_s is None


@pytest.mark.parametrize(("cores", "workers"), [(None, 4), (2, 1), (4, 3), (64, 4)])
def test_no_more_workers_are_advised_than_cores_are_free(
    rule: Rule, cores: int | None, workers: int
) -> None:
    facts = {"cores": {"effective": cores}}
    [finding] = rule(sketch(RUN.format("0 workers", 30), metadata={"selftime": facts}))
    assert isinstance(finding, Finding)
    assert finding.fix is not None
    assert f"num_workers={workers}," in (finding.fix.code or "")


@pytest.mark.parametrize(("cores", "cure"), [(2, "share already"), (8, "more workers")])
def test_no_workers_are_added_to_as_many_as_there_are_cores(
    rule: Rule, cores: int, cure: str
) -> None:
    facts = {"cores": {"effective": cores}}
    [finding] = rule(sketch(RUN.format("4 new workers", 30), metadata={"selftime": facts}))
    assert isinstance(finding, Finding)
    assert finding.fix is not None
    assert cure in finding.fix.text


@pytest.mark.parametrize(("cores", "low_s", "confidence"), [(2, 0.0, "low"), (4, 1.5, "medium")])
def test_two_logical_cores_may_be_threads_of_one(
    rule: Rule, cores: int, low_s: float, confidence: str
) -> None:
    facts = {"cores": {"effective": cores}}
    [finding] = rule(sketch(RUN.format("0 workers", 30), metadata={"selftime": facts}))
    assert isinstance(finding, Finding)
    assert finding.saving.run_low_s == pytest.approx(low_s)
    assert finding.confidence == confidence


def test_short_waits_are_less_than_a_worker_costs(rule: Rule) -> None:
    """Their sum may be long: a worker takes about a millisecond to hand over each batch."""
    facts = {"cores": {"effective": 4}}
    without, with_two = (
        RUN.format(workers, 1).replace("before 1 s", "before 1 ms").replace("100 ms", "4 ms")
        for workers in ("0 workers", "2 new workers")
    )
    [outcome] = rule(sketch(without, metadata={"selftime": facts}))
    assert isinstance(outcome, Checked)
    assert "hand over a batch" in outcome.reason
    [finding] = rule(sketch(with_two, metadata={"selftime": facts}))
    assert isinstance(finding, Finding)


def test_workers_gain_nothing_on_the_only_core_unless_loading_waits(rule: Rule) -> None:
    facts = {"cores": {"effective": 1}}
    [outcome] = rule(sketch(RUN.format("0 workers", 30), metadata={"selftime": facts}))
    assert isinstance(outcome, Checked)
    assert "no core is free for workers" in outcome.reason
    assert outcome.run_upper_s == pytest.approx(3)
    storage = """
        column = 1 ms
        mark 1   | sssssssssstttttttttt
        mark 1   | dddddd    dddddd
        python 1 | wwwwww    wwwwww
        cpu 1    |       aaaa      aaaa
        s = ProfilerStep#1
        t = ProfilerStep#2
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
        w = <built-in function sleep>
    """
    [waits] = rule(sketch(RUN.format("0 workers", 30) + storage, metadata={"selftime": facts}))
    assert isinstance(waits, Finding)
    assert "num_workers=4" in (waits.fix.code or "")


@pytest.mark.parametrize("loop", ["", "run | loop training at train.py:9"])
def test_a_loader_for_evaluation_is_another(judge: Judge[Finding], loop: str) -> None:
    drawn = f"""
        {"run | iterator 1 ms with 0 workers at train.py:5 check" if loop else ""}
        run | before 1 s
        run | iterator 1 ms with 2 new workers at train.py:9 main
        run | 101 training 100 ms: data_wait 30 ms
        run | iterator 1 ms with 0 workers at train.py:20 validate
        run | iterator 1 ms with 0 workers at train.py:20 validate
        {loop}
    """
    [finding] = judge(drawn)
    assert finding.where.line == 9
    assert finding.evidence[2].value == 2
