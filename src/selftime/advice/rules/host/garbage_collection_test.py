"""Tests the rule `garbage_collection` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest
from tests.experimental import experimental_config

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.advice.savings.rare_events import rate_interval
from selftime.testing import Judge, sketch
from selftime.trace import Trace

DRAWING = """
    column = 1 ms
    mark 1   | sssssssssstttttttttttttttttttttuuuuuuuuuuvvvvvvvvvvwwwwwwwwww
    python 1 |           gggggggggggg
    cpu 1    | mmmmmmmmmm            aaaaaaaaabbbbbbbbbbccccccccccdddddddddd
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    v = ProfilerStep#4
    w = ProfilerStep#5
    g = Python GC
"""


def test_a_pause_in_one_step_counts_though_that_step_is_an_outlier(judge: Judge[Finding]) -> None:
    [finding] = judge(DRAWING)
    low, high = rate_interval(1)
    assert finding.saving.estimate_ms == pytest.approx(0.95 * 12 / 5, rel=0.01)
    assert finding.saving.low_ms == pytest.approx(low * 0.95 * 12 / 5, rel=0.01)
    assert finding.saving.upper_ms == pytest.approx(high * 0.95 * 12 / 5, rel=0.01)
    assert finding.count_per_step == pytest.approx(1 / 5)


def test_a_recording_without_gc_events_gives_unknown(rule: Rule) -> None:
    [outcome] = rule(sketch("cpu 1 | aaaa"))
    assert isinstance(outcome, Unknown)
    assert "record_python_gc_info" in outcome.needs


@pytest.mark.parametrize(
    ("is_recorded", "outcome_type"), [("true", Checked), ("false", Unknown), ("null", Unknown)]
)
def test_no_collection_is_checked_only_if_collections_were_recorded(
    rule: Rule, is_recorded: str, outcome_type: type
) -> None:
    facts = f'facts = {{"flags": {{"record_python_gc_info": {is_recorded}}}}}'
    found = list(rule(sketch(f"cpu 1 | aaaa\n{facts}")))
    assert [type(each) for each in found] == [outcome_type]


def test_an_explicit_call_and_its_gc_events_are_one_finding(judge: Judge[Finding]) -> None:
    [finding] = judge("""
        column = 1 ms
        mark 1   | sssssssssstttttttttt
        python 1 |  ggggg     ggggg
        python 1 |  hhhh      hhhh
        s = ProfilerStep#1
        t = ProfilerStep#2
        g = <built-in function collect>
        h = Python GC
    """)
    assert finding.title.startswith("The program calls")
    assert finding.saving.upper_ms == pytest.approx(5)


@pytest.mark.torch
@pytest.mark.timed
def test_a_program_that_collects_in_each_step(rule: Rule, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    file = tmp_path / "collecting.py"
    file.write_text(
        "import gc\nimport torch\n\n"
        "rows = torch.randn(64, 64)\n\n"
        "def step():\n    gc.collect()\n    return rows @ rows\n",
        encoding="utf-8",
    )
    step = runpy.run_path(str(file))["step"]
    path = tmp_path / "trace.json"
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=3, repeat=1),
        with_stack=True,
        experimental_config=experimental_config(record_python_gc_info=True),
    ) as prof:
        for _ in range(4):
            step()
            prof.step()
    prof.export_chrome_trace(str(path))
    trace = selftime.load(path)
    assert isinstance(trace, Trace)
    findings = [o for o in rule(trace) if isinstance(o, Finding)]
    [finding] = [f for f in findings if f.title.startswith("The program calls")]
    assert finding.where.function == "step"
    assert finding.count_per_step == pytest.approx(1)
    assert finding.saving.speedup is not None
    assert finding.saving.speedup > 2
