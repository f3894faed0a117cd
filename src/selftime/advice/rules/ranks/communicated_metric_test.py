"""Tests the rule `communicated_metric` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

HOST = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | {operators}
    cpu 1  | {inner}
    mark 2 |       ggg       ggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear
    b = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = {name}; input_shapes = [[[1]]]; line = train.py:30 train
    g = gloo:all_reduce
"""

DEVICE = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    cpu 1  | aaaa r    aaaa r
    call 1 | k    nwwwwk    nwwww
    gpu 7  | kkkkk     kkkkk
    gpu 8  |      nnnn      nnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    a = aten::linear
    r = c10d::allreduce_; input_shapes = [[[1]]]; line = train.py:30 train
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize
"""


def drawing(
    collective_name: str, operators: str = "aaaar     aaaar", inner_operators: str = ""
) -> str:
    return HOST.format(name=collective_name, operators=operators, inner=inner_operators)


@pytest.mark.parametrize(
    "collective_name", ["c10d::allreduce_", "c10d::barrier", "c10d::broadcast_"]
)
def test_small_collectives_and_barriers_are_reported(
    judge: Judge[Finding], collective_name: str
) -> None:
    [finding] = judge(drawing(collective_name))
    assert finding.where.line == 30
    assert finding.count_per_step == 1
    assert finding.saving.estimate_ms == pytest.approx(3 * 0.98, abs=0.1)


def test_gradients_of_a_tiny_network_are_not_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing("c10d::allreduce_", "aaaabbb   aaaabbb", "    r         r"))


def test_small_collectives_between_devices_are_reported(judge: Judge[Finding]) -> None:
    [finding] = judge(DEVICE)
    assert finding.saving.estimate_ms == pytest.approx(4 * 0.98, abs=0.5)
