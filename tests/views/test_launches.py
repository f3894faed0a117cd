"""The table of launches, and the queues that they join."""

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from selftime.analysis.device.launch_queues import launches_with_queue_delays
from selftime.analysis.steps.bound_by import step_bounds
from selftime.errors import UsageError
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.launches import launches

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000
LAUNCH = "cudaLaunchKernel"

QUEUE = f"""
    k = {LAUNCH}
    m = {LAUNCH}
    n = {LAUNCH}
    s = {LAUNCH}
    o = aten::mm; line = train.py:7 main
    p = aten::relu; line = train.py:8 main
    cpu 1  | ooooo pppp         pp
    call 1 | k m    n           s
    gpu 7  |  kkkkkkmmmmmnn       ssss
"""
"""`m` and `n` wait for earlier work; `s` finds the stream idle."""


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return launches(trace, **options).select(columns).rows()


def of_each(trace: Trace, *columns: str) -> list[tuple[Any, ...]]:
    return launches_with_queue_delays(trace).select(columns).rows()


def test_nothing_launched() -> None:
    assert launches(Trace()).is_empty()
    assert launches(sketch("gpu 7 | kk\ncpu 1 | aa")).is_empty()


def test_a_delay_is_queued_or_exposed() -> None:
    assert of_each(sketch(QUEUE), "depth", "delay", "queued", "exposed") == [
        (None, 10 * US, None, None),
        (1, 50 * US, 50 * US, 0),
        (1, 50 * US, 50 * US, 0),
        (0, 20 * US, 0, 20 * US),
    ]


def test_tells_cost_and_delay_of_calls() -> None:
    cost = ("call", "count", "host_time", "work", "device_time", "onto_idle", "exposed")
    assert rows(sketch(QUEUE), *cost) == [
        (LAUNCH, 4, 40 * US, 4, 170 * US, 1 / 3, 20 * US),
    ]
    delay = ("delay_median", "delay_p95", "delay_max", "depth_median", "depth_max")
    assert rows(sketch(QUEUE), *delay) == [(35 * US, 50 * US, 50 * US, 1, 1)]


def test_rows_are_what_is_asked() -> None:
    trace = sketch(QUEUE)
    assert rows(trace, "operator", "line", "count", by="operator") == [
        ("aten::mm", 7, 2),
        ("aten::relu", 8, 2),
    ]
    assert rows(trace, "line", "count", by="line", top=1) == [(7, 2)]
    assert rows(trace, "kernel", "start", by="kernel") == [
        ("cudaLaunchKernel", 0),
        ("cudaLaunchKernel", 70 * US),
    ]
    assert rows(trace, "device", "stream", "operator", by="stream") == [(0, 7, None)]
    assert rows(trace, "start", "longest", by="launch", top=2) == [(0, 1), (20 * US, 3)]
    with pytest.raises(UsageError, match="`top` is `-1`"):
        launches(trace, top=-1)


def test_streams_have_queues_of_their_own() -> None:
    trace = sketch("""
        call 1  | k m n o p
        gpu 7   |  kkkkkk
        gpu 8   |    mm    pp
        gpu 1.7 |     nnno
    """)
    # `n` is not done when `o` joins its queue; `m` is when `p` joins its own.
    assert of_each(trace, "stream", "device", "depth") == [
        (7, 0, None),
        (8, 0, None),
        (7, 1, None),
        (7, 1, 1),
        (8, 0, 0),
    ]


def test_work_without_a_launch_keeps_its_place_in_the_queue() -> None:
    trace = sketch("""
        call 1 |  k
        gpu 7  | aaaabbbkkk
    """)
    assert of_each(trace, "depth", "delay", "queued", "exposed") == [(2, 60 * US, 60 * US, 0)]


def test_work_that_begins_before_earlier_work_ends_is_not_exposed() -> None:
    trace = sketch("""
        p = cudaLaunchKernelExC
        call 1 | k p
        gpu 7  |  kkkkkk
        gpu 7  |     ppp
    """)
    assert of_each(trace, "depth", "delay", "queued", "exposed")[1] == (1, 20 * US, 20 * US, 0)


