"""Why a device had nothing to do: each cause in a drawing, and what holds of all."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from selftime.analysis.device.device_work import device_work
from selftime.analysis.idle.gaps import IdleGapScope, observed_time_in_steps
from selftime.analysis.slice_filters import covered_time
from selftime.errors import UsageError
from selftime.intervals import clip, length, subtract, union
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.idle import idle
from selftime.views.overlap import overlap
from selftime.views.syncs import syncs

if TYPE_CHECKING:
    from tests.conftest import ReadReal
    from tests.views.conftest import Golden

US = 1_000


def rows(trace: Trace, *columns: str, **options: Any) -> list[tuple[Any, ...]]:
    return idle(trace, **options).select(columns).rows()


def test_nothing_recorded_has_no_gaps() -> None:
    assert idle(Trace()).is_empty()
    assert idle(sketch("cpu 1 | aaa")).is_empty(), "no device is known"
    assert idle(sketch("gpu 7 | aaa")).is_empty(), "it worked all the time"


def test_a_gap_is_told_by_what_lies_around_it_and_what_the_host_did() -> None:
    trace = sketch("""
        a = aten::mm; line = train.py:7 main
        b = aten::relu; line = train.py:8 main
        cpu 1  | aaa bbbbbbbbb
        call 1 |  k         m
        gpu 7  |   kkk       mmmm
    """)
    told = "cause", "duration", "start", "launched", "what", "line", "before", "after", "device"

    assert rows(trace, *told) == [
        ("dispatch", 70 * US, 50 * US, 110 * US, "aten::relu", 8, "k", "m", 0),
        ("runtime", 20 * US, 0, 10 * US, "k", 7, None, "k", 0),  # half of it in the call
    ]
    assert idle(trace)["share"].to_list() == pytest.approx([7 / 16, 2 / 16])


def test_what_several_streams_leave_is_idle() -> None:
    trace = sketch("""
        gpu 7   | kkk    kkk
        gpu 8   |  mmmm    mmm
        gpu 1.7 |     n  n
    """)

    assert rows(trace, "device", "stream", "start", "duration") == [
        (1, None, 0, 40 * US),
        (1, None, 80 * US, 40 * US),
        (0, None, 50 * US, 20 * US),
        (1, None, 50 * US, 20 * US),
    ]
    assert rows(trace, "device", "stream", "start", "duration", scope="stream") == [
        (0, 7, 30 * US, 40 * US),
        (0, 8, 50 * US, 40 * US),
        (1, 7, 50 * US, 20 * US),
    ]


GAP = """
    k = cudaLaunchKernel
    m = cudaLaunchKernel
    x = {name}
    {lane} 1 |      xxxxxxxx
    call 1 | k               m
    gpu 7  |  kkk             mmm
