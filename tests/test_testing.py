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


@pytest.mark.parametrize(
    "drawing", ["nosuch 1 | a", "words", "column = 5 hours", "column = ms", "column = x ms"]
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
