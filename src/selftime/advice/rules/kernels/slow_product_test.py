"""Tests the rule `slow_product` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

DRAWING = """
    column = {column}
    device = {{"name": "NVIDIA A100-SXM4-80GB", "multiprocessors": 108}}
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | {call}
    gpu 7  |  {gpu}
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; input_shapes = {shapes}; input_types = ["{dtype}","{dtype}"]; line = n.py:7 f
    k = {name}; properties = 0
    r = reduce_kernel; properties = 0
"""

LARGE = "[[4096,4096],[4096,4096]]"


def drawing(
    shapes: str = LARGE,
    dtype: str = "c10::Half",
    name: str = "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_nn",
    call: str = "kr  kr  kr",
    gpu: str = "kkkkkkrkkkkkkrkkkkkkr",
    column: str = "1 ms",
) -> str:
    return DRAWING.format(shapes=shapes, dtype=dtype, name=name, call=call, gpu=gpu, column=column)


def test_it_tells_the_rate_and_no_saving(judge: Judge[Finding]) -> None:
    """A product of 2 * 4096**3 FLOPs takes 6 ms on a device with a peak of 312 TFLOP/s."""
    [finding] = judge(drawing())
    assert finding.saving.estimate_ms is None
    assert finding.where.line == 7
    assert finding.evidence[1].value == pytest.approx(2 * 4096**3 / 312e12 * 1e3, rel=0.01)


def test_the_memory_is_a_limit_too(judge: Judge[Finding]) -> None:
    """A product with a single row reads the whole matrix: 64 GB at 2 TB/s are 32 ms."""
    assert not judge(drawing("[[1,131072],[131072,65536]]"))


def test_unaligned_operands_are_another_cause(judge: Judge[Finding]) -> None:
    assert not judge(drawing(name="cutlass_80_wmma_tensorop_f16_s161616gemm_f16_16x16_nn_align1"))


def test_single_precision_is_measured_by_its_own_peak(judge: Judge[Finding]) -> None:
    """137 GFLOP in 6 ms are 23 TFLOP/s, above the device's float32 peak without tensor cores."""
    assert not judge(drawing(dtype="float", name="ampere_sgemm_128x64_nn"))


@pytest.mark.parametrize("shapes", ["oops", "[[4096,4096]]", "[]"])
def test_sizes_that_are_not_told(judge: Judge[Finding], shapes: str) -> None:
    assert not judge(drawing(shapes))


def test_a_product_in_two_kernels_is_not_rated(judge: Judge[Finding]) -> None:
    text = drawing(call="kq  kq  kq", gpu="kkkqqqkkkqqqkkkqqq")
    assert not judge(text + "    q = ampere_fp16_s16816gemm_fp16_64x64_nn; properties = 0\n")