"""
"""Of a gap of 130 us, `x` holds 80."""


@pytest.mark.parametrize(
    ("cause", "lane", "name"),
    [
        ("profiler", "overhead", "Buffer Flush"),
        ("garbage_collection", "python", "Python GC"),
        ("compilation", "mark", "_compile.compile_inner (dynamo_timed)"),
        ("compilation", "python", "triton/compiler/compiler.py(226): compile"),
        ("kernel_loading", "overhead", "Lazy Function Loading"),
        ("kernel_loading", "call", "cuModuleLoadData"),
        ("data_loading", "mark", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("data_loading", "cpu", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("data_loading", "python", "torch/utils/data/dataloader.py(701): __next__"),
        ("checkpoint", "python", "torch/serialization.py(943): save"),
        ("logging", "python", "tqdm/std.py(1160): __iter__"),
        ("allocation", "call", "cudaMalloc"),
        ("allocation", "call", "hipFree"),
        ("sync", "call", "cudaDeviceSynchronize"),
        ("collective", "mark", "gloo:all_reduce"),
        ("collective", "cpu", "c10d::barrier"),
        ("optimizer", "mark", "Optimizer.step#AdamW.step"),
        ("runtime", "call", "cudaFuncGetAttributes"),
        ("dispatch", "cpu", "aten::mm"),
        ("python", "python", "train.py(3): step"),
        ("python", "mark", "my region"),
    ],
)
def test_causes(cause: str, lane: str, name: str) -> None:
    longest = idle(sketch(GAP.format(lane=lane, name=name)), by="gap").row(0, named=True)

    assert (longest["cause"], longest["duration"]) == (cause, 130 * US)
    assert longest["what"] == name


def test_of_a_thread_that_does_nothing_nothing_is_known() -> None:
    """Neither a step nor a thread that launches nothing says what the host did."""
    trace = sketch("""
        s = ProfilerStep#3
        mark 1 | sssssssssssssssssssss
        cpu 2  |      aaaaaaaa
        call 1 | k               m
        gpu 7  |  kkk             mmm
    """)

    assert rows(trace, "cause", "duration", "what")[0] == ("unknown", 130 * US, None)


def test_a_copy_from_pageable_memory_holds_the_host() -> None:
    trace = sketch("""
        x = Memcpy HtoD (Pageable -> Device)
        y = Memcpy HtoD (Pinned -> Device)
        call 1 | k       xxxxxxx
        gpu 7  |  kk
        copy 7 |                xxx
    """)

    assert rows(trace, "cause", "duration", "what")[0] == (
        "pageable_copy",
        120 * US,
        "Memcpy HtoD (Pageable -> Device)",
    )


def test_a_wait_is_to_blame_for_as_long_as_it_lasted() -> None:
    """Without it the host would have been so much earlier."""
    long = """
        s = cudaStreamSynchronize
        call 1 | k ssssssssss     m
        cpu 1  |             aaaaa
        gpu 7  |  kkkkkkkkkk       mm
    """
    short = """
        s = cudaStreamSynchronize
        call 1 | k         ss     m
        cpu 1  |             aaaaa
        gpu 7  |  kkkkkkkkkk       mm
    """
    early = """
        s = cudaStreamSynchronize
        call 1 | k            s   m
        cpu 1  |             aaaaa
        gpu 7  |  kkkkkkkkkk       mm
    """

    assert rows(sketch(long), "cause", "duration", "what")[0] == (
        "sync",
        70 * US,
        "cudaStreamSynchronize",
    )
    assert rows(sketch(short), "cause", "what")[0] == ("dispatch", "a")
    assert rows(sketch(early), "cause", "what")[0] == ("dispatch", "a"), "there was no work to do"


def test_the_more_specific_of_what_the_host_does_at_once_is_the_cause() -> None:
    trace = sketch("""
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
        f = train.py(3): main
        g = Python GC
        call 1   | k                  m
        mark 1   |     dddddddddd
        cpu 1    |     aaaaaaaaaa
        python 1 | ffffffffffffffffffffff
        python 1 |      gg
        gpu 7    |  kkk                mm
    """)

    assert rows(trace, "cause", "what", "file", "line")[0] == (
        "data_loading",
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        "train.py",
        3,
    )


def test_work_launched_before_the_gap_was_queued() -> None:
    drawing = """
        w = cudaStreamWaitEvent
        call 1 | k m {w}n
        gpu 7  |  k         nnn
        gpu 8  |   mmmmmmmm
    """
    waited = sketch(drawing.format(w="w "))
    untold = sketch(drawing.format(w=" "))
    gap = {"scope": "stream"}

    assert rows(waited, "cause", "stream", "duration", **gap) == [("other_stream", 7, 90 * US)]
    assert rows(untold, "cause", "stream", "duration", **gap) == [("queued", 7, 90 * US)]


def test_the_thread_that_launches_is_asked_first_then_the_one_that_launches_most() -> None:
    trace = sketch("""
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
        s = cudaStreamSynchronize
        call 1 | k k k           s
        mark 1 |       ddddddd
        cpu 2  |                bbbbbb
        call 2 |               m      n
        gpu 7  |  k k k         m      n
    """)

    assert rows(trace, "cause", "duration", "what", top=2) == [
        ("data_loading", 90 * US, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
        ("dispatch", 60 * US, "b"),
    ]


def test_gaps_that_any_two_kernels_have_between_them_are_summed() -> None:
    trace = sketch("""
        column = 1 us
        cpu 1 |   aaaaaaaaaaaaa
        gpu 7 | kkk kk  kk     m
    """)

    assert rows(trace, "cause", "duration") == [("dispatch", 5 * US)]
    assert rows(trace, "cause", "duration", "count", by="cause") == [
        ("dispatch", 5 * US, 1),
        ("kernel_gap", 3 * US, 2),
    ]
    assert rows(trace, "cause", "duration", threshold=0) == [
        ("dispatch", 5 * US),
        ("dispatch", 2 * US),
        ("dispatch", 1 * US),
    ]


def test_gaps_are_summed_by_line() -> None:
    trace = sketch("""
        a = aten::mm; line = train.py:7 main
        b = aten::relu; line = train.py:8 main
        cpu 1  | aaaabbbbaaaaaaaaa
        call 1 |    k   m        n
        gpu 7  |     k   m        nn
    """)
    told = "line", "duration", "count", "median", "longest", "start"

    assert rows(trace, *told, by="line") == [
        (7, 120 * US, 2, 60 * US, 80 * US, 90 * US),
        (8, 30 * US, 1, 30 * US, 30 * US, 50 * US),
    ]


def test_steps_bound_the_gaps() -> None:
    trace = sketch("""
        s = ProfilerStep#0
        t = ProfilerStep#1
        u = ProfilerStep#2
        mark 1 |    sssssttttttuuuuu
        call 1 | k   k     m     n       o
        gpu 7  |  k   kk    mm    nnnn    o
    """)

    assert rows(trace, "start", "duration") == [
        (70 * US, 40 * US),
        (130 * US, 40 * US),
        (30 * US, 20 * US),
    ]
    assert rows(trace, "start", "duration", counted=True) == [
        (130 * US, 40 * US),
        (80 * US, 30 * US),  # the first step does not count
    ]


def test_options_are_checked() -> None:
    with pytest.raises(UsageError, match="`threshold` is `-1`; write nanoseconds, 0 or more"):
        idle(Trace(), threshold=-1)


LETTERS = """
    s = cudaStreamSynchronize
    w = cudaStreamWaitEvent
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    g = Python GC
    p = ProfilerStep#1
    q = ProfilerStep#2
