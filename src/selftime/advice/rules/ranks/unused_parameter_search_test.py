"""Tests the rule `unused_parameter_search` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

DRAWING = """
    column = 1 ms
    mark 1   | sssssssssstttttttttt
    mark 1   | ffff      ffff
    cpu 1    | aa  bbbb  aa  bbbb
    python 1 | {frames}
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    b = aten::mm
    u = torch/nn/parallel/distributed.py(282): _find_tensors
    p = <built-in method prepare_for_backward of Reducer object at 0x7f>
"""


def test_the_saving_includes_the_search_and_the_reducer(judge: Judge[Finding]) -> None:
    [finding] = judge(DRAWING.format(frames="  up        up"))
    assert finding.saving.estimate_ms == pytest.approx(2.0)
    assert (finding.where.file, finding.where.line) == ("train.py", 21)
    assert finding.count_per_step == 1


def test_a_short_search_is_not_reported(judge: Judge[Finding]) -> None:
    long = DRAWING.format(frames="  u").replace("s" * 10 + "t" * 10, "s" * 100)
    assert not judge(long.replace("t = ProfilerStep#2", ""))


def test_a_search_without_a_replicated_module_is_not_reported(
    judge: Judge[Finding],
) -> None:
    text = DRAWING.format(frames="  up        up")
    assert not judge(text.replace("DistributedDataParallel.forward", "Model.forward"))
