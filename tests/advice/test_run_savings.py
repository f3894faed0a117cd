"""Findings are priced for the whole run, each cause once, and stand in the order of that."""

from dataclasses import replace

import pytest

from selftime.advice import Advice, Finding, Fix, Saving, Where, advise
from selftime.advice.rule_outcomes import Checked
from selftime.advice.savings.claims import RunClaim
from selftime.advice.savings.run_savings import (
    finding_or_checked_of_run,
    one_finding_per_cause,
    program_ns,
    with_savings_of_run,
)
from selftime.run import Run
from selftime.testing import sketch
from selftime.trace import Trace

STEPS = """
    column = 1 ms
    mark 1   | ssssssssssssttttttttttttuuuuuuuuuuuu
    python 1 |    ggggg       ggggg       ggggg
    cpu 1    |         mmmm        mmmm        mmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    g = <built-in function collect>
    m = aten::mm
"""
RUN = """
    run | before 1 s
    run | 97 training 12 ms
    run | 3 training 12 ms recorded
"""
EPOCHS = """
    run | iterator 500 ms with 2 new workers at train.py:9 main
    run | training 512 ms: epoch_boundary 500 ms
"""


def finding(
    rule: str, covers: str, estimate_ms: float | None = None, claim: RunClaim | None = None
) -> Finding:
    saving = Saving()
    if estimate_ms is not None:
        saving = Saving.of_step(12.0, estimate_ms, method="model", high_ms=12.0, upper_ms=12.0)
    told = Finding(
        rule=rule,
        covers=(covers,),
        title=rule,
        where=Where("train.py", 3),
        saving=saving,
        confidence="high",
        fix=Fix("Change it."),
        claim=claim,
    )
    if claim is None:
        return told
    priced = finding_or_checked_of_run(run_of(RUN), told, claim)
    assert isinstance(priced, Finding)
    return priced


def priced_for(run: Run, estimate_ms: float) -> Finding:
    [priced] = with_savings_of_run(
        Trace(run=run), [finding("garbage_collection", "D6", estimate_ms)]
    )
    return priced


def run_of(drawing: str) -> Run:
    return sketch(drawing).run


def test_without_a_ledger_nothing_is_known_of_the_run() -> None:
    advice = advise(sketch(STEPS))
    assert advice.run is None
    assert advice.joint.run_s is None
    assert advice.findings
    assert all(found.saving.run_s is None for found in advice.findings)
    needing = {unknown.rule for unknown in advice.unknown if "ledger" in unknown.needs}
    assert "epoch_worker_starts" in needing


def test_a_saving_of_a_step_counts_for_each_step_that_was_not_recorded() -> None:
    priced = priced_for(run_of(RUN), 2.0).saving
    assert priced.run_s == pytest.approx(100 * 0.002)
    assert priced.run_high_s == pytest.approx(100 * 0.012)
    assert priced.estimate_ms == 2.0


def test_no_step_saves_more_than_it_took() -> None:
    drawing = RUN + "run | 100 training 1 ms"
    priced = priced_for(run_of(drawing), 2.0).saving
    assert priced.run_s == pytest.approx(100 * 0.002 + 100 * 0.001)


def test_steps_of_another_kind_and_the_excess_of_slow_ones_do_not_count() -> None:
    drawing = RUN + "run | 50 token 12 ms\n run | training 900 ms"
    priced = priced_for(run_of(drawing), 12.0).saving
    assert priced.run_s == pytest.approx(101 * 0.012)


def test_a_run_without_recorded_steps_prices_none() -> None:
    told = finding("slow", "D6", 2.0)
    assert with_savings_of_run(Trace(run=run_of("run | 9 training 12 ms")), [told]) == [told]


@pytest.mark.parametrize(
    ("claim", "is_reported"),
    [
        (RunClaim(10**9, saved_ns=21 * 10**6), False),  # of 2.2 s: less than 2 %
        (RunClaim(10**9, saved_ns=60 * 10**6), True),
        (RunClaim(10**9, saved_ns=60 * 10**6, noise_ns=70 * 10**6), False),
        (RunClaim(200 * 10**6), False),  # the most alone: less than a tenth
        (RunClaim(300 * 10**6), True),
    ],
)
def test_what_is_small_or_within_its_error_is_ruled_out(
    claim: RunClaim, *, is_reported: bool
) -> None:
    told = replace(finding("rare", "M8"), claim=claim)
    outcome = finding_or_checked_of_run(run_of(RUN), told, claim)
    assert isinstance(outcome, Finding if is_reported else Checked)


