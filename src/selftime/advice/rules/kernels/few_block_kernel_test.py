"""Tests the rule `few_block_kernel` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

DRAWING = """
    column = 1 ms
    mark 1 | ssssttttuuuu
    cpu 1  | ccmmccmmccmm
    call 1 | k m k m k m
    gpu 7  |  kkkkmmmmmmkkkkmmmmmmkkkkmmmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    c = aten::sort; line = s.py:4 f
    m = aten::mm
    k = {name}; grid = {grid}; block = [512, 1, 1]
"""


def drawing(name: str = "bitonicSortKVInPlace", grid: str = "[2, 2, 1]") -> str:
    return DRAWING.format(name=name, grid=grid)


def test_it_only_bounds_the_saving(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing())
    assert finding.saving.estimate_ms is None
    assert finding.where.line == 4
    assert finding.title == "`bitonicSortKVInPlace` runs in 4 thread blocks at most"
    assert finding.saving.upper_ms == pytest.approx(4.0)


@pytest.mark.parametrize("name", ["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "FillFunctor"])
def test_kernels_that_are_few_on_purpose(judge: Judge[Finding], name: str) -> None:
    assert not judge(drawing(name))


@pytest.mark.parametrize("grid", ["[5, 1, 1]", "[0, 1, 1]", "[1, 1, 132]"])
def test_grids_that_are_not_few(judge: Judge[Finding], grid: str) -> None:
    assert not judge(drawing(grid=grid))


def test_what_another_stream_hides_costs_nothing(judge: Judge[Finding]) -> None:
    assert not judge(
        drawing().replace(
            "    s = Prof",
            "    gpu 8  |  rrrrrrrrrrrrrrrrrrrrrrrrrrrrrr\n    call 2 | r\n    s = Prof",
            1,
        )
    )
