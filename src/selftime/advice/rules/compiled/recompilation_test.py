"""Tests the rule `recompilation` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest
from tests.preloaded import Preloaded

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace


def test_the_saving_is_the_compilation_time_per_step(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.saving.estimate_ms == pytest.approx(80.0)
    assert finding.where.line == 16
    assert finding.count_per_step == 1.0
    assert [e.value for e in finding.evidence if e.metric == "versions of the function"] == [4.0]


def test_steps_without_recompilation_lower_the_saving(judge: Judge[Finding]) -> None:
    """Two recompilations of 80 ms each are spread over four steps and cost 40 ms per step."""
    [finding] = judge("""
        column = 10 ms
        mark 1 | ssssssssssttttttttttuuuuuuuuuuvvvvvvvvvvwwwwwwwwww
        cpu 1  | aaaaaaaaaaccccccccaaaaaaaaaaaaccccccccaaaaaaaaaaaa
        mark 1 |           n                   m
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        v = ProfilerStep#4
        w = ProfilerStep#5
        c = _compile.compile_inner (dynamo_timed)
        n = entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=0/1
        m = entire_frame_compile_data: fn_name=_compile.compile_inner, compile_id=0/2
        a = Torch-Compiled Region: 0/1
    """)
    assert finding.saving.estimate_ms == pytest.approx(40.0)


PROGRAM = """
import sys
import torch
import selftime

def scaled(x, factor):
    return torch.relu(x @ x) * factor

compiled = torch.compile(scaled, backend="eager", dynamic=False)
x = torch.ones(8, 8)
with selftime.profile(schedule=selftime.schedule(wait=0, warmup=1, active=4, repeat=1)) as prof:
    for step in range(5):
        factor = step + 2.5
        compiled(x, factor if sys.argv[1] == "number" else torch.tensor(factor))
        prof.step()
prof.export_chrome_trace(sys.argv[2])
"""


@pytest.mark.torch
@pytest.mark.parametrize(("kind", "findings"), [("number", 1), ("tensor", 0)])
@pytest.mark.timed
def test_recorded_programs_with_and_without_recompilation(
    rule: Rule, preloaded: Preloaded, tmp_path: Path, kind: str, findings: int
) -> None:
    """Runs in a process of its own, so that profiled compilation does not affect other tests."""
    pytest.importorskip("torch")
    path, program = str(tmp_path / "trace.json"), tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = preloaded.run([str(program), kind, path], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    trace = selftime.load(path)
    assert isinstance(trace, Trace)
    found = [outcome for outcome in rule(trace) if isinstance(outcome, Finding)]
    assert len(found) == findings
    assert all(finding.count_per_step == 1.0 for finding in found)
