"""Edges of `exposed_exchange` that its page does not draw."""

import pytest

from selftime.advice.base import Finding, Rule, Unknown
from selftime.testing import Judge, sketch

DRAWING = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    mark 2 | f         f
    cpu 2  | a c d     a c d
    cpu 2  |   r q       r q
    call 2 | k n m wwwwk n m wwww
    gpu 7  | kkkk      kkkk
    gpu 8  |     n         n
    gpu 8  |      mmmmm     mmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    d = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; {first}
    q = c10d::allreduce_; {second}
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    m = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize
"""

GLOO = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    mark 2 | f         f
    cpu 2  | a c       a c
    cpu 2  |   r         r
    call 2 | k         k
    gpu 7  | kkkk      kkkk
    mark 3 |     gggggg    gggggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[4000000]]]
    g = gloo:all_reduce
"""


@pytest.mark.parametrize(
    ("first", "second", "needs"),
    [
        ("sequence = 1", "sequence = 2", "record_shapes"),
        ("input_shapes = [[[4000000]]]", "input_shapes = [[[4000000]]]", "other ranks"),
        ("input_shapes = [[[400]]]", "input_shapes = [[[2000]]]", "other ranks"),
    ],
    ids=["unknown sizes", "the second waits", "too small to tell"],
)
def test_what_a_single_rank_cannot_tell(rule: Rule, first: str, second: str, needs: str) -> None:
    [outcome] = rule(sketch(DRAWING.format(first=first, second=second)))
    assert isinstance(outcome, Unknown)
    assert needs in outcome.needs


def test_exchanges_that_take_what_their_bytes_take(judge: Judge[Finding]) -> None:
    first, second = "input_shapes = [[[4000000]]]", "input_shapes = [[[20000000]]]"
    [finding] = judge(DRAWING.format(first=first, second=second))
    assert finding.covers == ("I3",)
    assert finding.semantics == "numerics"
    assert finding.saving.estimate_ms == pytest.approx(3, abs=0.5)
    assert finding.where.line == 21


def test_gloo_for_tensors_of_a_device(judge: Judge[Finding]) -> None:
    [finding] = judge(GLOO)
    assert finding.covers == ("I8",)
    assert finding.saving.estimate_ms is None
    assert finding.saving.upper_ms == pytest.approx(6)
