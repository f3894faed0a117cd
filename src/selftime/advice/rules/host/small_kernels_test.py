"""Tests the rule `small_kernels` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest
from tests.preloaded import Preloaded

import selftime
from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.testing import GRADIENTS_OF_GRADIENTS, Judge, sketch
from selftime.trace import Trace

DRAWING = """
    column = 10 us
    mark 1   | {step}
    python 1 | {frames}
    cpu 1    | {work}
    s = ProfilerStep#1
    a = aten::mul; line = net.py:5 forward
    b = aten::add; line = net.py:5 forward
    g = Python GC
    m = nn.Module: Net_0; module_id = 1
    n = nn.Module: Linear_1; module_id = 2
    c = nn.Module: MSELoss_2; module_id = 3
    l = aten::select; line = fill.py:3 fill
"""


def drawing(operator_count: int, *, frames: str = "", last_operators: str = "") -> str:
    work = "ab" * (operator_count // 2) + last_operators
    return DRAWING.format(step="s" * len(work), work=work, frames=frames.ljust(len(work)))


def test_sixty_operators_a_step_are_too_few(judge: Judge[Finding]) -> None:
    assert not judge(drawing(60))
    [finding] = judge(drawing(62))
    assert finding.covers == ("J9",)
    assert (finding.where.file, finding.where.line) == ("net.py", 5)


def test_it_names_a_line_only_where_one_is_known(judge: Judge[Finding]) -> None:
    operators = "\n".join(
        ["column = 10 us", f"mark 1 | {'s' * 1100}", f"cpu 1  | {'ab' * 550}", "s = ProfilerStep#1"]
    )
    kinds = "\na = aten::mul{line}\nb = aten::add{line}"
    [nowhere] = judge(operators + kinds.format(line=""))
    [somewhere] = judge(operators + kinds.format(line="; line = net.py:5 forward"))
    assert "1,100 small operators" in nowhere.title
    assert "line" not in nowhere.fix.text
    assert "the named line issues most" in somewhere.fix.text


def test_where_compiled_code_runs_it_is_not_told_to_compile(
    rule: Rule, judge: Judge[Finding]
) -> None:
    text = rule.drawings("Fires on")[1]
    [eager] = judge(text)
    region = "cpu 1  | zzzz\nz = Torch-Compiled Region: 0/0\n"
    [compiled] = judge(text.replace("cpu 1", region + "cpu 1", 1))
    assert eager.fix.text.startswith("Compile the model")
    assert compiled.fix.text.startswith("Compiled code runs already")
    assert compiled.fix.argument is None


def test_nothing_is_compiled_where_gradients_of_gradients_are_taken(
    rule: Rule, judge: Judge[Finding]
) -> None:
    assert judge(drawing(100))
    [outcome] = rule(sketch(drawing(100) + GRADIENTS_OF_GRADIENTS))
    assert isinstance(outcome, Checked)
    assert "does not support the gradients of gradients" in outcome.reason
    [finding] = judge(rule.drawings("Fires on")[1] + GRADIENTS_OF_GRADIENTS)
    assert finding.fix.argument is None
    assert finding.fix.code is not None
    assert "torch.compile" not in finding.fix.code


def test_what_the_host_does_for_long_without_an_operator_is_no_dispatch(
    judge: Judge[Finding],
) -> None:
    [alone] = judge(drawing(100))
    [beside] = judge(drawing(100, last_operators=32 * " "))
    assert beside.saving.estimate_ms == pytest.approx(alone.saving.estimate_ms, rel=0.02)
    assert not judge(drawing(100, last_operators=200 * " "))


def test_garbage_collection_is_not_part_of_the_saving(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(80, frames=" " * 80 + "g" * 80, last_operators=" " * 80))
    assert finding.saving.upper_ms == pytest.approx(0.8)


def test_a_loop_over_elements_has_its_own_rule(judge: Judge[Finding]) -> None:
    assert not judge(drawing(0, last_operators="la" * 100))


def test_the_estimate_and_interval_on_a_cpu(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(100))
    call_ms = 0.01
    assert finding.saving.low_ms == pytest.approx((0.4 - 2 * call_ms) / 1.3)
    assert finding.saving.estimate_ms == pytest.approx(0.8 - call_ms)
    assert finding.saving.upper_ms == pytest.approx(1.0)


def test_many_calls_of_compiled_code_may_be_a_loss(judge: Judge[Finding]) -> None:
    """25 calls of the model, of four operators each; within it modules, beside it a loss."""
    [once] = judge(drawing(100))
    [often] = judge(drawing(100, frames="mmm " * 25))
    assert often.saving.estimate_ms == pytest.approx(0.8 - 25 * 0.01)
    assert often.saving.low_ms is not None
    assert often.saving.low_ms < 0 < (once.saving.low_ms or 0)
    assert often.saving.high_ms is not None
    assert often.saving.high_ms > 0
    assert not judge(drawing(100, frames="mn" * 50))
    [losses] = judge(drawing(100, frames="c " * 50))
    assert losses.saving.estimate_ms == once.saving.estimate_ms


def test_modules_within_the_model_are_no_calls_of_it(judge: Judge[Finding]) -> None:
    nested = drawing(100, frames="m" * 100)
    inner = "python 1 | " + "n " * 50
    [alone] = judge(nested)
    [with_layers] = judge(nested.replace("    cpu 1", f"    {inner}\n    cpu 1"))
    assert with_layers.saving.estimate_ms == alone.saving.estimate_ms


PROGRAM = """
import gc
import sys

