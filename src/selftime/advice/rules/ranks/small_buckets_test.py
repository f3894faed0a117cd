"""Edges of `small_buckets` that its page does not draw."""

import pytest

from selftime.advice.base import Finding, Rule, Unknown
from selftime.testing import Judge, sketch

MANY = """
    column = 1 ms
    mark 1 | sssssssssssssssssssssssssstttttttttttttttttttttttttt
    mark 2 | ff                        ff
    cpu 2  | aaccccccccccccccccccccc  oaaccccccccccccccccccccc  o
    cpu 2  |   r r r r r r r r r r       r r r r r r r r r r
    mark 2 |                          p                         p
    mark 3 |    ggggggggggggggggggggg     ggggggggggggggggggggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; {told}
    g = gloo:all_reduce
    o = aten::_foreach_add_
    p = Optimizer.step#SGD.step
"""

ONE = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    mark 2 | f         f
    cpu 2  | a   c     a   c
    cpu 2  |     r         r
    call 2 | k   n wwwwk   n wwww
    gpu 7  | kkkk      kkkk
    gpu 8  |     nnnnnn    nnnnnn
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[{elements}]]]
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize
"""


def test_without_sizes_nobody_knows(rule: Rule) -> None:
    [outcome] = rule(sketch(MANY.format(told="sequence = 1")))
    assert isinstance(outcome, Unknown)
    assert "record_shapes" in outcome.needs


def test_many_buckets_of_a_large_network_are_as_many_as_it_needs(judge: Judge[Finding]) -> None:
    assert judge(MANY.format(told="input_shapes = [[[200000]]]"))
    assert not judge(MANY.format(told="input_shapes = [[[6000000]]]"))


@pytest.mark.parametrize(("elements", "found"), [(100_000_000, True), (5_000_000, False)])
def test_one_bucket_for_all(judge: Judge[Finding], elements: int, *, found: bool) -> None:
    findings = judge(ONE.format(elements=elements))
    assert bool(findings) == found
    assert all(finding.confidence == "low" for finding in findings)
