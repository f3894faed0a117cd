"""Tests the rule `created_on_host` on edge cases that its documentation page omits."""

import pytest

from selftime.advice.detectors.wait_sites import wait_sites
from selftime.advice.rule_definition import Finding
from selftime.testing import Judge, sketch

DRAWING = """
    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | {one}{one}{one}
    call 1 |     ppppk               ppppk               ppppk
    copy 7 |       pp                  pp                  pp
    gpu 7  |         kkkkkk              kkkkkk              kkkkkk
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    z = aten::zeros; line = {maker}; concrete_inputs = ["[{size}]", "6", "", "", ""]
    v = aten::unsqueeze; line = net.py:7 mask
    r = aten::randn; line = net.py:7 mask
    c = aten::to; line = net.py:7 mask; input_shapes = [[64,512],[],[],[]]
    a = aten::mm; line = net.py:9 forward
    p = Memcpy HtoD (Pageable -> Device); bytes = 131072
"""


def drawing(begin: str, *, maker: str = "net.py:7 mask", size: str = "64, 512") -> str:
    one = f"{begin}cccca".ljust(20)
    return DRAWING.format(one=one, maker=maker, size=size)


def test_what_is_made_right_before_the_copy_fits_in_size(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("zzzz"))
    assert (finding.where.file, finding.where.line) == ("net.py", 7)
    assert finding.saving.upper_ms == pytest.approx(0.8)
    assert judge(drawing("zzzv"))
    assert not judge(drawing("zzzz", size="7"))


def test_another_function_makes_something_else(judge: Judge[Finding]) -> None:
    assert not judge(drawing("zzzz", maker="train.py:3 main"))


def test_where_no_size_is_told_the_line_must_be_the_same(judge: Judge[Finding]) -> None:
    told = '; concrete_inputs = ["[64, 512]", "6", "", "", ""]'
    assert judge(drawing("zzzz").replace(told, ""))
    assert not judge(drawing("zzzz", maker="net.py:6 mask").replace(told, ""))


def test_what_a_loader_makes_is_no_constant(judge: Judge[Finding]) -> None:
    loads = "mark 1 | dddd                dddd                dddd"
    load = "d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    drawn = drawing("zzzz").replace("    cpu 1", f"    {loads}\n    cpu 1", 1)
    assert not judge(f"{drawn}    {load}\n")


def test_noise_is_no_constant(judge: Judge[Finding]) -> None:
    assert not judge(drawing("zzrr"))


def test_what_runs_between_on_the_device_breaks_the_chain(judge: Judge[Finding]) -> None:
    broken = drawing("zzza").replace("call 1 |     ppppk ", "call 1 |    kppppk ")
    assert not judge(broken)


def test_its_wait_is_no_other_rules() -> None:
    [site] = wait_sites(sketch(drawing("zzzz")))
    assert site.cause == "made_on_host"
    [site] = wait_sites(sketch(drawing("zzzz", size="7")))
    assert site.cause == "upload"
