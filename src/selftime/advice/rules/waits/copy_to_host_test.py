"""Tests the rule `copy_to_host` on edge cases that its documentation page omits."""

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
    [finding] = judge(drawing("aten::to", "aten::_to_copy"))
    assert (finding.where.file, finding.where.line) == ("a.py", 4)
    assert finding.saving.method == "replay"
    assert finding.changes
    assert not judge(drawing("aten::nonzero", "aten::copy_"))


def test_copies_of_megabytes_are_another_entry(judge: Judge[Finding]) -> None:
    [small] = judge(drawing("aten::to", "aten::_to_copy"))
    large = drawing("aten::to", "aten::_to_copy", copy=f"{TO_HOST}; bytes = 4000000")
    [checkpoint] = judge(large)
    assert (small.covers, checkpoint.covers) == (("B4",), ("C6",))


def test_the_result_that_ends_a_step_without_training_is_doubted(judge: Judge[Finding]) -> None:
    result = drawing("aten::to", "aten::_to_copy")
    [doubted] = judge(result)
    assert doubted.confidence == "low"
    assert "result" in doubted.fix.text
    [trained] = judge(
        result.replace(
            "    a = aten::mm\n", "    a = autograd::engine::evaluate_function: MmBackward0\n"
        )
    )
    assert trained.confidence != "low"
    within = result.replace("kmmmmmmmmm          ", "kmmmmmmmmmn         ").replace(
        "kkkkkkkk            ", "kkkkkkkk   n        "
    )
    [found] = judge(within + "    n = cudaLaunchKernel\n")
    assert found.confidence != "low"
