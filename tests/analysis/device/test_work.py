"""Work of devices, and durations that cannot be."""

from dataclasses import replace

import polars as pl

from selftime.analysis.device.device_work import (
    device_work,
    device_work_as_recorded,
    slice_durations_without_impossible,
)
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.health import health
from selftime.views.kernels import kernels
from selftime.views.operators import operators
from selftime.views.steps import steps

US = 1_000

DRAWING = """
    a = aten::mm
    s = ProfilerStep#1
    mark 1 | ssssssssssssssssss
    cpu 1  | aaaaaaaaaaaa
    call 1 | k k k k k n
    gpu 7  |  k k k k k n
"""


def stretched(trace: Trace, factor: int, which: int) -> Trace:
    """The trace with one kernel's duration multiplied."""
    kernel = pl.col("category").cast(pl.String) == "kernel"
    ids = trace.slices.filter(kernel)["id"].to_list()
    longer = pl.when(pl.col("id") == ids[which]).then(pl.col("duration") * factor)
    slices = trace.slices.with_columns(duration=longer.otherwise("duration"))
    return replace(trace, slices=slices)


def test_work_is_told_with_its_launch() -> None:
    trace = sketch(DRAWING)
    work = device_work(trace)
    assert work["kind"].unique().to_list() == ["kernel"]
    assert work["end"].to_list() == (work["start"] + work["duration"]).to_list()
    assert (work["start"] - work["launched"]).to_list() == [10 * US] * 6
    assert trace.slices["name"].gather(work["operator"]).unique().to_list() == ["aten::mm"]


def test_collectives_are_told_by_arguments_and_by_names() -> None:
    trace = sketch("""
        a = mystery; collective = allreduce
        n = ncclDevKernel_AllReduce
        c = Memcpy HtoD
        f = Memset
        gpu 7  | a n k
        copy 8 | c
        fill 8 |   f
    """)
    kinds = device_work(trace).select(pl.col("name").cast(pl.String), "kind").rows()
    assert dict(kinds) == {
        "mystery": "communication",
        "ncclDevKernel_AllReduce": "communication",
        "k": "kernel",
        "Memcpy HtoD": "memcpy",
        "Memset": "memset",
    }


def test_what_cannot_have_lasted_so_long_ends_with_what_had_to_wait_for_it() -> None:
    trace = stretched(sketch(DRAWING), 10_000, 1)
    assert device_work_as_recorded(trace)["duration"].max() == 100_000 * US
    work = device_work(trace)
    assert work["duration"].to_list() == [10 * US, 20 * US, 10 * US, 10 * US, 10 * US, 10 * US]
    assert slice_durations_without_impossible(trace).max() == trace.slices["duration"][0]


def test_every_view_has_the_mended_duration_and_health_tells() -> None:
    trace = stretched(sketch(DRAWING), 10_000, 1)
    assert kernels(trace).select("what", "total").rows() == [("k", 60 * US), ("n", 10 * US)]
    table = operators(trace).filter(pl.col("name").cast(pl.String) == "aten::mm")
    assert table["device_time_total"].to_list() == [70 * US]
    assert steps(trace)["kernel"].to_list() == [70 * US]
    [told] = health(trace).filter(pl.col("check") == "durations").iter_rows(named=True)
    assert told["verdict"] == "degraded"
    assert told["value"] == 1.0


def test_legal_overlap_stays_as_it_is() -> None:
    trace = sketch("gpu 7 | kkkk\ngpu 7 |  kk\ngpu 7 |   kkkk")
    assert device_work(trace)["duration"].to_list() == [40 * US, 20 * US, 40 * US]
    assert slice_durations_without_impossible(trace) is trace.slices["duration"] or (
        slice_durations_without_impossible(trace).to_list() == trace.slices["duration"].to_list()
    )


def test_nothing() -> None:
    assert device_work(Trace()).is_empty()
    assert slice_durations_without_impossible(Trace()).is_empty()
