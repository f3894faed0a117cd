"""Tests the rule `exposed_communication` on edge cases that its documentation page omits."""

from pathlib import Path

import pytest

from selftime.advice.rule_definition import Checked, Finding, Rule
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.ingest.load import load
from selftime.testing import Judge
from selftime.testing.simulated_jobs import RankDelay, SimulatedMachine, simulate_job
from selftime.trace import Job

DRAWING = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    mark 2 | f         f
    cpu 2  | a c d     a c d
    cpu 2  |   r q       r q
    call 2 | k n m wwwwk n m wwww
    gpu 7  | kkkk      kkkk
    gpu 8  |     n         n
    gpu 8  |      mmmmm     mmmmm
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    d = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; {first}
    q = c10d::allreduce_; {second}
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    m = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    w = cudaDeviceSynchronize
"""

GLOO = """
    column = 1 ms
    mark 1 | sssssssssstttttttttt
    mark 2 | f         f
    cpu 2  | a c       a c
    cpu 2  |   r         r
    call 2 | k         k
    gpu 7  | kkkk      kkkk
    mark 3 |     gggggg    gggggg
    s = ProfilerStep#1
    t = ProfilerStep#2
    f = DistributedDataParallel.forward; line = train.py:21 train
    a = aten::linear
    c = autograd::engine::evaluate_function: torch::autograd::AccumulateGrad
    r = c10d::allreduce_; input_shapes = [[[4000000]]]
    g = gloo:all_reduce
"""


@pytest.mark.parametrize(
    ("first_collective", "second_collective"),
    [
        ("sequence = 1", "sequence = 2"),
        ("input_shapes = [[[4000000]]]", "input_shapes = [[[4000000]]]"),
        ("input_shapes = [[[400]]]", "input_shapes = [[[2000]]]"),
    ],
    ids=["unknown sizes", "the second waits", "too small to tell"],
)
def test_of_a_single_rank_the_exposed_time_may_be_all_that_is_known(
    judge: Judge[Finding], first_collective: str, second_collective: str
) -> None:
    [found] = judge(DRAWING.format(first=first_collective, second=second_collective))
    assert found.covers == ("I3",)
    assert found.saving.estimate_ms is None
    assert found.saving.upper_ms == pytest.approx(4, abs=0.01)  # as the replay says
    told = {evidence.metric: evidence.value for evidence in found.evidence}
    assert told["exposed communication time"] == pytest.approx(6)
    assert told["hidden communication time"] == pytest.approx(0)
    assert "only the traces of all ranks tell" in found.fix.text
    assert found.semantics == "neutral"


def test_of_exposed_communication_the_line_and_the_hidden_part_are_told(
    judge: Judge[Finding],
) -> None:
    drawing = """
        column = 1 ms
        mark 1 | sssssssssstttttttttt
        cpu 1  | a r       a r
        call 1 | k nwwwwwwwk nwwwwwww
        gpu 7  | kkkkkk    kkkkkk
        gpu 8  |    nnnnnnn   nnnnnnn
        s = ProfilerStep#1
        t = ProfilerStep#2
        a = aten::linear
        r = c10d::alltoall_; line = model.py:30 exchange
        n = ncclDevKernel_SendRecv
        w = cudaStreamSynchronize
    """
    assert not judge(drawing.replace("wwwwwww", "       "))  # nothing waits for it
    [found] = judge(drawing)
    assert found.saving.upper_ms == pytest.approx(4, abs=0.01)
    assert (found.where.file, found.where.line) == ("model.py", 30)
    told = {evidence.metric: evidence.value for evidence in found.evidence}
    assert told["exposed communication time"] == pytest.approx(4)
    assert told["hidden communication time"] == pytest.approx(3)


def test_collectives_as_slow_as_the_best_measured_rate_are_reported(judge: Judge[Finding]) -> None:
    first, second = "input_shapes = [[[4000000]]]", "input_shapes = [[[20000000]]]"
    [finding] = judge(DRAWING.format(first=first, second=second))
    assert finding.covers == ("I3",)
    assert finding.semantics == "numerics"
    assert finding.saving.estimate_ms == pytest.approx(3, abs=0.5)
    assert finding.where.line == 21


def test_device_tensors_sent_by_gloo_are_reported(judge: Judge[Finding]) -> None:
    [finding] = judge(GLOO)
    assert finding.covers == ("I8",)
    assert finding.saving.estimate_ms is None
    assert finding.saving.upper_ms == pytest.approx(6)


def simulated_job(folder: Path, machine: SimulatedMachine, delay: RankDelay | None = None) -> Job:
    for rank, text in simulate_job(ranks=3, steps=6, machine=machine, late=delay).traces.items():
        (folder / f"rank{rank}.json").write_bytes(text)
    found = load(folder, cache=False)
    assert isinstance(found, Job)
    return found


def median_step_ms(job: Job) -> float:
    times = next(iter(job)).view("steps").filter("counted")["time"]
    return float(times.median() or 0) / 1e6  # type: ignore[arg-type]  # a number


def test_with_all_ranks_a_wait_is_no_slow_link(rule: Rule, tmp_path: Path) -> None:
    found = simulated_job(tmp_path, SimulatedMachine(), RankDelay(1, 8_000_000, "data"))
    [outcome] = rule(next(iter(found)), Ranks.of(found))
    assert isinstance(outcome, Checked)
    assert "is a wait for ranks that come later" in outcome.reason


def test_with_all_ranks_the_saving_of_half_precision_is_estimated(
    rule: Rule, tmp_path: Path
) -> None:
    found = simulated_job(tmp_path, SimulatedMachine(transfer=5_000_000))
    [outcome] = rule(next(iter(found)), Ranks.of(found))
    assert isinstance(outcome, Finding)
    assert outcome.covers == ("I3",)
    (tmp_path / "half").mkdir()
    half = simulated_job(tmp_path / "half", SimulatedMachine(transfer=2_500_000))
    true_ms = median_step_ms(found) - median_step_ms(half)
    assert outcome.saving.estimate_ms is not None
    assert outcome.saving.upper_ms is not None
    # Each bucket waits for the gradients that were launched before it.
    assert outcome.saving.estimate_ms == pytest.approx(true_ms, rel=0.05)
    assert true_ms < outcome.saving.upper_ms


def test_with_all_ranks_a_slow_link_is_reported(rule: Rule, tmp_path: Path) -> None:
    found = simulated_job(
        tmp_path, SimulatedMachine(transfer=500_000_000)
    )  # 26 MB in half a second
    [outcome] = rule(next(iter(found)), Ranks.of(found))
    assert isinstance(outcome, Finding)
    assert outcome.covers == ("I8",)
    assert outcome.title.startswith("Collectives move 5")
    assert outcome.title.endswith(" MB/s, less than any link between the ranks")
