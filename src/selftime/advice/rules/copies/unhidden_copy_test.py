"""Tests the rule `unhidden_copy` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding, Rule
from selftime.testing import Judge, sketch

STEPS = """
    column = 100 us
    mark 1 | {s}{t}{u}
    call 1 | {call}
    copy 7 | {copy}
    gpu 7  | {work}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    m = Memcpy HtoD (Pinned -> Device); bytes = 8000000; line = train.py:9 main
"""


def drawing(copying: int, working: int) -> str:
    """Draws three steps that copy and then compute, each for the given number of columns.

    The host needs half as long.
    """
    width = (copying + working) // 2
    return STEPS.format(
        s="s" * width,
        t="t" * width,
        u="u" * width,
        call="mk".ljust(width) * 3,
        copy=" " + ("m" * copying + " " * working) * 3,
        work=" " + (" " * copying + "k" * working) * 3,
    )


def test_the_saving_is_no_more_than_the_copies(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(4, 15))
    assert finding.saving.upper_ms == pytest.approx(0.4, abs=0.01)
    assert finding.saving.estimate_ms == pytest.approx(0.32, abs=0.01)
    assert finding.count_per_step == 1


def test_a_short_copy_is_left_alone(judge: Judge[Finding], rule: Rule) -> None:
    assert not judge(drawing(1, 60))
    assert rule(sketch(drawing(1, 60)))
