"""Tests the rule `data_dependent_shape` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge

WAITS = """
    column = 100 us
    mark 1 | ssssssssssssssssssssttttttttttttttttttttuuuuuuuuuuuuuuuuuuuu
    cpu 1  | aiiiiiiiii          aiiiiiiiii          aiiiiiiiii
    cpu 1  |  jjjjjjjjj           jjjjjjjjj           jjjjjjjjj
    call 1 | kmmmmmmmmm          kmmmmmmmmm          kmmmmmmmmm
    gpu 7  |  kkkkkkkk            kkkkkkkk            kkkkkkkk
    copy 7 |          m                   m                   m
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm
    i = {outer}{line}
    j = {inner}
    m = Memcpy {copy}
"""
TO_HOST = "DtoH (Device -> Pageable)"


def drawing(outer: str, inner: str, *, line: str = "a.py:4 f", copy: str = TO_HOST) -> str:
    """Draws three steps, in each of which an operator within another waits for the device."""
    told = f"; line = {line}" if line else ""
    return WAITS.format(outer=outer, inner=inner, line=told, copy=copy)


def test_it_fires_on_its_own_kind_only(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing("aten::index", "aten::nonzero"))
    assert (finding.where.file, finding.where.line) == ("a.py", 4)
    assert finding.saving.method == "replay"
    assert finding.changes
    assert not judge(drawing("aten::index", "aten::copy_"))


def test_each_kind_has_its_entry(judge: Judge[Finding]) -> None:
    kinds = {
        ("aten::nonzero", "aten::copy_"): "B5",
        ("aten::index_put_", "aten::nonzero"): "B6",
        ("aten::masked_select", "aten::item"): "B6",
        ("aten::_unique2", "aten::item"): "B7",
        ("aten::one_hot", "aten::item"): "B7",
    }
    for (outer, inner), entry in kinds.items():
        [finding] = judge(drawing(outer, inner))
        assert finding.covers == (entry,)
        assert finding.fix.code is not None
