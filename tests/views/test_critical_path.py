"""What the critical path is made of: kinds, names, lines, steps and segments of it."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from selftime.advice.replay import CutHostTime, ScaleDeviceWork, replay_of
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.errors import UsageError
from selftime.intervals import union
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views import VIEWS
from selftime.views.critical_path import critical_path

MS = 1_000_000
BY = ("kind", "name", "line", "step", "segment")

STEPS = """
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | ddd         ddd         ddd
    cpu 1  |    aaa         aaa         aaa
    call 1 |     kxyyyyyy    kxyyyyyy    kxyyyyyy
    gpu 7  |      kkkkkkk     kkkkkkk     kkkkkkk
    gpu 8  |       xx          xx          xx
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:3 main
    a = aten::mm; line = train.py:7 step
    y = cudaStreamSynchronize
"""
PER_STEP = {"compute": 70_000, "data": 30_000, "host": 10_000, "latency": 10_000}


def test_an_empty_trace_has_no_path() -> None:
    assert critical_path(Trace()).is_empty()


def test_kinds_with_the_time_of_the_steps_that_count() -> None:
    """The first step is not typical: 2 of 3 count."""
    found = critical_path(sketch(STEPS))
    assert dict(found.select("kind", "per_step").iter_rows()) == PER_STEP
    assert found["time"].to_list() == [140_000, 60_000, 20_000, 20_000]
    assert found["time"].sum() == 240_000
    assert found["share"].sum() == pytest.approx(1)
    assert found["count"].to_list()[:2] == [2, 2]


def test_names_and_lines() -> None:
    trace = sketch(STEPS)
    named = critical_path(trace, by="name").row(
        by_predicate=pl.col("kind") == "compute", named=True
    )
    assert (named["name"], named["line"], named["link"]) == ("k", 7, "launch")
    lines = critical_path(trace, by="line").filter(pl.col("kind") == "data")
    assert lines.select("file", "line", "function", "how").row(0) == (
        "train.py",
        3,
        "main",
        "stack",
    )


def test_segments_lie_in_order_with_their_slices() -> None:
    trace = sketch(STEPS)
    found = critical_path(trace, by="segment")
    assert found["start"].is_sorted()
    assert (found["start"][1:] - found["start"][:-1]).to_list() == found["time"][:-1].to_list()
    kinds = ["data", "host", "latency", "compute"]
    assert found["kind"].to_list() == kinds * 2
    assert found["per_step"].null_count() == found.height
    work = found.filter(pl.col("kind") == "compute")["longest"]
    assert trace.slices["name"].gather(work).cast(pl.String).to_list() == ["k", "k"]


def test_steps_each_add_up_to_their_time() -> None:
    trace = sketch(STEPS)
    found = critical_path(trace, by="step").group_by("step").agg(pl.col("time").sum()).sort("step")
    steps = steps_with_counted_flags(trace).filter("counted")
    assert found["step"].to_list() == steps["number"].to_list()
    assert found["time"].to_list() == (steps["done"] - steps["begin"]).to_list()


def test_what_no_record_tells_is_counted_as_inferred() -> None:
    found = critical_path(
        sketch("""
        mark 1 | ssssss
        call 1 | k  m
        gpu 7  |  kkkkkk
        gpu 8  |        mmmm
        s = ProfilerStep#1
        """),
        by="name",
    )
    row = found.row(by_predicate=pl.col("link") == "inferred", named=True)
    assert (row["name"], row["time"], row["inferred"]) == ("m", 40_000, 40_000)
    assert found["inferred"].sum() == 40_000


def test_top_keeps_the_first_rows() -> None:
    trace = sketch(STEPS)
    assert critical_path(trace, top=1)["kind"].to_list() == ["compute"]
    with pytest.raises(UsageError, match="`top` is `-1`"):
        critical_path(trace, top=-1)


def test_is_a_view() -> None:
    assert VIEWS["critical_path"] is critical_path


def test_a_replay_without_a_kernel_of_the_path_is_faster_and_without_another_is_not() -> None:
    trace = sketch(STEPS)
    replay, path = replay_of(trace), critical_path(trace, by="segment")
    kernels = trace.slices.filter(pl.col("category") == "kernel")
    on_path = kernels["id"].is_in(path["longest"].implode())
    on, off = kernels.filter(on_path), kernels.filter(~on_path)
    assert on["name"].cast(pl.String).unique().to_list() == ["k"]
    assert replay.saving(ScaleDeviceWork(on["id"].cast(pl.Int64).to_numpy(), kept_share=0.5)) > 0
    assert replay.saving(ScaleDeviceWork(off["id"].cast(pl.Int64).to_numpy())) == 0


def test_a_replay_without_loading_saves_what_it_is_of_the_path() -> None:
    trace = sketch(STEPS)
    loading = critical_path(trace, by="segment").filter(pl.col("kind") == "data")
    start = loading["start"].to_numpy()
    cut = CutHostTime(union(start, start + loading["time"].to_numpy()))
    assert replay_of(trace).saving(cut) == PER_STEP["data"]


@pytest.mark.traces
def test_adds_up_on_every_real_trace(real_names: list[str], real: Callable[[str], Trace]) -> None:
    for name in real_names:
        trace = real(name)
        steps = steps_with_counted_flags(trace)
        counted = steps.filter("counted") if steps["counted"].any() else steps
        for by in BY:
            found = critical_path(trace, by=by)  # type: ignore[arg-type]  # one of its words
            assert found["time"].sum() == (counted["done"] - counted["begin"]).sum(), (name, by)


@pytest.mark.traces
def test_loading_without_workers_is_a_third_of_the_path(real: Callable[[str], Trace]) -> None:
    """The two recordings of one program, without and with workers."""
    slow = critical_path(real("v100-2021-resnet50-workers0.pt.trace"), by="line")
    row = slow.row(by_predicate=pl.col("kind") == "data", named=True)
    assert (row["file"], row["line"]) == ("resnet50_profiler_api.py", 42)
    assert row["share"] == pytest.approx(0.323, abs=0.001)
    assert row["per_step"] == pytest.approx(56.7 * MS, abs=0.1 * MS)
    fast = critical_path(real("v100-2021-resnet50-workers4.pt.trace"))
    assert dict(fast.select("kind", "share").iter_rows())["data"] < 0.02


@pytest.mark.traces
@pytest.mark.parametrize("name", ["mi300-2025-resnet-ddp-recompute", "a100-2022-diff-control"])
def test_exchanges_are_named_where_steps_wait_for_them(
    real: Callable[[str], Trace], name: str
) -> None:
    found = critical_path(real(name))
    shares = dict(found.select("kind", "share").iter_rows())
    assert shares["communication"] > 0.1


@pytest.mark.traces
def test_a_host_that_never_waits_is_the_path(real: Callable[[str], Trace]) -> None:
    """The device is done 0.6 ms before each step ends, and no call waits for it."""
    trace = real("a100-2024-nccl-2ranks")
    assert (steps_with_counted_flags(trace)["lag"] < -500_000).all()
    assert critical_path(trace)["kind"].to_list() == ["host"]


@pytest.mark.traces
def test_the_replay_agrees_where_the_device_is_the_limit(real: Callable[[str], Trace]) -> None:
    """All kernels of the path at half their time save as much, those off it next to nothing."""
    trace = real("v100-2024-resnet-nanoseconds")
    replay = replay_of(trace)
    path = critical_path(trace, by="segment").filter(pl.col("kind") == "compute")
    steps = path["step"].n_unique()
    on = path["longest"].cast(pl.Int64).to_numpy()
    every = trace.device_args["id"].cast(pl.Int64).to_numpy()
    assert replay.saving(ScaleDeviceWork(on, kept_share=0.5)) == pytest.approx(
        path["time"].sum() / 2 / steps, rel=0.05
    )
    whole = steps_with_counted_flags(trace).filter("counted")
    inside = replay.graph.work.start >= whole["begin"].to_numpy().min()
    off = np.setdiff1d(np.intersect1d(every, replay.graph.work.id[inside]), on)
    assert replay.saving(ScaleDeviceWork(off, kept_share=0.5)) < 0.02 * replay.step_time()
