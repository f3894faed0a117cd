"""Tests the rule `wave_quantization` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

DEVICE = (
    '{"name": "NVIDIA A100-SXM4-80GB", "multiprocessors": 100, "warp_size": 32, '
    '"threads_per_sm": 2048, "threads_per_block": 1024, "registers_per_sm": 65536, '
    '"shared_memory_per_sm": 167936, "compute_major": 8, "compute_minor": 0}'
)
DRAWING = """
    column = 1 ms
    device = DEVICE
    mark 1 | ssssttttuuuu
    cpu 1  | aaa aaa aaa
    call 1 | kr  kr  kr
    gpu 7  |  kkkkkkrkkkkkkrkkkkkkr
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; line = n.py:7 f
    k = {name}; grid = [{blocks}, 1, 1]; blocks_per_sm = {each}; block = [256, 1, 1]; registers = 64; shared_memory = {shared}; properties = 0
    r = reduce_kernel; properties = 0
"""  # noqa: E501 - what a letter stands for is on one line


def drawing(blocks: int, shared: int = 147456, name: str = "ampere_sgemm_128x64_nn") -> str:
    text = DRAWING.format(name=name, blocks=blocks, shared=shared, each=blocks / 100)
    return text.replace("DEVICE", DEVICE)


def test_half_of_what_is_empty_is_saved(judge: Judge[Finding]) -> None:
    """A kernel of 6 ms has 1.2 waves of blocks: 0.8 of the second wave, 2.4 ms, are empty."""
    [finding] = judge(drawing(120))
    assert finding.saving.upper_ms == pytest.approx(2.4, rel=0.01)
    assert finding.saving.estimate_ms == pytest.approx(1.2, rel=0.01)
    assert finding.where.line == 7


@pytest.mark.parametrize("blocks", [50, 100, 200, 195, 401, 0])
def test_waves_that_are_full_or_one_or_many(judge: Judge[Finding], blocks: int) -> None:
    assert not judge(drawing(blocks))


def test_more_blocks_fit_with_less_memory(judge: Judge[Finding]) -> None:
    """Two blocks fit on each multiprocessor, so 120 blocks are under a wave, and 220 are 1.1."""
    assert not judge(drawing(120, shared=65536))
    assert judge(drawing(220, shared=65536))


def test_other_kernels_are_not_tiles_of_a_product(judge: Judge[Finding]) -> None:
    assert not judge(drawing(120, name="vectorized_elementwise_kernel"))
