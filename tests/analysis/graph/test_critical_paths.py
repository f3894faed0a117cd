"""The path back from the end of each step, in drawings whose path is plain, and in any drawing."""

from dataclasses import replace

import polars as pl
import pytest
from hypothesis import given
from tests.analysis.graph.drawn import traces

from selftime.analysis.graph.critical_path import PATH_SEGMENTS_SCHEMA, critical_path_segments
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.testing import sketch
from selftime.trace import Trace

COLUMN = 10_000
Path = list[tuple[str, str | None, int, int, str]]


def path(drawing: str, step: int | None = None) -> Path:
    """Kind, name, begin and end in columns, and link of the segments of a step, or the first."""
    found = critical_path_segments(sketch(drawing))
    found = found.filter(pl.col("step") == (found["step"].first() if step is None else step))
    rows = found.select("kind", pl.col("name").cast(pl.String), "start", "end", "link").rows()
    return [(kind, name, a // COLUMN, b // COLUMN, link) for kind, name, a, b, link in rows]


def test_a_trace_without_anything() -> None:
    found = critical_path_segments(Trace())
    assert found.is_empty()
    assert dict(found.schema) == PATH_SEGMENTS_SCHEMA


def test_a_host_that_waits_for_nothing_is_the_path() -> None:
    found = path("""
        mark 1 | ssssssssssss
        cpu 1  | aaaa  bbbb
        call 1 |   k     m
        gpu 7  |    kk    mm
        s = ProfilerStep#1
        a = aten::mm
        b = aten::add
    """)
    assert found == [
        ("host", "aten::mm", 0, 4, "begin"),
        ("host", None, 4, 6, "host"),
        ("host", "aten::add", 6, 10, "host"),
        ("host", None, 10, 12, "host"),
    ]


def test_launches_one_after_the_other_are_the_path_of_small_kernels() -> None:
    found = path("""
        mark 1 | ssssssssssss
        cpu 1  | aaaabbbbcccc
        call 1 |   k   m   n
        gpu 7  |    k   m   nnn
        s = ProfilerStep#1
        a = aten::a
        b = aten::b
        c = aten::c
    """)
    assert found == [
        ("host", "aten::a", 0, 4, "begin"),
        ("host", "aten::b", 4, 8, "host"),
        ("host", "aten::c", 8, 10, "host"),
        ("latency", "n", 10, 11, "launch"),
        ("compute", "n", 11, 14, "launch"),
    ]


def test_a_device_that_lags_is_the_path() -> None:
    found = path("""
        mark 1 | ssssssss
        call 1 |   k m n
        gpu 7  |    kkkkkkmmmm nnnn
        s = ProfilerStep#1
    """)
    assert found == [
        ("host", None, 0, 2, "begin"),
        ("latency", "k", 2, 3, "launch"),
        ("compute", "k", 3, 9, "launch"),
        ("compute", "m", 9, 13, "stream"),
        ("latency", "n", 13, 14, "stream"),
        ("compute", "n", 14, 18, "stream"),
    ]


@pytest.mark.parametrize("call", ["cudaStreamSynchronize", "cudaDeviceSynchronize"])
def test_a_wait_in_the_middle_leads_to_the_work_that_ended_it(call: str) -> None:
    found = path(f"""
        mark 1 | sssssssssssssssssss
        call 1 |  k  yyyyyyyyyy  m
        gpu 7  |   kkkkkkkkkkk    mm
        s = ProfilerStep#1
        y = {call}
    """)
    assert found == [
        ("host", None, 0, 1, "begin"),
        ("latency", "k", 1, 2, "launch"),
        ("compute", "k", 2, 13, "launch"),
        ("host", call, 13, 14, "wait"),
        ("host", None, 14, 16, "host"),
        ("host", "m", 16, 17, "host"),
        ("host", None, 17, 19, "host"),
    ]


def test_a_wait_for_what_was_done_already_holds_nothing() -> None:
    found = path("""
        mark 1 | ssssssssssss
        call 1 |  k     yy
        gpu 7  |   kkk
        s = ProfilerStep#1
        y = cudaDeviceSynchronize
    """)
    assert {kind for kind, *_ in found} == {"host"}


def test_a_copy_to_pageable_memory_holds_the_host() -> None:
    found = path("""
        mark 1 | ssssssssssssssss
        call 1 |  k  cccccccccc
        gpu 7  |   kkkkkkk
        copy 7 |          ccc
        s = ProfilerStep#1
        c = Memcpy DtoH (Device -> Pageable)
    """)
    assert [row for row in found if row[0] in {"compute", "copy"}] == [
        ("compute", "k", 2, 9, "launch"),
        ("copy", "Memcpy DtoH (Device -> Pageable)", 9, 12, "stream"),
    ]


def test_a_stall_of_data_loading_is_named() -> None:
    found = path("""
        mark 1 | sssssssssssssss
        mark 1 |  dddddddd
        call 1 |          k
        gpu 7  |           kkkkkk
        s = ProfilerStep#1
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
    """)
    assert [(kind, end - start) for kind, _, start, end, _ in found] == [
        ("host", 1),
        ("data", 8),
        ("latency", 1),
        ("compute", 6),
    ]


def test_garbage_collection_within_loading_is_its_own() -> None:
    found = path("""
        mark 1   | ssssssssss
        mark 1   | dddddddd
        python 1 |   gggg
        s = ProfilerStep#1
        d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__
        g = Python GC
    """)
    assert [(kind, start, end) for kind, _, start, end, _ in found] == [
        ("data", 0, 2),
        ("gc", 2, 6),
        ("data", 6, 8),
        ("host", 8, 10),
    ]


BACKWARD = """
    mark 1 | ssssssssssssssssss
    cpu 1  | aaaa        cccc
    call 1 |  k           m
    cpu 2  |     bbbbbbb
    call 2 |      n
    gpu 7  |   k   nn      mmmmm
    s = ProfilerStep#1
    a = aten::a
    b = autograd::engine::evaluate_function: B
    c = aten::c
"""


def test_a_backward_thread_takes_its_turn() -> None:
    assert path(BACKWARD) == [
        ("host", "aten::a", 0, 4, "begin"),
        ("host", "autograd::engine::evaluate_function: B", 4, 11, "thread"),
        ("host", None, 11, 12, "host"),
        ("host", "aten::c", 12, 13, "thread"),
        ("latency", "m", 13, 14, "launch"),
        ("compute", "m", 14, 19, "launch"),
    ]


def test_a_thread_beside_the_others_comes_from_the_main_one() -> None:
    """It launches while the main one works, so that they take no turns; before that it had none."""
    found = path("""
        mark 1 | ssssssssssssssssss
        cpu 1  | aaaaaaaabbbbbbbb
        call 1 |  kkkkkkkk
        cpu 2  |       cccc
        call 2 |         n
        gpu 7  |           nnnnnnnnnn
        s = ProfilerStep#1
        a = aten::a
        b = aten::b
        c = aten::c
    """)
    assert found == [
        ("host", "aten::a", 0, 6, "begin"),
        ("host", "aten::c", 6, 8, "thread"),
        ("latency", "n", 8, 10, "launch"),
        ("compute", "n", 10, 20, "launch"),
    ]


def test_a_launch_onto_a_full_queue_waits_for_room() -> None:
    """Over 1,000 launches are ahead of `b`; work of stream 7 ends as it returns."""
    count = 1112
    found = path(f"""
        mark 1 | {"s" * (count + 60)}
        call 1 | {"km" * (count // 2)}{"b" * 40} z
        gpu 7  |   {("k" * 10 + "m" * 10) * (count // 2)}bb
        gpu 8  | {" " * (count + 42)}{"z" * 20 * count}
        s = ProfilerStep#1
    """)
    assert [(kind, name, start, end) for kind, name, start, end, _ in found[-4:]] == [
        ("compute", "k", 1142, 1152),
        ("host", None, 1152, 1153),
        ("latency", "z", 1153, 1154),
        ("compute", "z", 1154, 1154 + 20 * count),
    ]


TWO_STREAMS = """
    mark 1 | sssssssssss
    call 1 | k{wait} m
    gpu 7  |  kkkkkkkkkkkk
    gpu 8  |              mmmm
    s = ProfilerStep#1
    w = cudaStreamWaitEvent
"""


@pytest.mark.parametrize("wait", [" w", "  "])
def test_work_that_begins_when_that_of_another_stream_ends_waited_for_it(wait: str) -> None:
    assert path(TWO_STREAMS.format(wait=wait)) == [
        ("latency", "k", 0, 1, "launch"),
        ("compute", "k", 1, 13, "launch"),
        ("compute", "m", 13, 17, "inferred"),
    ]


RECORDED = """
    mark 1 | ssssssssssss
    call 1 | k r  nw  m
    gpu 7  |  kkkkkkkkknnnn
    gpu 9  |  xxxxxxxxxxx
    gpu 8  |              mmmm
    sync 8 |       w
    s = ProfilerStep#1
    r = cudaEventRecord
    w = Stream Wait Event; kind = Stream Wait Event; device = 0; stream = 8; waits_on_stream = 7; \
correlation = 5; recorded_by = 3
"""


def test_a_recorded_event_tells_which_work_was_waited_for() -> None:
    """Stream 9 ended later and stream 7 went on: the event was recorded after `k` alone."""
    trace = sketch(RECORDED)
    calls = trace.slices.filter(pl.col("category") == "cuda_runtime")
    named = {calls["name"].cast(pl.String)[n]: calls["id"][n] + 1 for n in range(calls.height)}
    sync = trace.sync_args.with_columns(
        correlation=pl.lit(named["Stream Wait Event"], pl.Int64),
        recorded_by=pl.lit(named["cudaEventRecord"], pl.Int64),
    )
    found = (
        critical_path_segments(replace(trace, sync_args=sync))
        .select(pl.col("name").cast(pl.String), "kind", "link")
        .rows()
    )
    assert found[-2:] == [("m", "unknown", "event"), ("m", "compute", "event")]
    assert found[-3] == ("k", "compute", "launch")


def test_a_wait_for_what_the_trace_does_not_tell_is_unknown() -> None:
    found = path("""
        mark 1 | ssssss
        call 1 | k  m
        gpu 7  |  kkkk        mmmm
        s = ProfilerStep#1
    """)
    assert found[-2:] == [("unknown", "m", 5, 13, "stream"), ("compute", "m", 13, 17, "stream")]


def test_device_work_alone_has_no_host_to_lead_to() -> None:
    assert path("gpu 7 | kkk       m") == [
        ("compute", "k", 0, 3, "unknown"),
        ("unknown", "m", 3, 10, "stream"),
        ("compute", "m", 10, 11, "stream"),
    ]


COLLECTIVE = """
    mark 1 | ssssssssss
    call 1 | k n m  o
    gpu 7  |  kkkkkmmmm{gap}oooo
    gpu 20 |       {exchange}
    s = ProfilerStep#1
    n = ncclDevKernel_AllReduce
"""


def test_an_exchange_that_nothing_hides_is_on_the_path() -> None:
    found = path(COLLECTIVE.format(gap="    ", exchange="nnnnnnnn"))
    assert [(kind, name) for kind, name, *_ in found] == [
        ("latency", "k"),
        ("compute", "k"),
        ("communication", "ncclDevKernel_AllReduce"),
        ("compute", "o"),
    ]


def test_an_exchange_that_work_hides_is_not() -> None:
    found = path(COLLECTIVE.format(gap="", exchange="nnn"))
    assert [name for kind, name, *_ in found if kind != "latency"] == ["k", "m", "o"]


def test_an_exchange_of_the_host_holds_the_idle_main_thread() -> None:
    found = path("""
        mark 1 | ssssssssssssss
        cpu 1  | aaa         bb
        mark 2 |    gggggggg
        s = ProfilerStep#1
        a = aten::a
        b = aten::b
        g = gloo:all_reduce
    """)
    assert found == [
        ("host", "aten::a", 0, 3, "begin"),
        ("communication", "gloo:all_reduce", 3, 11, "host"),
        ("host", None, 11, 12, "wait"),
        ("host", "aten::b", 12, 14, "host"),
    ]


def test_a_step_begins_when_the_one_before_was_done() -> None:
    drawing = """
        mark 1 | sssssssstttttttt
        call 1 | k       m
        gpu 7  |  kkkkkkkkkkkkmmmmmm
        s = ProfilerStep#1
        t = ProfilerStep#2
    """
    assert path(drawing, 1)[-1] == ("compute", "k", 1, 13, "launch")
    assert path(drawing, 2) == [("compute", "m", 13, 19, "stream")]


def test_a_launch_whose_end_is_unknown_leaves_no_hole() -> None:
    """Its thread has nothing else, so that it is part of nothing."""
    trace = sketch("""
        mark 1 | sssssssss
        call 1 | k
        call 2 |     m
        gpu 7  |  kk  mmmmmmm
        s = ProfilerStep#1
    """)
    unended = pl.when(pl.col("name").cast(pl.String) == "m", pl.col("category") == "cuda_runtime")
    slices = trace.slices.with_columns(
        duration=unended.then(None).otherwise(pl.col("duration")).cast(pl.Int64)
    )
    found = (
        critical_path_segments(replace(trace, slices=slices)).select("kind", "start", "end").rows()
    )
    assert [(kind, a // COLUMN, b // COLUMN) for kind, a, b in found] == [
        ("host", 0, 1),
        ("host", 1, 4),
        ("latency", 4, 5),
        ("compute", 5, 12),
    ]


@given(traces())
def test_segments_fill_each_step_without_gap_or_overlap(trace: Trace) -> None:
    steps = steps_with_counted_flags(trace).filter(pl.col("done") > pl.col("begin"))
    found = critical_path_segments(trace)
    assert (found["end"] > found["start"]).all()
    own = found.with_columns(
        at=pl.lit(steps["begin"]).search_sorted(pl.col("start"), side="right") - 1
    )
    assert own["at"].n_unique() == steps.height
    for (at,), segments in own.group_by("at"):
        assert segments["start"].to_list() == [steps["begin"][at], *segments["end"].to_list()[:-1]]
        assert segments["end"][-1] == steps["done"][at]
        assert segments["step"].unique().to_list() == [steps["number"][at]]


@given(traces())
def test_a_segment_of_device_work_lies_within_it(trace: Trace) -> None:
    found = critical_path_segments(trace).filter(
        pl.col("kind").is_in(["compute", "communication", "copy"])
    )
    slices = trace.slices[found["slice"].to_list()]
    assert (found["start"] >= slices["start"]).all()
    assert (found["end"] <= slices["start"] + slices["duration"]).all()


@given(traces())
def test_a_program_without_a_device_has_only_segments_of_its_host(trace: Trace) -> None:
    if not trace.device_args.height:
        kinds = set(critical_path_segments(trace)["kind"].to_list())
        assert kinds <= {"host", "data", "gc", "communication"}