"""
LANES = ("mark 1", "cpu 1", "call 1", "python 1", "call 2", "cpu 2", "gpu 7", "gpu 8", "copy 1.7")


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Nested, overlapping slices on several threads, streams and devices."""
    drawn = draw(st.lists(st.tuples(st.sampled_from(LANES), st.text("swdgpqkm  ", max_size=20))))
    return sketch(LETTERS + "\n".join(f"{lane} | {text}" for lane, text in drawn))


def idle_time(trace: Trace) -> int:
    """What the union of a device's work leaves of the time looked at, of all devices."""
    work, when = device_work(trace), observed_time_in_steps(trace)
    return sum(length(subtract(when, covered_time(own))) for _, own in work.group_by("device"))


@given(traces())
def test_causes_add_up_to_idle(trace: Trace) -> None:
    every = idle(trace, threshold=0)

    assert every["duration"].sum() == idle_time(trace)
    assert idle(trace, by="cause", threshold=50_000)["duration"].sum() == idle_time(trace)
    assert idle(trace, by="line", threshold=50_000)["duration"].sum() == idle_time(trace)
    if trace.device_args.height:
        assert overlap(trace)["idle"].sum() == idle_time(trace)


@given(traces(), st.sampled_from(get_args(IdleGapScope)))
def test_no_gap_holds_work_and_no_two_overlap(trace: Trace, scope: IdleGapScope) -> None:
    keys = ["device"] if scope == "device" else ["device", "stream"]
    work = device_work(trace)
    table = idle(trace, scope=scope, threshold=0)
    for place, own in table.group_by(keys):
        mine = pl.all_horizontal(
            pl.col(key).eq_missing(pl.lit(value)) for key, value in zip(keys, place, strict=True)
        )
        busy = covered_time(work.filter(mine))
        start = own["start"].to_numpy()
        free = union(start, start + own["duration"].to_numpy())
        assert length(free) == own["duration"].sum()
        assert length(subtract(free, busy)) == length(free)


