"""Tests the rule `synchronised_norm` on edge cases that its documentation page omits."""

from selftime.advice.rule_definition import Finding
from selftime.testing import Judge


def drawing(layers: int, idle_columns: int = 0) -> str:
    """Draws two steps of layers, each with 100 us of communication and of normalisation."""
    one = 2 * layers + idle_columns
    lanes = [("cpu 1 ", "rb"), ("call 1", "nk"), ("gpu 7 ", "nk")]
    rows = [f"{lane} | {((two * layers).ljust(one)) * 2}" for lane, two in lanes]
    legend = """
    s = ProfilerStep#1
    t = ProfilerStep#2
    r = c10d::_allgather_base_; input_shapes = [[128],[64]]
    b = aten::batch_norm_gather_stats_with_counts; line = net.py:12 forward
    n = ncclDevKernel_AllGather_RING_LL
    k = batch_norm_reduce_statistics_kernel"""
    return "\n".join(["column = 100 us", f"mark 1 | {'s' * one}{'t' * one}", *rows, legend])


def test_twenty_layers_a_step_are_not_reported(judge: Judge[Finding]) -> None:
    assert not judge(drawing(20))
    [finding] = judge(drawing(21))
    assert finding.count_per_step == 21
    assert (finding.where.file, finding.where.line) == ("net.py", 12)


def test_the_saving_is_only_an_upper_bound(judge: Judge[Finding]) -> None:
    [finding] = judge(drawing(30))
    assert finding.saving.estimate_ms is None
    assert finding.saving.upper_ms is not None
    assert 0 < finding.saving.upper_ms < 6.0
    assert finding.semantics == "training"


def test_collectives_that_take_a_small_share_of_the_step_are_not_reported(
    judge: Judge[Finding],
) -> None:
    assert not judge(drawing(24, idle_columns=400))
