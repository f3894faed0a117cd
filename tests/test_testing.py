"""Drawings become the traces that they show."""

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime import schema
from selftime.errors import UsageError
from selftime.testing import sketch


def test_nothing() -> None:
    trace = sketch("")
    assert trace.slices.is_empty()
    for name, table in trace.tables().items():
        assert dict(table.schema) == schema.TABLES[name].dtypes


def test_every_lane() -> None:
    trace = sketch(
        """
        mark 1   | ssssssssss
        cpu 1    |  aaaa bbb
        call 1   |   k    c
        python 1 | ffffffffff
        gpu 7    |     kkk
        copy 8   |         cc
        """
    )
    for name, table in trace.tables().items():
        assert dict(table.schema) == schema.TABLES[name].dtypes
    rows = {(row["name"], str(row["category"])): row for row in trace.slices.iter_rows(named=True)}
    mark, mm, call = rows["s", "user_annotation"], rows["a", "cpu_op"], rows["k", "cuda_runtime"]
    kernel, copied = rows["k", "kernel"], rows["c", "gpu_memcpy"]
    assert (mm["start"], mm["duration"], mm["self"]) == (10_000, 40_000, 30_000)
    assert (mark["parent"], mm["parent"], call["parent"]) == (None, mark["id"], mm["id"])
    assert (mark["self"], mark["depth"], call["depth"]) == (30_000, 0, 2)
    assert (kernel["launch"], copied["launch"]) == (call["id"], rows["c", "cuda_runtime"]["id"])
    operators = trace.device_args.select("operator").to_series().to_list()
    assert operators == [mm["id"], rows["b", "cpu_op"]["id"]]
    assert trace.device_args["stream"].to_list() == [7, 8]
    frame = rows["f", "python_function"]["id"]
    assert set(trace.op_args["frame"].to_list()) == {frame}
    assert trace.tracks["kind"].to_list() == ["host", "python", "device", "device"]


def test_legend_and_scale() -> None:
    trace = sketch(
        """
        cpu 1 | aa b
        column = 1 ms
        a = aten::mm; input_types = ["double"]; line = train.py:12 step
        b = aten::add; line = model.py:7 forward definition
        """
    )
    assert trace.slices["name"].to_list() == ["aten::mm", "aten::add"]
    assert trace.slices["duration"].to_list() == [2_000_000, 1_000_000]
    assert trace.op_args["input_types"].to_list() == ['["double"]', None]
    assert trace.lines.select(pl.exclude("id")).rows() == [
        ("train.py", 12, "step", "stack"),
        ("model.py", 7, "forward", "definition"),
    ]


def test_the_nth_work_of_a_letter_is_launched_by_its_nth_call() -> None:
    trace = sketch("call 1 | k k\ngpu 7  |  kk kk kk")
    launches = trace.slices.filter(pl.col("category").cast(pl.String) == "kernel")["launch"]
    assert launches.to_list() == [0, 2, None]


def test_what_a_legend_tells_is_in_the_tables() -> None:
    trace = sketch(
        """
        a = aten::mm; sequence = 4; forward_thread = 0
        b = MmBackward0; sequence = 4; forward_thread = 1; forward = a
        r = record_param_comms; collective = allreduce; in_elements = 8
        n = ncclDevKernel_AllReduce; collective = allreduce; group_size = 2
        k = gemm; grid = [4, 2, 1]; occupancy = 50; graph = 3
        s = Stream Sync; kind = stream
        m = nn.Module: Linear_0; module_id = 7
        f = forward
        python 1 | mmmmmmm
        python 1 | ffff
        cpu 1    | aaaa bb rr
        call 1   | k       n
        gpu 1.7  |  kk
        gpu 1.9  |          nn
        sync 1.7 |    ss
        """,
        devices=[{"name": "one"}, {"name": "two", "multiprocessors": 4}],
    )
    at = {str(name): id_ for id_, name in trace.slices.select("id", "name").rows()}
    ops = trace.op_args.select("id", "sequence", "forward_thread", "forward", "module").rows()
    module = at["nn.Module: Linear_0"]
    assert ops[:2] == [
        (at["aten::mm"], 4, 0, None, module),
        (at["MmBackward0"], 4, 1, at["aten::mm"], module),
    ]
    told = trace.device_args.select("device", "stream", "grid", "occupancy", "graph", "properties")
    assert told.rows() == [(1, 7, [4, 2, 1], 50.0, 3, 1), (1, 9, None, None, None, 1)]
    collectives = trace.collective_args.select("collective", "in_elements", "group_size", "record")
    record = at["record_param_comms"]
    assert collectives.rows() == [("allreduce", 8, None, None), ("allreduce", None, 2, record)]
    assert trace.sync_args.select("kind").rows() == [("stream",)]
    assert trace.frame_args.select("module_id", "caller").rows() == [(7, None), (None, module)]
    assert trace.devices["name"].to_list() == ["one", "two"]
    assert trace.tracks.filter(pl.col("kind") == "device")["device"].to_list() == [1, 1]


