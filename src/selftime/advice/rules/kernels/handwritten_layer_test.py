"""Tests the rule `handwritten_layer` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import GRADIENTS_OF_GRADIENTS, Judge

DRAWING = """
    column = 1 ms
    mark 1 | ssssssssssttttttttttuuuuuuuuuu
    cpu 1  | {one}{one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    x = aten::amax; input_shapes = {whole}; input_types = ["float"]; line = l.py:3 loss
    y = aten::sub; input_shapes = {both}; input_types = ["float","float"]; line = l.py:3 loss
    e = aten::exp; input_shapes = {whole}; input_types = ["float"]; line = l.py:4 loss
    n = aten::sum; input_shapes = {whole}; input_types = ["float"]; line = l.py:4 loss
    d = aten::div; input_shapes = {both}; input_types = ["float","float"]; line = l.py:5 loss
    l = aten::log; input_shapes = {whole}; input_types = ["float"]; line = l.py:6 loss
    o = aten::softmax; input_shapes = {whole}; input_types = ["float"]; line = l.py:7 loss
    g = aten::gather; input_shapes = {whole}; input_types = ["float"]
    m = aten::mm; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
    v = aten::var; input_shapes = {whole}; input_types = ["float"]; line = l.py:8 norm
    a = aten::mean; input_shapes = {whole}; input_types = ["float"]; line = l.py:8 norm
    r = aten::erf; input_shapes = {whole}; input_types = ["float"]; line = l.py:9 gelu
    p = aten::add; input_shapes = {whole}; input_types = ["float"]; line = l.py:9 gelu
    k = aten::mul; input_shapes = [[2048,512],[2048,512]]; input_types = ["float","float"]
"""


def drawing(one: str, shape: str = "[2048,512]", row: str = "[2048,1]") -> str:
    return DRAWING.format(one=one.ljust(10), whole=f"[{shape}]", both=f"[{shape},{row}]")


@pytest.mark.parametrize(
    ("one", "told"),
    [
        ("xyendlgmmm", "A log-softmax is written as 6 separate operators"),
        ("endlgmmmmm", "A log-softmax is written as 4 separate operators"),
        ("ooolmmmmmm", "A log-softmax is written as 2 separate operators"),
        ("xyendmmmmm", "A softmax is written as 5 separate operators"),
        ("avydmmmmmm", "A layer norm is written as 4 separate operators"),
        ("drpkmmmmmm", "A GELU is written as 4 separate operators"),
    ],
)
def test_what_is_spelled_out(judge: Judge[Finding], one: str, told: str) -> None:
    [finding] = judge(drawing(one))
    assert finding.title == told


@pytest.mark.parametrize(
    "one", ["oooommmmmm", "ennmmmmmmm", "xyemmmmmmm", "avmmmmmmmm", "kkkkmmmmmm", "enmdlmmmmm"]
)
def test_parts_alone_are_none(judge: Judge[Finding], one: str) -> None:
    assert not judge(drawing(one))


def test_statistics_of_columns_are_of_a_batch(judge: Judge[Finding]) -> None:
    assert judge(drawing("avydmmmmmm"))
    assert not judge(drawing("avydmmmmmm", row="[1,512]"))


def test_one_pass_over_memory_remains(judge: Judge[Finding]) -> None:
    """One operator leaves 2 of 10 passes over memory: one that reads and one that writes."""
    [finding] = judge(drawing("xyendlgmmm"))
    assert finding.saving.estimate_ms == pytest.approx(6 * 0.8, rel=0.01)
    assert finding.saving.upper_ms == pytest.approx(6.0)
    assert finding.where.line == 3


def test_on_a_device_the_kernels_count(judge: Judge[Finding]) -> None:
    [finding] = judge("""
        column = 1 ms
        mark 1 | ssssttttuuuu
        cpu 1  | pnrmpnrmpnrm
        call 1 | pn mpn mpn m
        gpu 7  |  pppnnmmmpppnnmmmpppnnmmm
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        p = aten::pow; input_shapes = [[2048,512],[]]; input_types = ["float","Scalar"]
        n = aten::mean; input_shapes = [[2048,512]]; input_types = ["float"]
        r = aten::rsqrt; input_shapes = [[2048,1]]; input_types = ["float"]
        m = aten::mul; input_shapes = [[2048,512],[2048,1]]; input_types = ["float","float"]
    """)
    assert finding.saving.estimate_ms is not None
    assert 2.5 < finding.saving.estimate_ms < 5.0


def test_nothing_is_compiled_where_gradients_of_gradients_are_taken(
    rule: Rule, judge: Judge[Finding]
) -> None:
    text = rule.drawings("Fires on")[0]
    [plain] = judge(text)
    [derived] = judge(text + GRADIENTS_OF_GRADIENTS)
    assert "torch.compile" in plain.fix.text
    assert "torch.compile" not in derived.fix.text
