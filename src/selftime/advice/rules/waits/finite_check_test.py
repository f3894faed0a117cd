"""Tests the rule `finite_check` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

GUARD = """
    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | {before}iiiiiiiii     {before}iiiiiiiii     {before}iiiiiiiii
    call 1 | k     mmmmmmmmm     k     mmmmmmmmm     k     mmmmmmmmm
    gpu 7  |  kkkkkkkkkkkkk       kkkkkkkkkkkkk       kkkkkkkkkkkkk
    copy 7 |               m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    n = {test}
    a = aten::mm
    b = aten::any
    i = {read}; line = a.py:4 f
    m = Memcpy DtoH (Device -> Pageable)
"""


def drawing(before: str, read: str, test: str = "aten::isnan") -> str:
    """Draws three steps, each with operators followed by a read of a number from the device."""
    return GUARD.format(before=before.ljust(6), read=read, test=test)


def test_a_test_before_the_read_makes_it_a_guard(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("anb", "aten::is_nonzero"))
    assert finding.covers == ("B10",)
    assert not judge(drawing("aab", "aten::is_nonzero"))


def test_a_test_long_before_the_read_is_another_matter(judge: Judge[Finding]) -> None:
    assert judge(drawing("nababa"[:4], "aten::is_nonzero"))
    assert not judge(drawing("nababa", "aten::is_nonzero"))


def test_the_gradient_scaler_reads_its_flag(judge: Judge[Finding]) -> None:
    test = "aten::_amp_foreach_non_finite_check_and_unscale_"
    [finding] = judge(drawing("aan", "aten::item", test))
    assert finding.covers == ("B11",)
    assert "bfloat16" in (finding.fix.code or "")