def test_work_before_its_call_has_no_delay() -> None:
    trace = sketch("""
        call 1 |   kk    m
        gpu 7  |  kk       m
    """)
    columns = ("count", "began_before_launch", "delay_median", "exposed")
    assert rows(trace, *columns, by="launch") == [
        (1, 1, None, None),
        (1, 0, 20 * US, 20 * US),
    ]
    assert rows(trace, "call", *columns) == [
        ("k", *(1, 1, None, None)),
        ("m", 1, 0, 20 * US, 20 * US),
    ]


def test_a_graph_is_one_launch_of_all_its_work() -> None:
    trace = sketch(f"""
        g = cudaGraphLaunch
        a = gemm; launched_by = g
        b = relu; launched_by = g
        k = {LAUNCH}
        call 1 | ggg k
        gpu 7  |   aaabbkk
        gpu 8  |     aa
    """)
    columns = ("call", "work", "device_time", "depth_max", "kernel")
    assert rows(trace, *columns, by="launch") == [
        ("cudaGraphLaunch", 3, 70 * US, None, None),
        (LAUNCH, 1, 20 * US, 1, LAUNCH),
    ]


def test_counts_calls_that_took_longer_than_their_work() -> None:
    trace = sketch("call 1 | kkk mm nn\ngpu 7 |   kk mm nnn")
    assert rows(trace, "call", "longer_than_work") == [("k", 1), ("m", 0), ("n", 0)]


def test_counts_calls_without_work() -> None:
    trace = sketch(f"""
        k = {LAUNCH}
        l = {LAUNCH}
        f = cudaMemsetAsync
        e = cudaEventRecord
        call 1 | k l f e
        gpu 7  |  kk
    """)
    assert rows(trace, "call", "count", "without_work") == [(LAUNCH, 2, 1)]


def test_calls_captured_into_a_graph_run_nothing() -> None:
    trace = sketch(f"""
        b = cudaStreamBeginCapture
        e = cudaStreamEndCapture
        k = {LAUNCH}
        m = {LAUNCH}
        call 1 | k b m m e
        gpu 7  |  kk
    """)
    assert rows(trace, "count", "without_work") == [(1, 0)]


def test_a_full_queue_holds_the_host() -> None:
    trace = crowded(1_100)
    found = launches(trace)
    assert found.select("count", "full", "depth_max").rows() == [(1_100, 100, 1_099)]
    # 99 of these calls took 50 us, where those that found room took 1 us
    assert found["blocked"].to_list() == [99 * 49 * US]


def crowded(count: int) -> Trace:
    """Calls of 1 us, and of 50 us once 1,000 kernels wait, onto a stream that does not end."""
    trace = sketch("k = cudaLaunchKernel\ncall 1 | k\ngpu 7 |  k")
    place = np.arange(count)
    host = np.where(place > 1_000, 50 * US, US)
    start = np.cumsum(host) - host
    later = int(start[-1]) + place * 10_000
    ids = pl.DataFrame({"id": np.arange(2 * count, dtype=np.uint32)})
    one = trace.slices
    slices = pl.concat([one[:1]] * count + [one[1:]] * count).with_columns(
        ids["id"],
        start=pl.Series(np.append(start, later + 10_000_000)),
        duration=pl.Series(np.append(host, np.full(count, 5_000))),
        launch=pl.Series([None] * count + list(range(count)), dtype=pl.UInt32),
    )
    args = pl.concat([trace.device_args] * count).with_columns(
        id=pl.Series(np.arange(count, 2 * count), dtype=pl.UInt32)
    )
    return Trace(slices=slices, tracks=trace.tracks, device_args=args)


def test_keeps_what_counted_steps_launched() -> None:
    trace = sketch("""
        1 = ProfilerStep#1
        2 = ProfilerStep#2
        3 = ProfilerStep#3
        mark 1 | 111112222233333
        call 1 |  k    k    k
        gpu 7  |   kk   kk   kk
    """)
    assert rows(trace, "count") == [(3,)]
    assert rows(trace, "count", counted=True) == [(2,)]