import selftime
import torch

rows = torch.randn({size}, {size})

def step():
    t = rows
    for _ in range(40):
        t = t * 1.01 + 0.1
    return t

gc.disable()  # a pause would be most of so short a step
schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
with selftime.profile(schedule=schedule, with_stack=True) as prof:
    for _ in range(5):
        step()
        prof.step()
prof.export_chrome_trace(sys.argv[1])
"""


@pytest.mark.torch
@pytest.mark.parametrize(("size", "count"), [(8, 1), (600, 0)])
@pytest.mark.timed
def test_recorded_chains_of_small_and_large_operators(
    rule: Rule, preloaded: Preloaded, tmp_path: Path, *, size: int, count: int
) -> None:
    """Runs in a process of its own, so that other tests do not slow operators of a microsecond."""
    file, path = tmp_path / "chain.py", tmp_path / "trace.json"
    file.write_text(PROGRAM.format(size=size), encoding="utf-8")
    done = preloaded.run([str(file), str(path)], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    trace = selftime.load(path)
    assert isinstance(trace, Trace)
    findings = [o for o in rule(trace) if isinstance(o, Finding)]
    assert len(findings) == count
    for finding in findings:
        assert finding.where.function == "step"
        assert finding.count_per_step == pytest.approx(80)


def test_interrupted_operators_count_as_small(judge: Judge[Finding]) -> None:
    drawing = """
        column = 10 us
        mark 1 | {step}
        cpu 1  | {ops}
        s = ProfilerStep#1
        a = aten::mul
        b = aten::add
        c = {other}
    """
    ops = "ab" * 40 + "c" * 60
    assert judge(drawing.format(step="s" * 140, ops=ops, other="aten::mul"))
    assert not judge(drawing.format(step="s" * 140, ops=ops, other="aten::mm"))


def test_a_model_called_often_may_be_called_once(judge: Judge[Finding]) -> None:
    """The interval holds what a single call of all samples saves, and the fix tells of it."""
    often, once = 9 * ("m" * 99 + " "), "m" * 900
    trains = "    cpu 2 | w\n    w = autograd::engine::evaluate_function: MulBackward0\n"
    [each] = judge(drawing(900, frames=often) + trains)
    [whole] = judge(drawing(900, frames=once) + trains)
    assert "calls the model 9 times" in each.fix.text
    assert "calls the model" not in whole.fix.text
    assert (each.saving.high_ms or 0) > (whole.saving.high_ms or 0)


def test_operators_joined_by_hand_are_the_high_end_in_training(judge: Judge[Finding]) -> None:
    """Compiling leaves 60 % of 2.5 ms; fewer operators need no compiled backward pass."""
    trains = "    cpu 2 | w\n    w = autograd::engine::evaluate_function: MulBackward0\n"
    [finding] = judge(drawing(250) + trains)
    assert finding.saving.estimate_ms is not None
    assert finding.saving.estimate_ms < 0.4 * 2.5
    assert finding.saving.high_ms == pytest.approx(0.8 * 2.5, abs=0.11)


def test_parts_of_a_model_are_not_one_that_is_called_often(judge: Judge[Finding]) -> None:
    parts = "mmmmmmmmm nnnnnnnnn oooooooooo ppppppppp qqqqqqqqq "
    more = "".join(
        f"    {one} = nn.Module: Part_{at}; module_id = {at}\n" for at, one in enumerate("opq", 4)
    )
    [finding] = judge(drawing(90, frames=parts) + more)
    assert "calls the model" not in finding.fix.text
