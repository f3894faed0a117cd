"""What the replay moves when something becomes faster: what depended on it, and nothing else."""

from dataclasses import replace

import polars as pl

from selftime.advice.replay import CutHostTime, ScaleDeviceWork, replay_of
from selftime.intervals import union
from selftime.testing import sketch
from selftime.trace import Trace

US = 1_000

RECORDED = """
    mark 1 | ssssssssssssssss
    call 1 | k rx{other} w m
    gpu 7  |  kkkkkkkkkkkkkkkkkk
    gpu 9  |     xxxxxxxxxxxxxxxx
    gpu 8  |                      mmmmmmmm
    sync 8 |       w
    {more}
    s = ProfilerStep#1
    r = cudaEventRecord
    q = cudaEventRecord
    w = Stream Wait Event; kind = Stream Wait Event; device = 0; stream = 8; waits_on_stream = 7; \
correlation = 5; recorded_by = 3
    v = Stream Wait Event; kind = Stream Wait Event; device = 0; stream = 8; waits_on_stream = 9; \
correlation = 5; recorded_by = 3
"""


def recorded(drawing: str) -> Trace:
    """The drawing, whose records of waits name the calls of that name and of the event's record."""
    trace = sketch(drawing)
    calls = trace.slices.filter(pl.col("category") == "cuda_runtime")
    by_name: dict[str, list[int]] = {}
    for number, name in calls.select("id", pl.col("name").cast(pl.String)).iter_rows():
        by_name.setdefault(name, []).append(number + 1)
    records = by_name["cudaEventRecord"]
    sync = trace.sync_args.sort("waits_on_stream").with_columns(
        correlation=pl.lit(by_name["Stream Wait Event"][0], pl.Int64),
        recorded_by=pl.Series(records[: trace.sync_args.height], dtype=pl.Int64),
    )
    return replace(trace, sync_args=sync)


def kernels(trace: Trace, name: str) -> ScaleDeviceWork:
    """The kernels of that name at half their time."""
    is_kernel = (pl.col("category") == "kernel") & (pl.col("name").cast(pl.String) == name)
    return ScaleDeviceWork(trace.slices.filter(is_kernel)["id"].cast(pl.Int64).to_numpy(), 0.5)


def between(begin: int, end: int) -> CutHostTime:
    """The host's time between two columns of a drawing."""
    return CutHostTime(union([begin * 10 * US], [end * 10 * US]))


def test_work_waits_for_what_is_recorded_and_not_for_what_ends_just_before() -> None:
    """`m` waits for `k`; `x` ends later, 10 us before `m` begins, and has nothing to do with it."""
    replay = replay_of(trace := recorded(RECORDED.format(other="  ", more="")))
    assert replay.program_time() == 290 * US
    assert replay.program_time(kernels(trace, "x")) == 290 * US
    assert replay.program_time(kernels(trace, "k")) == 200 * US
    assert replay.graph.stream_waits.is_recorded.tolist() == [True]


def test_work_waits_for_all_that_is_recorded() -> None:
    """It waits for both streams: `k` at half its time saves nothing while `x` takes as long."""
    two = RECORDED.format(other=" q", more="sync 8 |         v")
    replay = replay_of(trace := recorded(two))
    assert replay.graph.stream_waits.is_recorded.tolist() == [True, True]
    assert replay.program_time(kernels(trace, "k")) == 290 * US
    assert replay.program_time(kernels(trace, "x")) < 290 * US
    both = replay.program_time(kernels(trace, "k"), kernels(trace, "x"))
    assert both < replay.program_time(kernels(trace, "x"))


def test_what_comes_after_removed_work_still_waits_for_other_streams() -> None:
    """`m` and `n` come after `k`: without `m` it is `n` that begins when `k` is done."""
    drawing = """
        mark 1 | ssssssss
        call 1 | k r w mn
        gpu 7  |  kkkkkkkkkkkkkkkkkk
        gpu 8  |                    mmmmnnnn
        sync 8 |     w
        s = ProfilerStep#1
        r = cudaEventRecord
        w = Stream Wait Event; kind = Stream Wait Event; device = 0; stream = 8; \
waits_on_stream = 7; correlation = 5; recorded_by = 3
    """
    trace = recorded(drawing)
    gone = replace(kernels(trace, "m"), kept_share=0.0)
    assert replay_of(trace).program_time(gone) == (190 + 40) * US


BESIDE = """
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
"""


def test_a_thread_beside_the_main_one_begins_earlier_if_the_main_one_comes_there_earlier() -> None:
    replay = replay_of(sketch(BESIDE))
    assert replay.graph.thread_count == 2
    assert replay.program_time() == 200 * US
    assert replay.program_time(between(0, 1)) == 190 * US  # before its call the main one works
    assert replay.program_time(between(6, 8)) == 180 * US  # its own work


COLLECTIVE = """
    mark 1 | ssssssssssssss
    cpu 1  | aaa         bb
    mark 2 |    gggggggg
    s = ProfilerStep#1
    a = aten::a
    b = aten::b
    g = gloo:all_reduce
"""


def test_the_main_thread_goes_on_when_a_collective_of_another_is_over() -> None:
    replay = replay_of(sketch(COLLECTIVE))
    assert replay.program_time() == 140 * US
    assert replay.program_time(between(3, 11)) == 60 * US  # the collective itself
    assert replay.program_time(between(0, 3)) == 110 * US  # what comes before it
    assert replay.program_time(between(11, 14)) == 110 * US  # what comes after it


def test_a_collective_beside_work_of_the_main_thread_holds_nothing() -> None:
    busy = COLLECTIVE.replace("aaa         bb", "aaaaaaaaaaaabb")
    replay = replay_of(sketch(busy))
    assert replay.program_time(between(0, 3)) == 110 * US
    assert not replay.graph.calls.awaited_call[replay.graph.calls.thread == 0].max() >= 0


def test_calls_within_each_other_lose_no_more_than_the_time_that_is_cut() -> None:
    replay = replay_of(
        sketch("""
        mark 1 | ssssssssssssssss
        call 1 | kkkkkkkkkk
        call 1 |   mm
        gpu 7  |  k  m
        s = ProfilerStep#1
        """)
    )
    assert replay.program_time() == 160 * US
    assert replay.program_time(between(0, 10)) == 60 * US
    assert replay.program_time(between(0, 4)) == 120 * US
    assert replay.program_time(between(10, 16)) == 100 * US
