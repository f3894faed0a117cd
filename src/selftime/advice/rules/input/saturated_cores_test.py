"""Edges of `saturated_cores` that its page does not draw."""

from importlib import import_module
from typing import Any

import pytest

from selftime.advice.base import Checked, Finding, Rule, Unknown
from selftime.advice.detectors.recorded_facts import Workers
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


def facts(*, cpu: float | None, busy: float | None, load: float = 1.0) -> dict[str, Any]:
    """Two workers that were watched for a second on two cores."""
    return {
        "cores": {"effective": 2, "load": load},
        "usage": {
            "wall_s": 1.0,
            "process_s": 0.2,
            "workers": {"count": 2, "cpu_s": cpu},
            "busy": busy,
            "steal": 0.0,
        },
    }


def test_more_workers_are_not_advised_as_well(rule: Rule) -> None:
    trace = sketch(STARVED, metadata={"selftime": facts(cpu=1.6, busy=1.0)})
    [finding] = rule(trace)
    assert isinstance(finding, Finding)
    assert finding.saving.estimate_ms is None
    assert finding.saving.upper_ms is not None
    assert finding.where.line == 9
    [workers] = import_module("selftime.advice.rules").RULES["slow_input"](trace)
    assert isinstance(workers, Checked)


def test_free_cores_are_for_more_workers(rule: Rule) -> None:
    trace = sketch(STARVED, metadata={"selftime": facts(cpu=0.8, busy=0.5)})
    [outcome] = rule(trace)
    assert isinstance(outcome, Checked)
    [workers] = import_module("selftime.advice.rules").RULES["slow_input"](trace)
    assert isinstance(workers, Finding)
    assert workers.covers == ("A2",)


@pytest.mark.parametrize("told", [{}, facts(cpu=None, busy=None)])
def test_what_was_not_recorded_is_not_known(rule: Rule, told: dict[str, Any]) -> None:
    [outcome] = rule(sketch(STARVED, metadata={"selftime": told}))
    assert isinstance(outcome, Unknown)


def test_on_a_loaded_machine_a_worker_that_computes_has_a_part_of_a_core() -> None:
    busy = Workers.of(facts(cpu=0.5, busy=1.0, load=8.0))
    assert busy is not None
    assert busy.saturate
    idle = Workers.of(facts(cpu=0.1, busy=1.0, load=8.0))
    assert idle is not None
    assert not idle.saturate


def test_time_in_the_queue_for_a_core_is_demand_for_one() -> None:
    told = facts(cpu=0.2, busy=1.0, load=1.0)
    told["usage"]["workers"]["queued_s"] = 1.6
    found = Workers.of(told)
    assert found is not None
    assert found.demand == pytest.approx(0.9)


def test_of_a_container_its_own_use_counts() -> None:
    told = facts(cpu=1.8, busy=0.05)
    found = Workers.of(told)
    assert found is not None
    assert found.used == pytest.approx(1.0)


@pytest.mark.parametrize(
    "usage",
    [None, 3, {}, {"wall_s": 0, "workers": {"count": 2}}, {"wall_s": 1, "workers": {"count": "x"}}],
)
def test_odd_facts_tell_nothing(usage: object) -> None:
    assert Workers.of({"usage": usage}) is None
