"""Tests the rule `data_parallel` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge


def test_a_python_frame_alone_shows_data_parallel(judge: Judge[Finding]) -> None:
    [finding] = judge("""
        mark 1   | ssssssssss
        python 1 | ffffffffff
        python 1 |  pppppppp
        s = ProfilerStep#1
        f = train.py(3): main
        p = torch/nn/parallel/data_parallel.py(172): forward
    """)
    assert (finding.where.file, finding.where.function) == ("train.py", "main")
    assert finding.saving.estimate_ms is None
