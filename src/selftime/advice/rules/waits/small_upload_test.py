"""Tests the rule `small_upload` on edge cases that its documentation page omits."""

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


def test_few_bytes_count_and_many_are_of_another_rule(judge: Judge[Finding]) -> None:
    for size, fires in ((16, True), (65_536, True), (65_537, False)):
        copy = f"HtoD (Pageable -> Device); bytes = {size}"
        assert bool(judge(drawing("aten::to", "aten::_to_copy", copy=copy))) == fires
