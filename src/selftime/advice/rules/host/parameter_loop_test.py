"""Tests the rule `parameter_loop` on edge cases that its documentation page omits."""

import runpy
from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge
from selftime.trace import Trace

DRAWING = """
    column = 10 us
    mark 1 | {step}
    cpu 1  | {loop}
    s = ProfilerStep#1
    a = aten::mul_; line = ema.py:4 update; input_shapes = [[8,8]]
    b = aten::add_; line = ema.py:{other} update; input_shapes = [[8,8]]
    l = aten::linear; line = net.py:9 forward; input_shapes = [[4,8],[8,8]]
    x = aten::relu; line = net.py:9 forward
    w = aten::addcmul_; line = sgd.py:4 update; input_shapes = [[8,8]]
"""


SECOND = "aten::mul_; line = ema.py:4 update; input_shapes = [[8,8]]"


def drawing(loop: str, *, second_line: int = 4, width: int = 100) -> str:
    return DRAWING.format(
        step="s" * width, loop=loop.ljust(width - 20) + "l" * 20, other=second_line
    )


def test_a_loop_over_twelve_parameters_is_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ab" * 11))
    [finding] = judge(drawing("ab" * 12))
    assert (finding.where.file, finding.where.line) == ("ema.py", 4)
    assert finding.count_per_step == 12


def test_a_loop_of_two_lines_is_one_finding(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("abb" * 12, second_line=5))
    assert finding.where.line == 5  # it takes most of the time
    assert finding.count_per_step == 12  # though each round adds twice


@pytest.mark.parametrize("rounds", [11, 12])
def test_an_operator_that_a_round_runs_twice_counts_once(
    judge: Judge[Finding], rounds: int
) -> None:
    """A round multiplies twice in one line, as `t.mul_(a); s.mul_(b)`, and then adds."""
    drawn = drawing("acb" * rounds).replace("    l =", f"    c = {SECOND}\n    l =", 1)
    found = judge(drawn)
    assert [one.count_per_step for one in found] == ([] if rounds < 12 else [12])
    assert all("12 rounds" in one.title for one in found)


def test_many_operators_on_a_few_parameters_are_not_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing("abw" * 8))


def test_only_the_overhead_of_long_operators_is_saved(judge: Judge[Finding]) -> None:
    long = "aaaaabbbbb"  # 50 us each: a tenth of it is overhead
    [finding] = judge(drawing(long * 12, width=200))
    assert finding.saving.upper_ms == pytest.approx(0.1 * 1.2)
    assert finding.saving.estimate_ms == pytest.approx(0.9 * 0.1 * 1.2)


def test_a_loop_between_layers_is_not_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing("ablx" * 14))


def test_parts_of_an_interrupted_loop_over_elements_are_not_reported(judge: Judge[Finding]) -> None:
    """A pause splits a loop over elements, and only one part is long enough for `loop_indexing`."""
    drawing = """
        column = 1 us
        mark 1 | {step}
        cpu 1  | {loop}
        s = ProfilerStep#1
        e = aten::select; line = rows.py:4 scale
        a = aten::mul_; line = rows.py:4 scale; input_shapes = [[8,8]]
        b = aten::mul_; line = ema.py:4 update; input_shapes = [[8,8]]
        l = aten::linear; line = net.py:9 forward; input_shapes = [[4,8],[8,8]]
    """
    rest = " " * 60 + "ea" * 14 + "l" * 20
    assert not judge(drawing.format(step="s" * 228, loop="ea" * 60 + rest))
    updates = ("eb" * 60 + rest.replace("a", "b")).replace("e", " ")
    assert judge(drawing.format(step="s" * 228, loop=updates))


PROGRAM = """
import torch

model = torch.nn.Sequential(*(torch.nn.Linear(8, 8) for _ in range(20)))
kept = [p.detach().clone() for p in model.parameters()]

def looped():
    model(torch.ones(4, 8)).sum().backward()
    with torch.no_grad():
        for average, new in zip(kept, model.parameters()):
            average.mul_(0.9).add_(new, alpha=0.1)

def at_once():
    model(torch.ones(4, 8)).sum().backward()
    with torch.no_grad():
        torch._foreach_lerp_(kept, list(model.parameters()), 0.1)
"""


@pytest.mark.torch
@pytest.mark.timed
def test_recorded_programs_with_and_without_a_parameter_loop(rule: Rule, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "average.py"
    file.write_text(PROGRAM, encoding="utf-8")
    program = runpy.run_path(str(file))
    found = {}
    for name in ("looped", "at_once"):
        schedule = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
        with selftime.profile(schedule=schedule, with_stack=True, record_shapes=True) as prof:
            for _ in range(5):
                program[name]()
                prof.step()
        prof.export_chrome_trace(str(tmp_path / f"{name}.json"))
        trace = selftime.load(tmp_path / f"{name}.json")
        assert isinstance(trace, Trace)
        found[name] = [o for o in rule(trace) if isinstance(o, Finding)]
    [finding] = found["looped"]
    assert (finding.where.file, finding.where.line) == (str(file), 11)
    assert finding.count_per_step == pytest.approx(40, rel=0.1)  # a pause may hide a round
    assert not found["at_once"]


REPLACED = """
    column = 10 us
    mark 1 | {step}
    cpu 1  | {loop}gh
    s = ProfilerStep#1
    a = aten::mul; line = ema.py:4 update; input_shapes = [[8,8],[]]
    b = aten::mul; line = ema.py:4 update; input_shapes = [[8],[]]
    x = aten::mul; line = ema.py:4 update; input_shapes = [[3,9],[]]
    l = aten::linear; line = net.py:9 forward
    g = torch::autograd::AccumulateGrad; input_shapes = [[8,8]]
    h = torch::autograd::AccumulateGrad; input_shapes = [[{width}]]
"""


@pytest.mark.parametrize(
    ("loop", "width", "is_reported"),
    [
        ("ab" * 6, "8", True),
        ("xx" * 6, "8", False),  # of no parameter's shape: samples, or results
        ("aa" * 6, "8,8", False),  # all parameters are alike: it may be one tensor
    ],
)
def test_a_loop_that_writes_new_tensors_is_reported(
    judge: Judge[Finding], loop: str, width: str, *, is_reported: bool
) -> None:
    text = REPLACED.format(step="s" * 40, loop="l" * 20 + loop, width=width)
    assert bool(judge(text)) is is_reported


SAMPLES = """
    column = 10 us
    mark 1 | {step}
    cpu 1  | {loop}
    s = ProfilerStep#1
    a = aten::div_; line = memory.py:4 sample; input_shapes = [{shape}]
    b = aten::div_; line = memory.py:4 sample; input_shapes = [{other}]
    l = aten::linear; line = net.py:9 forward; input_shapes = [[4,16],[8,16],[8]]
    e = aten::embedding; line = net.py:8 forward; input_shapes = [[100,16],[4]]
"""


@pytest.mark.parametrize(
    ("shape", "other", "is_reported"),
    [
        ("[8,16]", "[8]", True),
        ("[100,16]", "[8]", True),
        ("[8]", "[8]", False),  # one of several shapes: samples that are as long as a bias
        ("[4,84,84]", "[4,84,84]", False),
        ("[4,16]", "[4]", False),  # inputs of the network
    ],
)
def test_updates_of_samples_are_none_of_parameters(
    judge: Judge[Finding], shape: str, other: str, *, is_reported: bool
) -> None:
    loop = "ab" * 12 + "e" * 10 + "l" * 10
    drawn = SAMPLES.format(step="s" * len(loop), loop=loop, shape=shape, other=other)
    assert bool(judge(drawn)) is is_reported
