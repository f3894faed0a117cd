"""Tests the rule `launch_blocking` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

DRAWING = """
    column = 10 us
    facts = {facts}
    mark 1 | sssssssssssssssssssssssssttttttttttttttttttttttttt
    cpu 1  | aaaaabbbbb aaaaabbbbb    aaaaabbbbb aaaaabbbbb
    call 1 | {launches}    {launches}
    gpu 7  |   kkk  kkk   kkk  kkk      kkk  kkk   kkk  kkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::mm
    b = aten::add
    l = {call}
    k = gemm; launched_by = l
"""
WAITING = " llll llll  llll llll "
FREE = " l    l     l    l    "


def drawing(launches: str, facts: str = "{}", call: str = "cudaLaunchKernel") -> str:
    return DRAWING.format(launches=launches, facts=facts, call=call)


def of_settings(part: str) -> str:
    return f'{{"settings": {{{part}}}}}'


def test_the_variable_makes_it_certain(judge: Judge[Finding]) -> None:
    [guessed] = judge(drawing(WAITING))
    [told] = judge(drawing(WAITING, of_settings('"environment": {"CUDA_LAUNCH_BLOCKING": "1"}')))
    assert (guessed.confidence, told.confidence) == ("medium", "high")
    assert told.saving.estimate_ms is not None
    assert told.saving.estimate_ms > 0
    assert told.changes


def test_a_variable_that_is_off_is_not_named(judge: Judge[Finding]) -> None:
    facts = of_settings('"environment": {"CUDA_LAUNCH_BLOCKING": "0"}')
    [finding] = judge(drawing(WAITING, facts))
    assert finding.title == "Every launch waits for its kernel"
    assert not judge(drawing(FREE, facts))


def test_replays_of_graphs_hold_many_kernels(judge: Judge[Finding]) -> None:
    assert not judge(drawing(WAITING, call="cudaGraphLaunch"))


def test_short_kernels_tell_nothing(judge: Judge[Finding]) -> None:
    assert not judge(drawing(WAITING).replace("10 us", "5 us"))


def test_a_debug_mode_that_was_left_on(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(FREE, of_settings('"sync_debug_mode": 1')))
    assert finding.saving.estimate_ms is None
    assert not judge(drawing(FREE, of_settings('"sync_debug_mode": 0')))
