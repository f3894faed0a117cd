"""The table of kernels."""

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.errors import UsageError
from selftime.intervals import length, union
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.kernels import kernels

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000

TRAINING = """
    a = aten::mm; line = train.py:12 step
    b = aten::relu; line = train.py:13 step
    g = volta_h884gemm_64x128_ldg8_nn; grid = [8, 2, 1]; block = [64, 1, 1]; registers = 32
    r = void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)
    n = ncclDevKernel_AllReduce_Sum_f32_RING_LL
    c = Memcpy HtoD
    cpu 1  | aaaaa bb aa
    call 1 |  g n  r  g
    gpu 7  |   gg rrr  gggg
    gpu 9  |   nnnnnn
    copy 8 | cc
"""


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return kernels(trace, **options).select(columns).rows()


def test_nothing_recorded_has_no_kernels() -> None:
    assert kernels(Trace()).is_empty()
    assert kernels.missing_data(Trace())


def test_tells_how_often_and_how_long_each_ran() -> None:
    columns = ("what", "class", "count", "total", "share", "mean", "min", "median", "max")
    assert rows(sketch(TRAINING), *columns) == [
        # copies are in a view of their own
        (
            *("volta_h884gemm_64x128_ldg8_nn", "gemm", 2, 60 * US, 60 / 150),
            *(30 * US, 20 * US, 30 * US, 40 * US),
        ),
        (
            *("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "collective", 1, 60 * US, 60 / 150),
            *(60 * US, 60 * US, 60 * US, 60 * US),
        ),
        (
            *("vectorized_elementwise_kernel<FillFunctor>", "fill", 1, 30 * US, 30 / 150),
            *(30 * US, 30 * US, 30 * US, 30 * US),
        ),
    ]


def test_tells_who_launched_it_and_on_what_it_ran() -> None:
    columns = ("class", "operator", "file", "line", "tensor_cores", "stream")
    assert rows(sketch(TRAINING), *columns) == [
        ("gemm", "aten::mm", "train.py", 12, True, 7),
        ("collective", "aten::mm", "train.py", 12, False, 9),
        ("fill", "aten::relu", "train.py", 13, False, 7),
    ]


def test_blocks_follow_from_the_grid_where_they_are_not_recorded() -> None:
    device = {"name": "small", "multiprocessors": 4, "warp_size": 32}
    columns = ("grid", "block", "registers", "blocks_per_sm", "warps_per_sm", "occupancy")
    [gemm, *others] = rows(sketch(TRAINING, devices=[device]), *columns)
    assert gemm == ("8,2,1", "64,1,1", 32, 4.0, 8.0, None)
    assert others == [(None,) * 6] * 2
    undescribed = rows(sketch(TRAINING), "grid", "blocks_per_sm")
    assert undescribed[0] == ("8,2,1", None)


def test_occupancy_is_weighted_by_time_over_the_runs_that_have_it() -> None:
    trace = sketch("""
        a = gemm; occupancy = 80
        b = gemm; occupancy = 20
        c = gemm
        gpu 7 | aaa b cccc
    """)
    columns = ("count", "occupancy", "without_occupancy")
    assert rows(trace, *columns) == [(3, (80 * 30 + 20 * 10) / 40, 1)]


def test_rows_are_what_is_asked() -> None:
    trace = sketch(TRAINING)
    assert rows(trace, "class", "operator", "count", by="launch") == [
        ("gemm", "aten::mm", 2),
        ("collective", "aten::mm", 1),
        ("fill", "aten::relu", 1),
    ]
    assert rows(trace, "operator", "class", "total", by="operator") == [
        ("aten::mm", None, 120 * US),
        ("aten::relu", "fill", 30 * US),
    ]
    assert rows(trace, "line", "total", by="line") == [(12, 120 * US), (13, 30 * US)]
    assert rows(trace, "stream", "count", by="stream") == [(7, 3), (9, 1)]
    assert rows(trace, "class", "tensor_core_share", by="class") == [
        ("gemm", 1.0),
        ("collective", 0.0),
        ("fill", 0.0),
    ]
    labels = {by: rows(trace, "what", by=by, top=1)[0][0] for by in ("operator", "line", "stream")}
    assert labels == {
        "operator": "aten::mm",
        "line": "train.py:12 step",
        "stream": "device 0, stream 7",
    }
    assert rows(trace, "class", top=1) == [("gemm",)]
    with pytest.raises(UsageError, match="`top` is `-1`"):
        kernels(trace, top=-1)


def test_replays_of_a_graph_are_one_graph() -> None:
    trace = sketch("""
        g = cudaGraphLaunch
        a = one; launched_by = g
        b = two; launched_by = g
        c = three; launched_by = g
        x = alone
        call 1 | g    g    x g
        gpu 7  |  ab   ab  x  abc
    """)
    columns = ("replays", "in_replay", "count")
    assert rows(trace, *columns, by="graph") == [(2, 2.0, 4), (1, 3.0, 3), (None, None, 1)]
    graphs = kernels(trace, by="graph")["graph"].to_list()
    assert graphs[2] is None
    assert graphs[0] != graphs[1]


def test_numbered_graphs_keep_their_number() -> None:
    trace = sketch("""
        g = cudaGraphLaunch
        a = one; launched_by = g; graph = 5
        call 1 | g   g
        gpu 7  |  aa  a
    """)
    assert rows(trace, "graph", "replays", "in_replay") == [("graph 5", 2, 1.0)]
    assert kernels(sketch("a = one; graph = 5\ngpu 7 | a"))["graph"].to_list() == ["graph 5"]


def test_only_counted_steps() -> None:
    trace = sketch("""
        s = ProfilerStep#1
        t = ProfilerStep#2
        u = ProfilerStep#3
        v = ProfilerStep#4
        mark 1 | sssstttt
        mark 1 |         uuuuvvvv
        call 1 | k   k   k   k
        gpu 7  |  k   k   k   k
    """)
    assert rows(trace, "count") == [(4,)]
    assert rows(trace, "count", counted=True) == [(3,)]


streams = st.lists(st.text("kgn ", max_size=30), min_size=1, max_size=4)


@given(streams, st.sampled_from(["name", "launch", "operator", "line", "class", "stream", "graph"]))
def test_rows_add_up_to_all_kernels(drawn: list[str], by: Any) -> None:
    lanes = "\n".join(f"gpu {number} | {lane}" for number, lane in enumerate(drawn))
    trace = sketch(lanes)
    table = kernels(trace, by=by)
    assert table["total"].sum() == trace.slices["duration"].sum()
    assert table["count"].sum() == trace.slices.height
    assert table["share"].sum() == pytest.approx(1 if trace.slices.height else 0)
    for row in table.iter_rows(named=True):
        assert row["min"] <= row["median"] <= row["max"]
        assert row["min"] <= row["p95"] <= row["max"]


def test_every_kernel_of_every_real_trace_is_counted(
    real: "ReadReal", real_names: list[str]
) -> None:
    for name in real_names:
        trace = real(name)
        work = trace.slices.join(trace.device_args.select("id"), on="id", how="semi")
        copies = pl.col("category").cast(pl.String).str.starts_with("gpu_mem")
        known = work.filter(~copies & pl.col("duration").is_not_null())
        for by in ("name", "launch", "graph"):
            table = kernels(trace, by=by)
            assert table["count"].sum() == known.height, name
            assert table["total"].sum() == known["duration"].sum(), name


def test_kernels_that_overlap_on_a_stream_are_all_there(real: "ReadReal") -> None:
    trace = real("b200-2025-vllm-eager")
    work = trace.slices.join(trace.device_args.select("id", "stream"), on="id", how="semi")
    kernel = work.filter(pl.col("category").cast(pl.String) == "kernel").sort("start")
    reach = (pl.col("start") + pl.col("duration")).cum_max().shift(1).over("track")
    assert kernel.filter(pl.col("start") < reach).height > 0
    end = kernel["start"] + kernel["duration"]
    busy = length(union(kernel["start"].to_numpy(), end.to_numpy()))
    table = kernels(trace)
    assert table["count"].sum() == kernel.height
    assert table["total"].sum() == kernel["duration"].sum() > busy


def test_graphs_of_a_real_trace(real: "ReadReal") -> None:
    table = kernels(real("a100-2022-diff-test"), by="graph").filter(pl.col("graph").is_not_null())
    assert table["replays"].to_list() == [6, 6]


def test_kernels_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(kernels, kernels(real("h100-2025-qwen-0.5b"), by="launch", top=20))
