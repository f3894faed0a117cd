"""Tests the graph of a job: it ends when the job did, and moves when a rank is faster."""

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.analysis.ranks.job_graph import NO_COLLECTIVE, NO_STEP, job_graph
from selftime.analysis.ranks.job_imbalance import job_imbalance
from selftime.analysis.ranks.job_levels import levels_of_meetings
from selftime.analysis.ranks.job_ranks import Ranks, collectives_on_one_clock
from selftime.ingest.load import load
from selftime.testing.simulated_jobs import RankDelay, simulate_job
from selftime.testing.simulated_pipelines import PipelineJob, simulate_pipeline_job

MESSAGE_TIME_NS = 60_000


def ranks_of(folder: Path, traces: dict[int, bytes]) -> Ranks:
    for rank, content in traces.items():
        (folder / f"rank{rank}.json").write_bytes(content)
    return Ranks.of(load(folder, cache=False))


@pytest.mark.parametrize("clocks", [False, True], ids=["one clock", "clocks that differ"])
def test_collectives_end_when_they_did(clocks: bool, tmp_path: Path) -> None:
    late = RankDelay(1, 5_000_000, "compute")
    ranks = ranks_of(tmp_path, simulate_job(ranks=3, steps=4, late=late, clocks=clocks).traces)
    graph = job_graph(ranks)
    is_one = graph.collective != NO_COLLECTIVE
    recorded = collectives_on_one_clock(ranks).rows["end"].to_numpy()[graph.collective[is_one]]
    error = np.abs(graph.ends()[:-1][is_one] + graph.origin - recorded)
    assert is_one.sum() == 3 * 4 * 3
    assert error.max() < 20_000


def test_steps_of_a_pipeline_end_when_they_did(tmp_path: Path) -> None:
    job = PipelineJob(stages=3, micro_batches=5, steps=4, length_spread=0.4)
    simulated = simulate_pipeline_job(job)
    ranks = ranks_of(tmp_path, simulated.traces)
    graph = job_graph(ranks)
    ends = graph.ends()[:-1]
    for key in ranks.ranks_by_key():
        steps = ends[(graph.rank == key) & (graph.step != NO_STEP)]
        assert steps.size == job.steps
        assert np.diff(steps).mean() / 1e6 == pytest.approx(simulated.step_ms, rel=0.002)


def test_a_message_is_one_meeting_of_two_ranks(tmp_path: Path) -> None:
    job = PipelineJob(data_parallel=1, stages=2, micro_batches=3, steps=2)
    ranks = ranks_of(tmp_path, simulate_pipeline_job(job).traces)
    graph, rows = job_graph(ranks), collectives_on_one_clock(ranks).rows
    kind = np.append(rows["collective"].to_numpy(), "")[graph.collective]
    sends = np.flatnonzero(kind == "send")
    assert sends.size == 2 * 2 * 3
    for node in sends.tolist():
        both = np.flatnonzero(graph.meeting == graph.meeting[node])
        assert sorted(kind[both]) == ["recv", "send"]
        assert len(set(graph.rank[both].tolist())) == 2
        assert graph.transfer[graph.meeting[node]] == pytest.approx(MESSAGE_TIME_NS, abs=100)


def test_a_collective_without_its_transfer_ends_earlier_by_it(tmp_path: Path) -> None:
    graph = job_graph(ranks_of(tmp_path, simulate_job(ranks=2, steps=3, clocks=False).traces))
    both = np.stack([graph.transfer.astype(float), np.zeros(graph.transfer.size)])
    with_, without = graph.ends(transfer=both)
    assert (with_ == graph.ends()).all()
    assert (without <= with_).all()
    assert without.max() < with_.max()


def test_meetings_that_follow_each_other_in_a_circle_are_all_reached() -> None:
    meeting = np.array([0, 1, 2, 1])
    node, before = np.array([0, 1, 2, 3]), np.array([4, 0, 1, 2])
    level, kept = levels_of_meetings(meeting, node, before, np.array([10, 20, 30]))
    assert level.tolist() == [0, 1, 2]
    assert kept.tolist() == [0, 1, 2]


def gloo_rank(rank: int, sizes: list[list[int]]) -> bytes:
    """The trace of a rank that all-reduces tensors of these sizes in each of its steps."""
    events: list[dict[str, Any]] = []
    at = 1000
    for number, step in enumerate(sizes):
        begin = at
        for size in step:
            dims = {"Input Dims": [[size]], "Input type": ["float"]}
            called = {"name": "c10d::allreduce_", "cat": "cpu_op", "tid": 1, "ts": at, "dur": 5}
            run = {"name": "gloo:all_reduce", "cat": "user_annotation", "tid": 2, "args": dims}
            events += [called, run | {"ts": at + 10, "dur": 80}]
            at += 100 + 7 * rank
        name = f"ProfilerStep#{number}"
        step_ = {"name": name, "cat": "user_annotation", "tid": 1, "ts": begin, "dur": at - begin}
        events.append(step_)
    return json.dumps(
        {
            "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": 2},
            "baseTimeNanoseconds": 1_760_000_000_000_000_000,
            "traceEvents": [{"ph": "X", "pid": 1} | event for event in events],
        }
    ).encode()


orders = st.lists(st.permutations([8, 8, 16, 24]), min_size=3, max_size=3)


@given(first=orders, second=orders)
def test_collectives_that_ranks_run_in_different_orders_are_all_reached(
    first: list[list[int]], second: list[list[int]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ranks = ranks_of(Path(folder), {0: gloo_rank(0, first), 1: gloo_rank(1, second)})
        graph = job_graph(ranks)
        assert sum(level.nodes.size for level in graph.levels) == graph.rank.size
        assert sum(level.meetings.size for level in graph.levels) == graph.transfer.size
        assert np.isfinite(graph.ends()).all()
        assert job_imbalance(ranks) is not None


def test_levels_follow_all_that_they_depend_on() -> None:
    rng = np.random.default_rng(0)
    count = 200
    node = np.repeat(np.arange(count), 3)
    before = np.array([rng.integers(-1, at) if at else -1 for at in node.tolist()])
    before = np.where(before < 0, count, before)
    meeting = np.arange(count)
    level, kept = levels_of_meetings(meeting, node, before, meeting)
    slow = [0] * count
    for at, since in zip(node.tolist(), before.tolist(), strict=True):
        slow[at] = max(slow[at], slow[since] + 1 if since < count else 0)
    assert kept.size == node.size
    assert level.tolist() == slow
