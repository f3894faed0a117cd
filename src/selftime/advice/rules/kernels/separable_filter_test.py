"""Tests the rule `separable_filter` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

TYPES = '["float","float","","ScalarList","ScalarList","ScalarList","Scalar"]'


def drawing(*, mask: str = "", strides: str = "") -> str:
    """Returns two steps with a convolution of each channel, whose gradients `mask` tells."""
    node, operator = ("nnnnnn", "gggggg") if mask else ("      ", "      ")
    return f"""
    column = 1 ms
    mark 1 | ssssssssssssssssssss
    cpu 1  | bbbbbbbbllllll{node}
    cpu 1  |               {operator}
    s = ProfilerStep#1
    b = aten::conv2d; input_shapes = [[8,3,64,64],[3,1,31,31],[],[],[],[],[]]; input_types = {TYPES}; concrete_inputs = ["","","","[1, 1]","[0, 0]","[1, 1]","3"]{strides}; line = blur.py:4 blur
    n = ConvolutionBackward0; forward = b
    g = aten::convolution_backward; concrete_inputs = ["","","","[0]","[1, 1]","[0, 0]","[1, 1]","False","[0, 0]","3","{mask}"]; input_shapes = [[8,3,54,54],[8,3,64,64],[3,1,31,31],[],[],[],[],[],[],[],[]]
    l = aten::linear; input_shapes = [[64,64],[64,64]]; input_types = ["float","float"]
    """  # noqa: E501 - what a letter stands for is on one line


@pytest.mark.parametrize("filter_sizes", ["[3,3,31,31]", "[3,1,31,1]", "[3,1,11,11]"])
def test_filters_that_mix_channels_or_are_narrow_or_small_do_not_count(
    judge: Judge[Finding], filter_sizes: str
) -> None:
    text = drawing(mask="[True, False, False]")
    assert judge(text)
    assert not judge(text.replace("[3,1,31,31]", filter_sizes))


def test_an_expanded_filter_is_one_for_all_channels(judge: Judge[Finding]) -> None:
    expanded = "; input_strides = [[12288,4096,64,1],[0,961,31,1],[],[],[],[],[]]"
    [finding] = judge(drawing(strides=expanded))
    assert finding.title == "A fixed filter of 31 x 31 elements runs in one convolution"
    assert finding.saving.low_ms == 0
    assert not judge(drawing())


def test_a_gradient_tells_whether_the_filter_is_learned(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(mask="[True, False, False]"))
    assert finding.evidence[0].value == pytest.approx(14)
    assert not judge(drawing(mask="[True, True, False]"))