def test_nothing_saves_more_than_the_run() -> None:
    run = run_of(RUN)
    saving = finding("rare", "M8", claim=RunClaim(10**12, saved_ns=10**11)).saving
    assert saving.run_s == saving.run_upper_s == program_ns(run) / 1e9


def test_one_cause_is_told_once() -> None:
    run = run_of(RUN)
    step = priced_for(run, 2.0)  # 0.2 s of the run
    whole = finding("collections_of_run", "D6", claim=RunClaim(10**9, saved_ns=150 * 10**6))
    [told, same] = one_finding_per_cause(Trace(), [step, replace(whole, covers=("M5", "D6"))])
    assert (told.rule, same.rule) == ("garbage_collection", "collections_of_run")
    assert isinstance(same, Checked)
    more = finding(
        "collections_of_run", "D6", claim=RunClaim(10**9, saved_ns=10**9, low_ns=8 * 10**8)
    )
    [same, told] = one_finding_per_cause(Trace(), [step, more])
    assert (told.rule, same.rule) == ("collections_of_run", "garbage_collection")
    assert one_finding_per_cause(Trace(), [step, replace(more, covers=("M8",))])[0] is step


def test_a_cause_of_which_the_run_knows_a_larger_bound_is_told_of_the_run() -> None:
    step = priced_for(run_of(RUN), 2.0)
    step = replace(step, saving=replace(step.saving, run_high_s=0.2, run_upper_s=0.3))
    for ms, rule in ((500, "garbage_collection"), (700, "collections_of_run")):
        whole = finding("collections_of_run", "D6", claim=RunClaim(ms * 10**6))
        assert whole.saving.run_upper_s == ms / 1e3
        found = one_finding_per_cause(Trace(), [step, whole])
        assert [one.rule for one in found if isinstance(one, Finding)] == [rule]


def test_findings_of_steps_and_of_the_run_are_one_list() -> None:
    advice = advise(sketch(STEPS + RUN + 3 * EPOCHS))
    assert [found.rule for found in advice.findings][:2] == [
        "epoch_worker_starts",
        "garbage_collection",
    ]
    assert all(found.saving.run_s is not None for found in advice.findings[:2])
    alone = advise(sketch(STEPS + RUN + EPOCHS))
    assert alone.findings[0].rule == "garbage_collection"


def test_together_they_save_what_lies_in_steps_and_what_lies_outside() -> None:
    advice = advise(sketch(STEPS + RUN + 3 * EPOCHS))
    [starts, collections] = advice.findings[:2]
    expected = (starts.saving.run_s or 0) + (collections.saving.run_s or 0)
    assert advice.joint.run_s == pytest.approx(expected, rel=0.05)


def test_a_ledger_without_a_recording_gets_the_rules_of_the_run() -> None:
    advice = advise(sketch(RUN.replace(" recorded", "") + 3 * EPOCHS))
    assert advice.health.verdict == "unusable"
    assert [found.rule for found in advice.findings] == ["epoch_worker_starts"]
    assert advice.run is not None
    assert advice.run.covered_s is None


def test_the_advice_tells_what_was_recorded_of_the_run() -> None:
    run = advise(sketch(STEPS + RUN)).run
    assert run is not None
    assert (run.kind, run.steps) == ("training", 100)
    assert run.covered_s == pytest.approx(1.2)
    assert run.wall_s == pytest.approx(2.2)


def test_the_json_has_the_run() -> None:
    told = advise(sketch(STEPS + RUN)).to_dict()
    assert told["run"] == {"wall_s": 2.2, "kind": "training", "steps": 100, "covered_s": 1.2}
    assert told["findings"][0]["saving"]["run_s"] > 0
    assert Advice(advise(sketch(STEPS)).health).to_dict()["run"] is None