def test_one_call_launches_many() -> None:
    trace = sketch(
        """
        g = cudaGraphLaunch
        a = one; launched_by = g
        b = two; launched_by = g
        call 1 | g    g
        gpu 7  |  a b  ab
        """
    )
    work = trace.slices.filter(pl.col("launch").is_not_null())
    calls = trace.slices.filter(pl.col("name") == "cudaGraphLaunch")["id"].to_list()
    assert work["launch"].to_list() == [calls[0], calls[0], calls[1], calls[1]]


def test_blocks_of_memory() -> None:
    trace = sketch(
        """
        a = aten::empty
        A = block; bytes = 100; device_type = 1; device = 0
        cpu 1    | aa
        memory 1 |  A B a
        """
    )
    columns = ("time", "operator", "bytes", "allocated", "device_type", "device")
    assert trace.memory.select(columns).rows() == [
        (10_000, 0, 100, 100, 1, 0),
        (30_000, None, 1024, 1024, 0, -1),
        (50_000, None, -100, 0, 1, 0),
    ]
    assert trace.memory["address"].to_list() == [65, 66, 65]


@pytest.mark.parametrize(
    "drawing",
    [
        "a = b; nosuch = 1",
        "nosuch 1 | a",
        "words",
        "column = 5 hours",
        "column = ms",
        "column = x ms",
    ],
)
def test_what_is_no_drawing(drawing: str) -> None:
    with pytest.raises(UsageError) as caught:
        sketch(drawing)
    assert "\n" not in str(caught.value)


@given(st.text("ab ", max_size=20))
def test_runs_of_letters_are_slices(drawn: str) -> None:
    trace = sketch(f"cpu 1 | {drawn}")
    assert trace.slices["duration"].sum() == 10_000 * (len(drawn) - drawn.count(" "))
    for name, start, duration in trace.slices.select("name", "start", "duration").rows():
        assert set(drawn[start // 10_000 : (start + duration) // 10_000]) == {name}


def test_a_run_is_drawn_line_by_line() -> None:
    run = sketch("""
        run | start 300 ms
        run | before 2 s: imports numpy 1500 ms at train.py:1
        run | 2 training 100 ms recorded: data_wait 10 ms
        run | compiled forward 2 s at model.py:3: the size of `x` changed
        run | iterator 500 ms with 4 new workers at train.py:9 main
        run | loop training at train.py:9
    """).run
    assert run.wall_ns == 2_500_000_000
    assert run.segments.select("kind", "data_wait", "recorded").rows() == [
        (None, 0, False),
        ("training", 10_000_000, True),
        ("training", 10_000_000, True),
    ]
    assert run.readings.select("part", "what", "line").rows() == [("imports", "numpy", 1)]
    assert run.compilations["reason"].to_list() == ["the size of `x` changed"]
    assert run.iterators.select("workers", "starts_workers", "line").rows() == [(4, True, 9)]
    assert run.loop_lines == {"training": ("train.py", 9)}


@pytest.mark.parametrize("line", ["9 steps", "training", "training 2 s: later", "before two s"])
def test_a_line_that_draws_no_run_is_refused(line: str) -> None:
    with pytest.raises(UsageError, match="sketch of a run"):
        sketch(f"run | {line}")
