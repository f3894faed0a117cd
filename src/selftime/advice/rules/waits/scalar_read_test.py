"""Tests the rule `scalar_read` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch

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


def test_the_saving_is_what_the_device_stands_idle(judge: Judge[Finding]) -> None:
    """Without the read, a step of 2 ms takes 1.1 ms of host time; the device works for 0.9 ms."""
    [finding] = judge(drawing("aten::item", "aten::_local_scalar_dense"))
    assert finding.saving.estimate_ms == pytest.approx(0.9, abs=0.1)
    assert finding.saving.upper_ms is not None
    assert finding.saving.upper_ms <= 1.2
    assert finding.count_per_step == 1
    assert (finding.where.file, finding.where.line) == ("a.py", 4)


def test_what_other_rules_explain_is_left_to_them(judge: Judge[Finding]) -> None:
    for outer in ("aten::is_nonzero", "aten::multinomial", "aten::one_hot"):
        assert not judge(drawing(outer, "aten::item"))


def test_a_read_now_and_then_is_left_alone(rule: Rule) -> None:
    """Reads a number in only one of the two measured steps, which is not reported."""
    lines = drawing("aten::item", "aten::_local_scalar_dense").splitlines()
    second = slice(len("    cpu 1  | ") + 21, len("    cpu 1  | ") + 40)
    once = [
        line[: second.start] + " " * 19 + line[second.stop :]
        if line.startswith(("    cpu 1  |  jj", "    call", "    copy")) or "aiii" in line
        else line
        for line in lines
    ]
    [outcome] = rule(sketch("\n".join(once)))
    assert isinstance(outcome, Checked)
    assert "most of the recorded steps" in outcome.reason


def test_without_a_device_the_lines_are_named_that_would_wait(rule: Rule) -> None:
    lanes = ("    call 1 |", "    gpu 7  |", "    copy 7 |")
    lines = drawing("aten::item", "aten::_local_scalar_dense").splitlines()
    [outcome] = rule(sketch("\n".join(line for line in lines if not line.startswith(lanes))))
    assert isinstance(outcome, Unknown)
    assert "a.py:4 in f" in outcome.needs
    assert "device" in outcome.needs


def test_a_site_without_a_line_is_named_by_its_operator(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("aten::item", "aten::_local_scalar_dense", line=""))
    assert finding.where.file is None
    assert "`aten::item`" in finding.title
