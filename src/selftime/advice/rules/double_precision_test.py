"""Edges of `double_precision` that its page does not draw."""

from selftime.advice.base import Finding
from selftime.testing import Judge

DRAWING = """
    column = 1 ms
    mark 1 | {s}{t}
    cpu 1  | {one}{one}
    s = ProfilerStep#1
    t = ProfilerStep#2
    d = aten::add; input_types = ["double","double"]; input_shapes = [[8],[8]]; line = d.py:3 f
    m = aten::mm; input_types = ["double","double"]; input_shapes = [[8,8],[8,8]]; line = n.py:5 f
    f = aten::mm; input_types = ["float","float"]; input_shapes = [[8,8],[8,8]]
"""


def drawing(one: str) -> str:
    return DRAWING.format(s="s" * len(one), t="t" * len(one), one=one)


def test_the_line_is_the_first_that_meets_float64(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("ddmmmmmmffffffffffff"))
    assert (finding.where.file, finding.where.line) == ("d.py", 3)
    assert finding.covers == ("E13",)
    assert finding.semantics == "numerics"


def test_below_two_percent_of_the_step_it_is_left_alone(judge: Judge[Finding]) -> None:
    assert not judge(drawing("d" + "f" * 79))
    assert judge(drawing("dddd" + "f" * 36))


def test_more_than_the_time_in_double_is_never_promised(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("mmmmmmmmmmffffffffff"))
    assert finding.saving.upper_ms == 10.0
    assert finding.saving.estimate_ms is not None
    assert finding.saving.estimate_ms < 10.0
