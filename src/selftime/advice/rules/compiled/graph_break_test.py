"""Tests the rule `graph_break` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest
from tests.preloaded import Preloaded

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace


def test_the_line_is_that_of_the_break(rule: Rule, judge: Judge[Finding]) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert (finding.where.file, finding.where.line) == ("train.py", 12)
    assert finding.where.function == "forward"
    assert finding.count_per_step == 1.0


def test_the_upper_bound_includes_code_between_the_regions(
    rule: Rule, judge: Judge[Finding]
) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    assert finding.saving.estimate_ms == pytest.approx(0.03)
    assert finding.saving.upper_ms == pytest.approx(0.05)


def test_without_stacks_the_line_is_unknown(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[0]
    lines = [line for line in drawing.splitlines() if not line.startswith(("python", "f ="))]
    [finding] = judge("\n".join(lines))
    assert finding.where.line is None


def test_compiled_functions_called_one_after_the_other_are_no_break(judge: Judge[Finding]) -> None:
    assert not judge("""
        column = 10 us
        mark 1 | sssssssssstttttttttt
        cpu 1  | crrrrcqqq crrrrcqqq
        cpu 1  |  laaa laa  laaa laa
        s = ProfilerStep#1
        t = ProfilerStep#2
        r = Torch-Compiled Region: 0/0
        q = Torch-Compiled Region: 1/0
        c = TorchDynamo Cache Lookup
        l = Pregraph bytecode
        a = aten::mm
    """)


def test_uncompiled_code_around_a_break_enters_each_region_again(judge: Judge[Finding]) -> None:
    drawing = """
        column = 10 us
        mark 1   | sssssssssssssssssssstttttttttttttttttttt
        python 1 | eeeeeeeeeeeeeeeeeee eeeeeeeeeeeeeeeeeee
        cpu 1    | crrrrrrrr crrrrrrrr crrrrrrrr crrrrrrrr
        cpu 1    |   acqqqqq   acqqqqq   acqqqqq   acqqqqq
        cpu 1    |      aaaa      aaaa      aaaa      aaaa
        s = ProfilerStep#1
        t = ProfilerStep#2
        e = torch/_dynamo/eval_frame.py(1076): compile_wrapper
        r = Torch-Compiled Region: 0/0
        q = Torch-Compiled Region: 1/0
        c = TorchDynamo Cache Lookup
        a = aten::mm
    """
    [finding] = judge(drawing)
    [alone] = judge("\n".join(line for line in drawing.splitlines() if "python" not in line))
    assert alone.saving.estimate_ms == pytest.approx(2 * 0.02)
    assert finding.saving.estimate_ms == pytest.approx(2 * 0.02 + 0.02)


PROGRAM = """
import sys
import torch
import selftime

def read(x):
    y = torch.relu(x @ x)
    if y.sum().item() > 0:
        y = y + 1
    return torch.sin(y)

def whole(x):
    y = torch.relu(x @ x)
    return torch.sin(torch.where(y.sum() > 0, y + 1, y))

compiled = torch.compile(read if sys.argv[1] == "read" else whole, backend="eager")
x = torch.ones(8, 8)
plan = selftime.schedule(wait=1, warmup=1, active=4, repeat=1)
with selftime.profile(schedule=plan, with_stack=True) as prof:
    for _ in range(6):
        compiled(x)
        prof.step()
prof.export_chrome_trace(sys.argv[2])
"""


@pytest.mark.sweep(1)
@pytest.mark.torch
@pytest.mark.parametrize(("kind", "breaks"), [("read", True), ("whole", False)])
def test_recorded_programs_with_and_without_a_graph_break(
    rule: Rule, preloaded: Preloaded, tmp_path: Path, kind: str, breaks: bool
) -> None:
    """Runs in a process of its own, so that profiled compilation does not affect other tests.

    In so small a program the cost of a break may be within the noise: then it is only checked.
    """
    pytest.importorskip("torch")
    path, program = str(tmp_path / "trace.json"), tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    done = preloaded.run([str(program), kind, path], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    trace = selftime.load(path)
    assert isinstance(trace, Trace)
    [outcome] = rule(trace)
    if isinstance(outcome, Finding):
        assert breaks
        assert (outcome.where.function, outcome.where.line) == ("read", 8)
    else:
        assert isinstance(outcome, Checked)
        assert outcome.reason.startswith("A compiled function breaks into several graphs") == breaks
