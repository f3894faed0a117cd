"""Tests the rule `cold_start` on edge cases that its documentation page omits."""

from textwrap import dedent

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule, Unknown
from selftime.testing import Judge, sketch


def test_the_finding_names_the_slowest_line_and_the_share(
    rule: Rule, judge: Judge[Finding]
) -> None:
    [finding] = judge(rule.drawings("Fires on")[0])
    told = {evidence.metric: evidence.value for evidence in finding.evidence}
    assert finding.where.line == 9
    assert finding.saving.method == "none"
    assert told["share of the recording"] == pytest.approx(17 / 32)
    assert told[
        "time of the first `aten::cudnn_convolution` beyond that of later ones"
    ] == pytest.approx(17)


def test_compilation_in_every_step_is_not_initialisation(rule: Rule, judge: Judge[Finding]) -> None:
    drawing = rule.drawings("Fires on")[1]
    again = drawing.replace("cccccccccccccc aaaaa", "cccccccccccccc cdcd")
    assert not judge(f"{again}\nd = _compile.compile_inner (dynamo_timed)")


def test_the_first_launch_of_each_kernel_loads_it(rule: Rule) -> None:
    trace = sketch("""
        column = 10 us
        mark 1 | ssssssssssssssssssssssssssssssssssssssss
        cpu 1  | a
        call 1 | kkkkkkkkkkkkkkkk mmmmmmmmmmmmmmmm k m k m
        gpu 7  |                x                y x y x y
        s = ProfilerStep#1
        a = aten::add
        k = cudaLaunchKernel
        m = cudaLaunchKernel
        x = gemm; launched_by = k
        y = softmax; launched_by = m
    """)
    assert [type(outcome) for outcome in rule(trace)] == [Finding]


def test_a_first_call_on_larger_inputs_is_not_initialisation(rule: Rule) -> None:
    drawing = """
        column = 1 ms
        cpu 1 | aaaaaaaaaaaaaaaaaaaaaaaa b b b b
        a = aten::mm; input_shapes = [[900, 900], [900, 900]]
        b = aten::mm; input_shapes = [[9, 9], [9, 9]]
    """
    [outcome] = rule(sketch(drawing))
    assert isinstance(outcome, Checked)
    same = drawing.replace("900, 900", "9, 9")
    assert [type(outcome) for outcome in rule(sketch(same))] == [Finding]


def test_random_pauses_are_not_initialisation(judge: Judge[Finding]) -> None:
    drawing = """
        column = 100 us
        mark 1 | sssssssssssssssssssstttttttttttttttttttttuvw
        cpu 1  | aaaaaaaaaaaaaaaaaaaabaaaaaaaaaaaaaaaaaaaabab
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        v = ProfilerStep#4
        w = ProfilerStep#5
        a = aten::mm; input_shapes = [[9, 9], [9, 9]]
        b = aten::mm; input_shapes = [[9, 9], [9, 9]]
    """
    assert not judge(drawing)
    assert judge(drawing.replace("baaaaaaaaaaaaaaaaaaaabab", "ba bababababababababababa"))


def test_one_step_does_not_tell_whether_later_ones_compile(rule: Rule) -> None:
    one = """
        column = 10 ms
        mark 1 | ssssssssssssssss
        cpu 1  | cccccccccccccc a
        s = ProfilerStep#1
        c = _compile.compile_inner (dynamo_timed)
        a = aten::mm
    """
    [outcome] = rule(sketch(one))
    assert isinstance(outcome, Unknown)
    assert "the recorded step compiles" in outcome.needs
    first = "run | before 1 s\nrun | training 160 ms: compile 140 ms\nrun | 8 training 20 ms\n"
    [outcome] = rule(sketch(first + dedent(one)))
    assert isinstance(outcome, Finding)