def test_calls_whose_end_is_unknown_have_no_time() -> None:
    trace = sketch("call 1 | k\ngpu 7 |  k")
    slices = trace.slices.with_columns(
        duration=pl.when(pl.col("id") > 0).then("duration").otherwise(None)
    )
    cut = Trace(slices=slices, tracks=trace.tracks, device_args=trace.device_args)
    assert rows(cut, "count", "host_time", "host_median", "longer_than_work") == [(1, 0, None, 0)]


@st.composite
def drawings(draw: st.DrawFn) -> Trace:
    """Calls in a row on two threads, and their work, in order, on some streams."""
    calls = draw(st.lists(st.sampled_from("kmn"), min_size=1, max_size=12))
    lanes: dict[str, list[str]] = {f"gpu {stream}": [] for stream in (7, 8)}
    ends = dict.fromkeys(lanes, 0)
    for place, letter in enumerate(calls):
        lane = draw(st.sampled_from(sorted(lanes)))
        begin = max(ends[lane], 2 * place) + draw(st.integers(0, 4))
        width = draw(st.integers(1, 6))
        lanes[lane].append(" " * (begin - ends[lane]) + letter * width)
        ends[lane] = begin + width
    text = "\n".join(f"{lane} | {''.join(drawn)}" for lane, drawn in lanes.items())
    return sketch(f"call 1 | {' '.join(calls)}\n{text}")


@given(drawings())
def test_delays_are_the_sum_of_their_parts(trace: Trace) -> None:
    found = launches_with_queue_delays(trace)
    known = found.filter(pl.col("exposed").is_not_null())
    assert (known["queued"] + known["exposed"] == known["delay"]).all()
    assert (known["exposed"] >= 0).all()
    assert (known["queued"] >= 0).all()
    assert (known.filter(pl.col("depth") == 0)["queued"] == 0).all()


@given(drawings())
def test_depths_are_those_counted_one_by_one(trace: Trace) -> None:
    found = launches_with_queue_delays(trace).filter(pl.col("depth").is_not_null())
    work = trace.slices.filter(pl.col("launch").is_not_null()).sort("track", "start")
    for first, depth, start in found.select("first", "depth", "start").rows():
        own = work.filter(pl.col("id") == first)
        earlier = work.filter(
            (pl.col("track") == own["track"][0]) & (pl.col("start") < own["start"][0])
        )
        ends = earlier["start"] + earlier["duration"]
        assert depth == (ends > start).sum()


@given(drawings())
def test_rows_add_up_to_all_launches(trace: Trace) -> None:
    device = trace.slices.filter(pl.col("launch").is_not_null())
    tables = [
        launches(trace, by=by) for by in ("call", "operator", "line", "kernel", "stream", "launch")
    ]
    for table in tables:
        assert table["work"].sum() == device.height
        assert table["device_time"].sum() == device["duration"].sum()
        assert table["count"].sum() == device["launch"].n_unique()
        assert_frame_equal(
            table.select(pl.col("exposed", "host_time", "longer_than_work").sum()),
            tables[0].select(pl.col("exposed", "host_time", "longer_than_work").sum()),
        )


@pytest.mark.traces
def test_launches_of_every_real_trace(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        table = launches(trace, by="launch")
        linked = trace.slices.filter(pl.col("launch").is_not_null())
        assert table["work"].sum() == linked.height, name
        assert table.filter(pl.col("work") > 0).height == linked["launch"].n_unique(), name
        assert (table["exposed"].drop_nulls() >= 0).all(), name
        assert (table["queued_median"].drop_nulls() >= 0).all(), name


@pytest.mark.traces
def test_idle_launches_are_those_of_the_regime(real: "ReadReal", real_names: list[str]) -> None:
    compared = []
    for name in real_names:
        trace = real(name)
        table = launches(trace, by="launch")
        if table["work"].max() == 1:  # the regime counts work, not calls
            assert table["onto_idle"].mean() == step_bounds(trace).idle_launch_share, name
            compared.append(name)
    assert compared


@pytest.mark.traces
def test_launches_of_a_trace_that_fills_its_queue(real: "ReadReal", golden: "Golden") -> None:
    golden(launches, launches(real("v100-2024-resnet-nanoseconds")))


@pytest.mark.traces
def test_launches_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(launches, launches(real("h100-2025-vit"), by="kernel", top=12))
