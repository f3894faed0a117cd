"""Edges of `data_parallel` that its page does not draw."""

from selftime.advice.base import Finding
from selftime.testing import Judge


def test_it_is_known_by_its_frame_too(judge: Judge[Finding]) -> None:
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
