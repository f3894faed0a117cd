"""Tests the rule `pageable_copy` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

WAITS = """
    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | aiiiiiiiii          aiiiiiiiii          aiiiiiiiii
    cpu 1  |  jjjjjjjjj           jjjjjjjjj           jjjjjjjjj
    call 1 | kmmmmmmmmm          kmmmmmmmmm          kmmmmmmmmm
    gpu 7  |  kkkkkkkk            kkkkkkkk            kkkkkkkk
    copy 7 |          m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    i = {outer}{line}
    j = {inner}
    m = Memcpy {copy}
"""
TO_HOST = "DtoH (Device -> Pageable)"


def drawing(outer: str, inner: str, *, line: str = "a.py:4 f", copy: str = TO_HOST) -> str:
    """Draws three steps, in each of which an operator within another waits for the device."""
    told = f"; line = {line}" if line else ""
    return WAITS.format(outer=outer, inner=inner, line=told, copy=copy)


PINNED = """
    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | iiiiiiii            iiiiiiii            iiiiiiii
    call 1 | pwwwwwwwk           pwwwwwwwk           pwwwwwwwk
    gpu 7  |          kkk                 kkk                 kkk
    copy 7 |  pppppp              pppppp              pppppp
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    i = aten::to; line = a.py:4 f
    w = cudaStreamSynchronize
    p = Memcpy HtoD (Pinned -> Device); bytes = 8000000
"""


def test_pinned_memory_needs_another_fix(judge: Judge[Finding]) -> None:
    [pinned] = judge(PINNED)
    assert pinned.covers == ("C2",)
    copy = "HtoD (Pageable -> Device); bytes = 8000000"
    [pageable] = judge(drawing("aten::to", "aten::_to_copy", copy=copy))
    assert pageable.covers == ("C1",)
    assert "pin_memory" in (pageable.fix.code or "")


def test_a_few_bytes_are_of_another_rule(judge: Judge[Finding]) -> None:
    copy = "HtoD (Pageable -> Device); bytes = 16"
    assert not judge(drawing("aten::to", "aten::_to_copy", copy=copy))
