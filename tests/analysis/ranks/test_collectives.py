"""What one rank tells of its collectives: kind, group, bytes, step, and what hides them."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from selftime.analysis.ranks.collectives import COLLECTIVE_COLUMNS, collectives_of_trace
from selftime.ingest.load import load
from selftime.testing import sketch
from selftime.trace import Trace

TOLD = """
    mark 1   | ssssssssssssssss
    cpu 1    | aaaa    bb
    call 1   |  k k    l m
    gpu 7    |   kkkkkk
    gpu 20   |     nnnnnn  gggg
    s = ProfilerStep#7
    k = void gemm<float>()
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*); collective = allreduce; \
dtype = Float; in_elements = 1000; out_elements = 1000; group = 0; group_size = 4; sequence = 11
    g = ncclDevKernel_AllGather_RING_LL(ncclDevComm*); collective = _allgather_base; \
dtype = BFloat16; in_elements = 100; out_elements = 400; group = 3; group_size = 4
"""


def test_of_a_device() -> None:
    found = collectives_of_trace(sketch(TOLD))
    assert dict(found.schema) == COLLECTIVE_COLUMNS
    assert found["collective"].to_list() == ["allreduce", "allgather"]
    assert found["bytes"].to_list() == [4000, 800]
    assert found["group"].to_list() == ["0", "3"]
    assert found["sequence"].to_list() == [11, None]
    assert found["step"].to_list() == [7, 7]
    assert (found["end"] - found["start"]).to_list() == [60_000, 40_000]
    assert found["exposed"].to_list() == [20_000, 40_000]


def test_of_a_host() -> None:
    found = collectives_of_trace(
        sketch("""
        mark 1 | ssssssss
        cpu 1  | aaaaaaaa
        mark 2 |   gggg
        g = gloo:all_reduce
        s = ProfilerStep#1
        """)
    )
    row = found.row(0, named=True)
    assert (row["collective"], row["is_host"], row["exposed"]) == ("allreduce", True, None)
    assert (row["start"], row["end"], row["step"]) == (20_000, 60_000, 1)


def test_a_trace_without_any() -> None:
    assert collectives_of_trace(sketch("cpu 1 | aa")).is_empty()
    assert dict(collectives_of_trace(Trace()).schema) == COLLECTIVE_COLUMNS


@pytest.mark.traces
def test_the_real_one_of_two_ranks(real: Callable[[str], Trace]) -> None:
    found = collectives_of_trace(real("a100-2024-nccl-2ranks"))
    assert found.height == 21
    sums = found.group_by("collective").agg(pl.len(), pl.col("bytes").sum()).sort("collective")
    assert sums["collective"].to_list() == ["allreduce", "broadcast"]
    assert found["group_ranks"].unique().to_list() == ["[0, 1]"]
    assert set(found["step"]) == {4, 5, 6}
    assert (found["exposed"] <= found["end"] - found["start"]).all()


def test_a_collective_is_in_the_only_group_of_several_ranks_that_it_can_be_in(
    tmp_path: Path,
) -> None:
    both, alone = {"ranks": "[0, 1]", "pg_size": 2}, {"ranks": "[0]", "pg_size": 1}
    one = [both | {"pg_name": "0"}, alone | {"pg_name": "1"}, both | {"pg_name": "2"}]
    three = {"ranks": "[0, 1, 2]", "pg_size": 3, "pg_name": "3"}
    for groups, ranks in ((one, "[0, 1]"), ([*one, three], None)):
        run = {"ph": "X", "pid": 1, "tid": 1, "name": "gloo:all_reduce", "cat": "user_annotation"}
        header = {"backend": "gloo", "rank": 0, "world_size": 2, "pg_config": groups}
        path = tmp_path / f"{len(groups)}.json"
        events = [run | {"ts": 1, "dur": 2}]
        path.write_text(json.dumps({"distributedInfo": header, "traceEvents": events}))
        trace = load(path, cache=False)
        assert isinstance(trace, Trace)
        assert collectives_of_trace(trace)["group_ranks"].to_list() == [ranks]