@given(traces())
def test_streams_add_up_to_no_less_than_the_device(trace: Trace) -> None:
    for _, own in device_work(trace).group_by("device"):
        device = covered_time(own)
        streams = sum(length(covered_time(each)) for _, each in own.group_by("stream"))
        assert streams >= length(device)
        if device.starts.size:
            assert length(device) <= int(device.ends[-1] - device.starts[0])
            assert length(clip(device, 0, int(device.ends[-1]))) == length(device)


@given(traces(), st.integers(0, 3))
def test_what_a_trace_lacks_is_borne(trace: Trace, every: int) -> None:
    """Slices that never end, work of no device, calls and work without arguments."""
    holes = pl.int_range(pl.len()) % 4 == every
    slices = trace.slices.with_columns(
        pl.when(~holes).then("duration").alias("duration"),
        pl.when(~holes.reverse()).then("launch").alias("launch"),
    )
    bare = replace(
        trace,
        slices=slices,
        device_args=trace.device_args.filter(~holes),
        call_args=trace.call_args.filter(holes),
        tracks=trace.tracks.with_columns(device=None, stream=None).cast(trace.tracks.schema),
    )
    for scope in get_args(IdleGapScope):
        assert (idle(bare, scope=scope)["duration"] > 0).all()
    assert idle(bare, by="cause")["duration"].sum() == idle_time(bare)
    assert overlap(bare, by="step")["window"].is_not_null().all()
    assert syncs(bare)["wait"].is_not_null().all()


@pytest.mark.traces
def test_causes_add_up_to_idle_in_every_trace(real: "ReadReal", real_names: list[str]) -> None:
    for name in real_names:
        trace = real(name)
        assert idle(trace, by="cause")["duration"].sum() == idle_time(trace), name
        streams = idle(trace, by="cause", scope="stream")
        assert (
            streams["duration"].sum() == idle(trace, scope="stream", threshold=0)["duration"].sum()
        ), name


@pytest.mark.traces
def test_a_starved_device_waited_for_data(real: "ReadReal") -> None:
    table = idle(real("v100-2021-resnet50-workers0.pt.trace"), by="cause")

    loading = table.row(0, named=True)
    assert (loading["cause"], loading["duration"], loading["line"]) == (
        "data_loading",
        354_290 * US,
        42,
    )
    assert loading["share"] == pytest.approx(0.332, abs=0.001)
    assert loading["count"] == 6, "once a step"


@pytest.mark.traces
@pytest.mark.parametrize("name", ["h100-2025-qwen-0.5b", "v100-2024-resnet-nanoseconds"])
def test_a_busy_device_waited_for_nothing(real: "ReadReal", name: str) -> None:
    table = idle(real(name), by="cause").filter(pl.col("cause") != "kernel_gap")

    assert table["share"].max() < 0.02  # type: ignore[operator]  # a number


@pytest.mark.traces
def test_idle_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(idle, idle(real("v100-2021-resnet50-workers0.pt.trace"), by="line"))


@pytest.mark.traces
def test_gaps_of_a_real_trace(real: "ReadReal", golden: "Golden") -> None:
    golden(idle, idle(real("h100-2025-vit"), top=5))
