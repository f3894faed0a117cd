"""Tests the rule `accumulation_communication` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

DRAWING = """
    column = 1 ms
    mark 1 | ssssssssssssssssssttttttttttttttttttuuuuuuuuuuuuuuuuuu
    mark 2 | ff      ff        ff      ff        ff      ff
    cpu 2  | aabbc   aabbd   ooaabbc   aabbd   ooaabbc   aabbd   oo
    cpu 2  |     r       q         r       q         r       q
    mark 2 |                 pp                pp                pp
    mark 3 |      ggg     ggg       ggg     ggg       ggg     ggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    b = aten::mm
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    d = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; {first}
    q = c10d::allreduce_; {second}
    g = gloo:all_reduce
    o = aten::_foreach_add_
    p = Optimizer.step#SGD.step
"""

DEVICE = """
    column = 1 ms
    mark 1 | ssssssssttttttttuuuuuuuu
    mark 2 | f  f    f  f    f  f
    cpu 2  | ac ac ooac ac ooac ac oo
    cpu 2  |  r  r    r  r    r  r
    call 2 | kn kn   kn kn   kn kn
    mark 2 |       pp      pp      pp
    gpu 7  | kkkknnkkkknnkkkknnkkkknnkkkknnkkkknn
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    o = aten::_foreach_add_
    p = Optimizer.step#SGD.step
"""


@pytest.mark.parametrize(
    ("first_collective", "second_collective", "is_reported"),
    [
        ("input_shapes = [[[1000000]]]", "input_shapes = [[[1000000]]]", True),
        ("input_shapes = [[[1000000]]]", "input_shapes = [[[500000]]]", False),
        ("input_shapes = [[[1000],[2000]]]", "input_shapes = [[[3000]]]", True),
        ("sequence = 1", "sequence = 2", True),
        ("input_shapes = 7", "input_shapes = [[[3000]]]", True),
    ],
)
def test_only_collectives_of_the_same_gradients_are_reported(
    judge: Judge[Finding], first_collective: str, second_collective: str, *, is_reported: bool
) -> None:
    drawing = DRAWING.format(first=first_collective, second=second_collective)
    assert bool(judge(drawing)) == is_reported


def test_the_saving_is_the_wait_for_repeated_collectives(judge: Judge[Finding]) -> None:
    same = "input_shapes = [[[1000000]]]"
    [finding] = judge(DRAWING.format(first=same, second=same))
    assert finding.count_per_step == 1
    assert finding.where.line == 21
    assert finding.saving.estimate_ms == pytest.approx(4)


def test_repeated_collectives_by_device_kernels_are_reported(judge: Judge[Finding]) -> None:
    [finding] = judge(DEVICE)
    assert finding.where.line == 21
    assert finding.saving.estimate_ms == pytest.approx(2, rel=0.1)
