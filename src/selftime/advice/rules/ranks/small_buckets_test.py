"""Tests the rule `small_buckets` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding, Rule, Unknown
from selftime.testing import Judge, sketch

MANY_BUCKETS = """
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

ONE_BUCKET = """
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


def test_without_sizes_the_outcome_is_unknown(rule: Rule) -> None:
    [outcome] = rule(sketch(MANY_BUCKETS.format(told="sequence = 1")))
    assert isinstance(outcome, Unknown)
    assert "record_shapes" in outcome.needs


def test_many_large_buckets_are_not_reported(judge: Judge[Finding]) -> None:
    assert judge(MANY_BUCKETS.format(told="input_shapes = [[[200000]]]"))
    assert not judge(MANY_BUCKETS.format(told="input_shapes = [[[6000000]]]"))


@pytest.mark.parametrize(("elements", "is_reported"), [(100_000_000, True), (5_000_000, False)])
def test_one_large_bucket_for_all_gradients_is_reported(
    judge: Judge[Finding], elements: int, *, is_reported: bool
) -> None:
    findings = judge(ONE_BUCKET.format(elements=elements))
    assert bool(findings) == is_reported
    assert all(finding.confidence == "low" for finding in findings)
