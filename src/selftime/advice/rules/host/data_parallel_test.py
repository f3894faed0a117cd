"""Tests the rule `data_parallel` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge


def test_a_python_frame_alone_shows_data_parallel(judge: Judge[Finding]) -> None:
    [finding] = judge("""
        mark 1   | ssssssssss
        python 1 | ffffffffff
        python 1 |  pppppppp
        call 1   |   kl
        gpu 0.7  |    kkk
        gpu 1.7  |     ll
        s = ProfilerStep#1
        f = train.py(3): main
        p = torch/nn/parallel/data_parallel.py(172): forward
    """)
    assert (finding.where.file, finding.where.function) == ("train.py", "main")
    assert finding.saving.estimate_ms is None


def test_devices_whose_work_was_not_recorded_may_be_several(judge: Judge[Finding]) -> None:
    [finding] = judge("""
        mark 1   | ssssssssss
        mark 1   |  pppppppp
        call 1   |   kl
        s = ProfilerStep#1
        p = DataParallel.forward; line = train.py:7 main
        k = cudaLaunchKernel
        l = cudaLaunchKernel
    """)
    assert finding.confidence == "medium"


def test_on_a_cpu_the_wrapper_only_calls_the_model(judge: Judge[Finding]) -> None:
    assert not judge("""
        mark 1   | ssssssssss
        mark 1   |  pppppppp
        cpu 1    |   mmmm
        s = ProfilerStep#1
        p = DataParallel.forward; line = train.py:7 main
        m = aten::mm
    """)
