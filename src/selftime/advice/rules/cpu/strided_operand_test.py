"""Tests the rule `strided_operand` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest

import selftime
from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge, sketch
from selftime.trace import Trace

DRAWING = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | aaaaaaaabcaaaaaaaabc
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::{name}; input_shapes = {shapes}; input_types = ["float","float"]; input_strides = {a}
    b = aten::{name}; input_shapes = {shapes}; input_types = ["float","float"]; input_strides = {b}
    c = aten::relu; input_shapes = [[8]]; input_types = ["float"]; input_strides = [[1]]
"""


def drawing(
    a: str = "[[512,1],[1,512]]",
    shapes: str = "[[512,512],[512,512]]",
    name: str = "mul",
    b: str = "[[512,1],[512,1]]",
) -> str:
    return DRAWING.format(a=a, b=b, shapes=shapes, name=name)


def test_the_pace_is_that_of_the_same_operator_in_order(judge: Judge[Finding]) -> None:
    """An operator takes 1 ms in memory order and 8 ms on a strided tensor: 7 ms are saved."""
    [finding] = judge(drawing())
    assert finding.saving.estimate_ms == pytest.approx(7.0)
    assert finding.saving.upper_ms == pytest.approx(8.0)


def test_short_rows_stay_in_a_cache(judge: Judge[Finding]) -> None:
    assert not judge(drawing("[[64,1],[1,512]]", "[[512,64],[512,64]]"))


def test_a_copy_is_made_to_change_the_layout(judge: Judge[Finding]) -> None:
    assert not judge(drawing(name="copy_"))


def test_channels_last_on_both_sides_lie_alike(judge: Judge[Finding]) -> None:
    strides = "[[65536,1,2048,32],[65536,1,2048,32]]"
    assert not judge(drawing(strides, "[[8,32,32,64],[8,32,32,64]]"))


@pytest.mark.parametrize("strides", ["[[512,1]]", "[[512],[1]]", "oops", "[[512,1],[512,512]]"])
def test_strides_that_do_not_fit_tell_nothing(rule: Rule, strides: str) -> None:
    trace = sketch(drawing(strides))
    assert not any(isinstance(outcome, Finding) for outcome in rule(trace))


@pytest.mark.torch
def test_on_a_program(rule: Rule, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    walks = {}
    for kind, other in (("across", b.t()), ("in order", b.t().contiguous())):
        path = tmp_path / f"{kind}.json"
        plan = selftime.schedule(wait=0, warmup=1, active=4, repeat=1)
        with selftime.profile(schedule=plan, record_shapes=True) as prof:
            for _ in range(5):
                torch.add(a, other)
                prof.step()
        prof.export_chrome_trace(str(path))
        trace = selftime.load(path)
        assert isinstance(trace, Trace)
        [outcome] = rule(trace)  # on a busy machine it may vary by more than it saves
        told = outcome.title if isinstance(outcome, Finding) else str(outcome)
        walks[kind] = "`aten::add` reads an operand in large strides" in told
    assert walks == {"across": True, "in order": False}
