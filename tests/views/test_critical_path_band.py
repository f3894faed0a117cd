"""The critical path in order of time: its lanes, how rows are merged, and what runs beside it."""

from typing import TYPE_CHECKING

import polars as pl
import pytest

from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.critical_path import critical_path
from selftime.views.critical_path_band import critical_path_band
from selftime.views.off_path import off_path

if TYPE_CHECKING:
    from tests.conftest import ReadReal

US = 1_000

STEPS = """
    mark 1 | ssssssssssssttttttttttttttuuuuuuuuuuuu
    mark 1 | ddd         ddd           ddd
    cpu 1  |    aaa         aaa           aaa
    call 1 |     kxyyyyyy    kxyyyyyyyy    kxyyyyyy
    gpu 7  |      kkkkkkk     kkkkkkkkk     kkkkkkk
    gpu 8  |       xx          xx            xx
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:3 main
    a = aten::mm; line = train.py:7 step
    y = cudaStreamSynchronize
"""


def test_an_empty_trace_has_no_path() -> None:
    assert critical_path_band(Trace()).is_empty()
    assert off_path(Trace()).is_empty()


def test_segments_stand_on_the_lanes_that_run_them() -> None:
    found = critical_path_band(sketch(STEPS), step="3")
    assert found.select("lane", "kind", "time").rows() == [
        ("waiting", "data", 30 * US),
        ("1", "host", 10 * US),
        ("waiting", "latency", 10 * US),
        ("stream 7", "compute", 70 * US),
    ]
    assert found["duration"].to_list() == found["time"].to_list()


def test_a_step_is_chosen_by_number_or_as_the_typical_one() -> None:
    trace = sketch(STEPS)
    assert critical_path(trace, step="2")["time"].sum() == 140 * US
    assert critical_path(trace, step="all")["time"].sum() == 380 * US
    assert critical_path(trace)["time"].sum() == 260 * US
    assert critical_path_band(trace)["step"].unique().to_list() == [2]
    with pytest.raises(
        UsageError, match="there is no step `9`; write typical, all or one of 1 to 3"
    ):
        critical_path(trace, step="9")


def test_narrow_segments_of_a_lane_are_merged_and_their_time_is_kept() -> None:
    trace = sketch(STEPS)
    whole = critical_path_band(trace, step="all", pixels=4)
    assert whole["time"].sum() == 380 * US
    assert whole["count"].sum() == critical_path(trace, by="segment", step="all").height
    assert whole.height < whole["count"].sum()
    every = critical_path(trace, by="segment", step="all")
    apart = critical_path_band(trace, step="all", pixels=38)  # the least takes a pixel
    assert apart["time"].to_list() == every["time"].to_list()
    two = critical_path_band(trace, step="all", pixels=2)  # two segments of one lane in each half
    assert two.filter(kind="compute")["count"].to_list() == [2, 1]
    part = critical_path_band(trace, step="3", start=270 * US, end=300 * US)
    assert part["time"].sum() == 30 * US


def test_an_operator_has_what_it_launched_and_ran() -> None:
    table = critical_path(sketch(STEPS), by="operator", step="3")
    assert set(table.select("kind", "operator", "time").rows()) == {
        ("compute", "aten::mm", 70 * US),
        ("latency", "aten::mm", 10 * US),
        ("host", "aten::mm", 10 * US),
        ("data", None, 30 * US),
    }


def test_work_beside_the_path_is_told_with_what_of_it_is_on_the_path() -> None:
    table = off_path(sketch(STEPS), step="3")
    assert table.select("kind", "name", "time", "on_path", "off_share", "count").rows() == [
        ("compute", "x", 20 * US, 0, 1.0, 1)
    ]


def test_rows_beside_the_path_are_in_order_of_time_with_their_shares() -> None:
    trace = sketch("""
        mark 1 | sssssssssssssss
        cpu 1  | aaaa
        call 1 | kwxzuyyyyyyyyy
        gpu 7  |  kkkkkkkkkkkk
        gpu 8  |   w xx uuu
        copy 9 |     z
        s = ProfilerStep#1
        a = aten::mm
        k = gemm
        w = gemm
        x = relu
        u = relu
        z = Memcpy DtoD (Device -> Device)
        y = cudaStreamSynchronize
    """)
    table = off_path(trace)
    columns = ("kind", "name", "time", "on_path", "count", "start")
    assert table.select(columns).rows() == [
        ("compute", "relu", 50 * US, 0, 2, 70 * US),
        ("compute", "gemm", 10 * US, 120 * US, 1, 20 * US),
        ("copy", "Memcpy DtoD (Device -> Device)", 10 * US, 0, 1, 40 * US),
    ]
    assert table["share"].to_list() == pytest.approx([5 / 7, 1 / 7, 1 / 7])
    assert table["off_share"].to_list() == pytest.approx([1, 1 / 13, 1])
    longest = trace.slices["start"].gather(table["longest"])
    assert longest.to_list() == table["start"].to_list()
    assert off_path(trace, top=1)["name"].to_list() == ["relu"]


@pytest.mark.traces
def test_the_picture_of_a_real_path_is_bounded_and_whole(real: "ReadReal") -> None:
    trace = real("v100-2021-resnet50-workers0.pt.trace")
    for pixels in (50, 1000):
        band = critical_path_band(trace, step="all", pixels=pixels)
        assert band["time"].sum() == critical_path(trace, step="all")["time"].sum()
        assert band.height <= (band["lane"].n_unique() + 1) * (pixels + 1)
    busy = trace.slices.filter(pl.col("id").is_in(trace.device_args["id"].implode()))
    told = off_path(trace, step="all")
    assert told.select(pl.sum_horizontal("time", "on_path")).to_series().sum() > 0
    assert told["time"].sum() <= busy["duration"].sum()
