"""Edges of `unused_parameter_search` that its page does not draw."""

import pytest

from selftime.advice.base import Finding
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


def test_the_search_and_what_the_reducer_makes_of_it_are_saved(judge: Judge[Finding]) -> None:
    [finding] = judge(DRAWING.format(frames="  up        up"))
    assert finding.saving.estimate_ms == pytest.approx(2.0)
    assert (finding.where.file, finding.where.line) == ("train.py", 21)
    assert finding.count_per_step == 1


def test_a_short_search_is_below_the_gate(judge: Judge[Finding]) -> None:
    long = DRAWING.format(frames="  u").replace("s" * 10 + "t" * 10, "s" * 100)
    assert not judge(long.replace("t = ProfilerStep#2", ""))


def test_a_frame_of_that_name_outside_of_a_replica_is_the_programs_own(
    judge: Judge[Finding],
) -> None:
    text = DRAWING.format(frames="  up        up")
    assert not judge(text.replace("DistributedDataParallel.forward", "Model.forward"))
