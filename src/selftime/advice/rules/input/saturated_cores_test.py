"""Tests the rule `saturated_cores` on edge cases that its documentation page omits."""

from importlib import import_module
from typing import Any

import pytest

from selftime.advice.detectors.recorded_facts import WorkerCoreUse
from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import sketch

STARVED = """
    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | dddd        dddd        dddd
    cpu 1  |     aaaaaaaa    aaaaaaaa    aaaaaaaa
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__; line = train.py:9 main
"""


def facts(
    *, worker_cpu_s: float | None, busy_cores: float | None, load: float = 1.0
) -> dict[str, Any]:
    """Returns measurements of two DataLoader workers that ran for 1 s on two CPU cores."""
    return {
        "cores": {"effective": 2, "load": load},
        "usage": {
            "wall_s": 1.0,
            "process_s": 0.2,
            "workers": {"count": 2, "cpu_s": worker_cpu_s},
            "busy": busy_cores,
            "steal": 0.0,
        },
    }


def test_slow_input_does_not_advise_more_workers_too(rule: Rule) -> None:
    trace = sketch(STARVED, metadata={"selftime": facts(worker_cpu_s=1.6, busy_cores=1.0)})
    [finding] = rule(trace)
    assert isinstance(finding, Finding)
    assert finding.saving.estimate_ms is None
    assert finding.saving.upper_ms is not None
    assert finding.where.line == 9
    [workers] = import_module("selftime.advice.rules").RULES["slow_input"](trace)
    assert isinstance(workers, Checked)


def test_with_free_cores_slow_input_advises_more_workers(rule: Rule) -> None:
    trace = sketch(STARVED, metadata={"selftime": facts(worker_cpu_s=0.8, busy_cores=0.5)})
    [outcome] = rule(trace)
    assert isinstance(outcome, Checked)
    [workers] = import_module("selftime.advice.rules").RULES["slow_input"](trace)
    assert isinstance(workers, Finding)
    assert workers.covers == ("A2",)


@pytest.mark.parametrize("told", [{}, facts(worker_cpu_s=None, busy_cores=None)])
def test_without_the_use_of_cores_the_outcome_is_unknown(rule: Rule, told: dict[str, Any]) -> None:
    [outcome] = rule(sketch(STARVED, metadata={"selftime": told}))
    assert isinstance(outcome, Unknown)


def test_on_a_loaded_machine_computing_workers_saturate_the_cores() -> None:
    busy = WorkerCoreUse.from_facts(facts(worker_cpu_s=0.5, busy_cores=1.0, load=8.0))
    assert busy is not None
    assert busy.saturate_cores
    idle = WorkerCoreUse.from_facts(facts(worker_cpu_s=0.1, busy_cores=1.0, load=8.0))
    assert idle is not None
    assert not idle.saturate_cores


def test_time_that_a_worker_queues_for_a_core_counts_as_demand() -> None:
    told = facts(worker_cpu_s=0.2, busy_cores=1.0, load=1.0)
    told["usage"]["workers"]["queued_s"] = 1.6
    found = WorkerCoreUse.from_facts(told)
    assert found is not None
    assert found.core_demand_share == pytest.approx(0.9)


def test_in_a_container_its_own_use_of_cores_counts() -> None:
    told = facts(worker_cpu_s=1.8, busy_cores=0.05)
    found = WorkerCoreUse.from_facts(told)
    assert found is not None
    assert found.core_use_share == pytest.approx(1.0)


@pytest.mark.parametrize(
    "usage",
    [None, 3, {}, {"wall_s": 0, "workers": {"count": 2}}, {"wall_s": 1, "workers": {"count": "x"}}],
)
def test_malformed_usage_facts_are_ignored(usage: object) -> None:
    assert WorkerCoreUse.from_facts({"usage": usage}) is None
