"""Tests the paths between collectives: they give when a rank came to each of its collectives."""

from pathlib import Path

import numpy as np
import pytest

from selftime.analysis.graph.building import dependency_graph
from selftime.analysis.graph.paths_between_collectives import (
    FROM_BEGIN,
    PATH_NODES_SCHEMA,
    paths_between_collectives,
)
from selftime.analysis.ranks.collectives import collectives_of_trace
from selftime.ingest.load import load
from selftime.testing import sketch
from selftime.testing.simulated_jobs import DelayCause, RankDelay, simulate_job
from selftime.testing.simulated_pipelines import PipelineJob, simulate_pipeline_job
from selftime.trace import Trace


def arrival_errors(trace: Trace) -> list[int]:
    """Returns by how many ns the paths miss each collective's start, from the recorded ends."""
    rows, (nodes, paths) = collectives_of_trace(trace), paths_between_collectives(trace)
    start, end = rows["start"].to_list(), rows["end"].to_list()
    ends = np.zeros(nodes.height + 1, np.int64)  # the last is the begin of the recording
    errors = []
    of_nodes = paths.group_by("node", maintain_order=True).agg("before", "lag")
    for (node, before, lag), collective in zip(
        of_nodes.iter_rows(), nodes["collective"].to_list(), strict=True
    ):
        arrival = max(int(ends[at]) + more for at, more in zip(before, lag, strict=True))
        ends[node] = arrival if collective is None else end[collective]
        if collective is not None:
            errors.append(abs(arrival - start[collective]))
    return errors


def loaded(folder: Path, content: bytes) -> Trace:
    file = folder / "trace.json"
    file.write_bytes(content)
    trace = load(file, cache=False)
    assert isinstance(trace, Trace)
    return trace


@pytest.mark.parametrize("cause", ["data", "compute", "host"])
def test_the_paths_lead_to_the_recorded_starts(cause: DelayCause, tmp_path: Path) -> None:
    late = RankDelay(1, 4_000_000, cause)
    job = simulate_job(ranks=2, steps=4, late=late)
    for content in job.traces.values():
        errors = arrival_errors(loaded(tmp_path, content))
        assert len(errors) == 12
        assert max(errors) == 0


def test_the_paths_lead_to_the_recorded_starts_of_messages(tmp_path: Path) -> None:
    job = PipelineJob(stages=3, micro_batches=4, steps=2, length_spread=0.3)
    for content in simulate_pipeline_job(job).traces.values():
        errors = arrival_errors(loaded(tmp_path, content))
        assert len(errors) >= 2 * (2 * 4 + 2)
        assert max(errors) == 0


def test_the_work_on_a_path_is_told() -> None:
    trace = sketch("""
        column = 1 ms
        mark 1 | ssssssssssss
        call 1 | abn  cm w
        gpu 7  |  aabbb  cc
        gpu 20 |       nn  mm
        s = ProfilerStep#1
        n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
        m = ncclDevKernel_AllReduce_Sum_f32_RING_LL
        w = cudaDeviceSynchronize
    """)
    nodes, paths = paths_between_collectives(trace)
    assert nodes["collective"].to_list()[:2] == [0, 1]
    first, second = (
        paths.filter(node=at).sort("lag", descending=True).row(0, named=True) for at in (0, 1)
    )
    assert first["before"] == FROM_BEGIN
    assert (first["device_time"], first["host_time"]) == (5_000_000, 0)
    assert first["lag"] == 6_000_000 + dependency_graph(trace).begin
    after = paths.filter(node=1, before=0)
    assert after["lag"].to_list() == [2_000_000] or second["before"] == FROM_BEGIN


def test_equal_work_has_one_hash_in_each_process(tmp_path: Path) -> None:
    """The number of a name in a trace's table of names is no part of it."""
    job = simulate_pipeline_job(PipelineJob(stages=2, micro_batches=3, steps=2)).traces
    works = [
        set(paths_between_collectives(loaded(tmp_path, content)).paths["work"].to_list())
        for content in job.values()
    ]
    assert works[0] == works[1]
    assert len(works[0] & works[2]) > 1


def test_a_trace_without_collectives_has_no_paths() -> None:
    """Nothing that it does is joined with other ranks; a trace of 1 GB is not followed for it."""
    trace = sketch("""
        column = 1 ms
        mark 1 | ssssstttttt
        call 1 | kw   kw
        gpu 7  |  kk   kkk
        s = ProfilerStep#1
        t = ProfilerStep#2
        w = cudaDeviceSynchronize
    """)
    nodes, paths = paths_between_collectives(trace)
    assert nodes.is_empty()
    assert paths.is_empty()
    assert nodes.schema == PATH_NODES_SCHEMA
