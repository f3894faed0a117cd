from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from selftime import schema
from selftime.testing import sketch
from selftime.trace import Trace
from selftime.views.health import health

WHOLE = """
    a = ProfilerStep#1
    b = ProfilerStep#2
    c = ProfilerStep#3
    d = ProfilerStep#4
    o = aten::mm
    k = cudaLaunchKernel
    mark 1 | aaaabbbbccccdddd
    cpu 1  | ooo ooo ooo ooo
    call 1 | k   k   k   k
    gpu 7  |  k   k   k   k
"""


def verdicts(trace: Trace) -> dict[str, str]:
    return dict(health(trace).select("check", "verdict").rows())


def text(trace: Trace, check: str) -> str:
    found: str = health(trace).filter(pl.col("check") == check)["text"].item()
    return found


def test_nothing_recorded_is_no_trace() -> None:
    assert verdicts(Trace())["content"] == "unusable"
    assert "not a trace of PyTorch's profiler" in text(Trace(), "content")
    assert ", only Python functions" in text(sketch("python 1 | a b c"), "content")


def test_a_whole_trace_is_good() -> None:
    assert verdicts(sketch(WHOLE)) == {
        "content": "good",
        "file": "good",
        "launches": "good",
        "links": "good",
        "options": "good",
        "steps": "good",
    }


def test_a_recording_without_steps_is_one_step_without_a_spread() -> None:
    assert verdicts(sketch("cpu 1 | aa"))["steps"] == "degraded"
    assert "call `prof.step()`" in text(sketch("cpu 1 | aa"), "steps")


def test_launches_whose_work_was_not_recorded_are_missed() -> None:
    lost = sketch(WHOLE.replace("gpu 7  |  k   k   k   k", "gpu 7  |  k   k   k"))

    assert verdicts(lost)["launches"] == "unusable"
    assert text(lost, "launches").startswith("1 of 4 launches have no device work")


def test_launches_without_any_device_work_tell_nothing_of_the_device() -> None:
    lost = sketch(WHOLE.replace("gpu 7  |  k   k   k   k", ""))

    assert verdicts(lost)["launches"] == "unusable"
    assert "nothing is known of the device" in text(lost, "launches")


def test_what_is_captured_into_a_graph_puts_no_work_on_the_device() -> None:
    captured = sketch("""
        k = cudaLaunchKernel
        b = cudaStreamBeginCapture
        e = cudaStreamEndCapture
        g = cudaGraphLaunch
        c = cudaLaunchKernel
        call 1 | b c c c e g k
        gpu 7  |            g  k
    """)

    assert text(captured, "launches") == "0 of 2 launches have no device work"


def test_a_capture_that_began_before_the_recording_is_one() -> None:
    captured = sketch("""
        k = cudaLaunchKernel
        e = cudaStreamEndCapture
        c = cudaLaunchKernel
        call 1 | c c c e k
        gpu 7  |          k
    """)

    assert text(captured, "launches") == "0 of 1 launches have no device work"


def test_device_work_from_before_the_recording_explains_little() -> None:
    early = sketch("call 1 | k\ngpu 7 | mm mmk")

    assert verdicts(early)["links"] == "degraded"
    assert text(early, "links").startswith("66.7 % of device slices were launched before")


def test_a_damaged_file_is_told() -> None:
    repair = {"fault": ["the file ends early"], "count": [1], "events_lost": [7]}
    repairs = pl.concat([schema.REPAIRS.empty(), pl.DataFrame(repair)], how="diagonal_relaxed")
    repairs = repairs.with_columns(pl.col("note", "ruin").fill_null(value=False))
    damaged = replace(sketch(WHOLE), repairs=repairs.cast(schema.REPAIRS.empty().schema))

    assert verdicts(damaged)["file"] == "degraded"
    assert text(damaged, "file") == "the file ends early (1); 7 events lost"


def test_device_work_before_its_launch_shows_that_clocks_disagree() -> None:
    whole = sketch(WHOLE)
    linked = pl.col("launch").is_not_null()
    count = whole.slices.filter(linked).height
    early = whole.slices.with_columns(start=pl.when(linked).then(-1).otherwise("start"))
    found = text(replace(whole, slices=early), "clocks")

    assert found.startswith(
        f"{count} device slices start before their launch: the clocks of host and device disagree"
    )


def steps_of(recorded: list[int], others: list[int]) -> dict[str, Any]:
    """Facts with durations of recorded steps and others, the shorter of which are as long."""
    return {"overhead": {"ratio": 1.0}, "steps": {"profiled_ns": recorded, "unprofiled_ns": others}}


@pytest.mark.parametrize(
    ("facts", "check", "verdict"),
    [
        ({"partial": "ended by KeyboardInterrupt"}, "recording", "degraded"),
        ({"overhead": {"ratio": 1.2}}, "overhead", "good"),
        ({"overhead": {"ratio": 1.6}}, "overhead", "degraded"),
        (steps_of([10, 16, 17], [10, 10, 10]), "overhead", "good"),
        (steps_of([10, 16, 27], [10, 10, 10]), "overhead", "degraded"),
        (steps_of([1, 30, 1, 30, 30], [1, 30, 1, 30, 1]), "overhead", "good"),
        ({"usage": {"wall_s": 1.6, "process_s": 0.32, "queued_s": 1.2}}, "cores", "degraded"),
        ({"overhead": {"ratio": 1.0}, "steps": {"matched_share": 0.9}}, "overhead", "good"),
        ({"overhead": {"ratio": 1.0}, "steps": {"matched_share": 0.5}}, "overhead", "degraded"),
    ],
)
def test_the_recorders_own_facts_are_judged(
    facts: dict[str, Any], check: str, verdict: str
) -> None:
    assert verdicts(sketch(WHOLE, metadata={"selftime": facts}))[check] == verdict


def test_times_of_other_steps_are_told_with_what_was_taken_off() -> None:
    steps = {"matched_share": 0.99, "removed_share": 0.04}
    facts = {"overhead": {"ratio": 1.0}, "steps": steps, "flags": {"with_stack": True}}
    health = sketch(WHOLE, metadata={"selftime": facts, "with_stack": 1}).view("health")
    texts = dict(health.select("check", "text").rows())
    assert texts["overhead"] == (
        "recorded steps took 1.00 times as long as unrecorded ones around them; their times are of "
        "steps recorded without stacks and shapes, in which 99.0 % of the events came again, less "
        "4.0 % for recording them"
    )
    assert "flags" not in texts


def test_enough_steps_before_an_early_end_are_sound() -> None:
    steps = """
        mark 1 | aaabbbcccdddeee
        cpu 1  | mm mm mm mm m
        a = ProfilerStep#1
        b = ProfilerStep#2
        c = ProfilerStep#3
        d = ProfilerStep#4
        e = ProfilerStep#5
        m = aten::mm
    """
    facts = {"partial": "the recording ended within a step: it took too much memory"}
    assert verdicts(sketch(steps, metadata={"selftime": facts}))["recording"] == "good"


def rows(trace: Trace, check: str) -> list[tuple[str, str]]:
    return health(trace).filter(pl.col("check") == check).select("verdict", "text").rows()


def logged(level: str, line: str) -> Trace:
    return sketch(WHOLE, metadata={level: [line]})


def test_an_honestly_idle_trace_stays_good() -> None:
    idle = """
        a = ProfilerStep#1
        b = ProfilerStep#2
        c = ProfilerStep#3
        d = ProfilerStep#4
        o = aten::mm
        k = cudaLaunchKernel
        column = 1 ms
        mark 1 | aaaaaaaaaabbbbbbbbbbccccccccccdddddddddd
        cpu 1  | o         o         o         o
        call 1 | k         k         k         k
        gpu 7  |  k         k         k         k
    """
    assert set(verdicts(sketch(idle)).values()) == {"good"}


def test_a_host_without_device_work_and_launches_is_no_loss() -> None:
    found = verdicts(sketch("cpu 1 | aa bb"))

    assert {"launches", "links", "operators"}.isdisjoint(found)


def test_the_end_is_lost_if_the_last_launches_have_no_work() -> None:
    lost = sketch("""
        k = cudaLaunchKernel
        call 1 | k k k k k k k k
        gpu 7  |  k k k k k
    """)

    assert rows(lost, "end")[0][0] == "unusable"
    assert text(lost, "end").startswith("the last 3 launches, 60.0 µs, have no device work")
    assert "all after the last recorded work" in text(lost, "launches")


def test_work_lost_at_the_begin_is_told_as_such() -> None:
    late = sketch("""
        j = cudaLaunchKernel
        k = cudaLaunchKernel
        call 1 | j j k k
        gpu 7  |      k k
    """)

    assert "the device's tracing began late" in text(late, "launches")


def test_a_thread_whose_launches_are_all_lost_is_told() -> None:
    lost = sketch("""
        j = cudaLaunchKernel
        k = cudaLaunchKernel
        call 1 | k k k k
        call 2 |  j j j
        gpu 7  |  k k k k
    """)

    assert "all launches of 1 of 2 threads" in text(lost, "launches")


def test_few_launches_of_one_operator_that_are_all_lost_are_a_lost_stream() -> None:
    lost = sketch(f"""
        n = nccl:all_reduce
        o = aten::mm
        c = cudaLaunchKernel
        k = cudaLaunchKernel
        cpu 1  | {"ooooo ooooo ooooo " * 200}nnn nnn nnn
        call 1 | {"k k k k k k k k k " * 200}c   c   c
        gpu 7  | {" k k k k k k k k k" * 200}
    """)

    assert rows(lost, "streams")[0][0] == "degraded"
    assert "none of the 3 launches by `nccl:all_reduce`" in text(lost, "streams")


def test_marks_on_a_stream_without_work_show_that_it_was_lost() -> None:
    lost = sketch("""
        k = cudaLaunchKernel
        call 1  | k k
        gpu 7   |  k k
        note 20 |  nnn
    """)

    assert "annotations without work on streams (1 stream 20)" in text(lost, "streams")


def test_a_device_that_memory_lies_on_and_that_has_no_work_is_missing() -> None:
    lost = sketch("""
        A = name; bytes = 64; device_type = 1; device = 0
        B = name; bytes = 64; device_type = 1; device = 1
        k = cudaLaunchKernel
        call 1   | k
        gpu 0.7  |  k
        memory 1 | AB
    """)

    assert rows(lost, "devices")[0][0] == "degraded"
    assert text(lost, "devices").endswith(
        "work recorded on 1 only: nothing was recorded of device 1"
    )


REPLAYS = """
    g = cudaGraphLaunch
    a = gemm; launched_by = g
    b = relu; launched_by = g
    call 1 | g    g    g    g
    gpu 7  |  aab  aab  aab  aab
"""


def test_replays_of_one_graph_are_equal() -> None:
    assert rows(sketch(REPLAYS), "replays") == [("good", "4 graph replays, each with work")]


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ("a", "of 4 graph replays 1 lack kernels that others of their graph have, 0 lack all"),
        ("", "of 4 graph replays 1 lack kernels that others of their graph have, 1 lack all"),
    ],
)
def test_a_replay_with_fewer_kernels_than_others_lost_some(last: str, told: str) -> None:
    lost = sketch(REPLAYS.replace("aab  aab  aab  aab", f"a b  a b  a b  {last}"))

    assert rows(lost, "replays")[0][1].startswith(told)


def test_one_replay_recorded_of_many_makes_a_trace_unusable() -> None:
    lost = sketch(REPLAYS.replace("aab  aab  aab  aab", "a b"))

    [(verdict, told)] = rows(lost, "replays")
    assert verdict == "unusable"
    assert "3 lack all: at least 75.0 % of what they ran is missing" in told


def test_a_smaller_graph_that_repeats_is_whole() -> None:
    drawn = """
        g = cudaGraphLaunch
        a = gemm; launched_by = g
        b = relu; launched_by = g
        call 1 | g    g    g    g
        gpu 7  |  a b  a    a b  a
    """
    assert rows(sketch(drawn), "replays") == [("good", "4 graph replays, each with work")]


def test_numbered_graphs_tell_which_replays_belong_together() -> None:
    lost = sketch("""
        g = cudaGraphLaunch
        a = gemm; launched_by = g; graph = 1
        b = relu; launched_by = g; graph = 2
        call 1 | g    g    g    g
        gpu 7  |  a a  b    a    b
    """)

    assert "of 4 graph replays 1 lack kernels" in text(lost, "replays")


def test_work_that_follows_linked_work_of_its_stream_was_launched_by_what_is_not_recorded() -> None:
    elsewhere = sketch("""
        k = cudaLaunchKernel
        call 1 | k    k
        gpu 7  |  k m  k
    """)

    assert text(elsewhere, "links") == (
        "33.3 % of device slices were launched before the recording or elsewhere, "
        "1 of them during it by calls that were not recorded; "
        "1 without a correlation number to link them by"
    )


def test_work_far_longer_than_its_like_and_past_later_work_is_impossible() -> None:
    drawn = sketch(f"""
        column = 1 us
        k = cudaLaunchKernel
        call 1 | k  k  k  k  k
        gpu 7  |  k  k     k  k
        gpu 7  |        {"k" * 40}
    """)
    [(verdict, told)] = rows(drawn, "durations")

    assert verdict == "degraded"
    assert told.startswith("1 device slice cannot have lasted so long (up to 40.0 µs)")
    found = health(drawn).filter(pl.col("check") == "durations")
    assert drawn.slices["duration"].gather([int(found["slices"].item())]).to_list() == [40_000]


def test_work_that_overlaps_a_little_or_varies_a_little_is_possible() -> None:
    drawn = sketch("""
        column = 1 us
        k = cudaLaunchKernelExC
        call 1 | k  k  k  k  k
        gpu 7  |  k  k     k  k
        gpu 7  |        kkkkkkkk
    """)

    assert rows(drawn, "durations") == []
    assert rows(drawn, "same_stream") == [
        (
            "good",
            "2 device slices begin before others of their stream end: busy time counts them once",
        )
    ]


def test_work_past_a_wait_for_its_device_is_impossible() -> None:
    drawn = sketch("""
        column = 1 ms
        k = cudaLaunchKernel
        w = cudaDeviceSynchronize
        call 1 | k k k wwww
        gpu 7  |  k k kkkkkkkkkkkkkkkkkkkk
    """)

    assert text(drawn, "durations").startswith("1 device slice cannot have lasted so long")


def test_plain_launches_that_overlap_show_times_that_are_not_right() -> None:
    drawn = sketch("""
        k = cudaLaunchKernel
        call 1 | k  k
        gpu 7  |  kkkk
        gpu 7  |    kkkk
    """)

    assert rows(drawn, "same_stream")[0][0] == "degraded"
    assert "although their launches do not allow it" in text(drawn, "same_stream")


def test_lengths_of_nought_are_lost_times_unless_time_is_in_whole_microseconds() -> None:
    whole = sketch(WHOLE)
    first = pl.col("id") == pl.col("id").filter(pl.col("launch").is_not_null()).first()
    none = whole.slices.with_columns(duration=pl.when(first).then(0).otherwise("duration"))
    coarse = replace(whole, slices=none)
    odd = pl.col("duration") + (pl.col("duration") > 0).cast(pl.Int64)
    fine = replace(whole, slices=none.with_columns(duration=odd))

    assert rows(coarse, "zeros")[0][0] == "good"
    assert "times are in whole microseconds" in text(coarse, "zeros")
    assert rows(fine, "zeros") == [
        ("unusable", "25.0 % of device slices have a duration of zero: their durations were lost")
    ]


def test_slices_without_an_end_are_in_no_total() -> None:
    whole = sketch(WHOLE)
    ends = pl.when(pl.col("id") == 1).then(None).otherwise("duration")
    open_ = replace(whole, slices=whole.slices.with_columns(duration=ends))

    assert rows(open_, "ends") == [
        ("degraded", "1 slice without a recorded end: left out of totals")
    ]


def test_two_steps_are_too_few_to_tell_what_varies() -> None:
    two = sketch("a = ProfilerStep#1\nb = ProfilerStep#2\nmark 1 | aaabbb\ncpu 1 | o  o")

    assert rows(two, "steps")[0][0] == "degraded"
    assert "too few to estimate variation; record 4 or more" in text(two, "steps")


def test_steps_of_another_profiler_are_told() -> None:
    two = sketch(WHOLE + "    mark 2 | aaaabbbb\n")

    assert text(two, "other_steps").startswith("2 more marks of steps on other threads")


def test_steps_that_lost_their_work_are_named() -> None:
    lost = sketch("""
        a = ProfilerStep#1
        b = ProfilerStep#2
        c = ProfilerStep#3
        d = ProfilerStep#4
        o = aten::mm
        k = cudaLaunchKernel
        m = cudaLaunchKernel
        mark 1 | aaaabbbbccccdddd
        cpu 1  | ooo ooo ooo ooo
        call 1 | k   m   k   k
        gpu 7  |  k       k   k
    """)

    assert text(lost, "empty_steps") == (
        "1 of 4 steps have no device work, though their operators launch it in others (steps 2)"
    )


def test_a_step_that_keeps_to_the_host_lost_nothing() -> None:
    other = sketch("""
        a = ProfilerStep#1
        b = ProfilerStep#2
        c = ProfilerStep#3
        d = ProfilerStep#4
        o = aten::mm
        p = aten::sort
        k = cudaLaunchKernel
        mark 1 | aaaabbbbccccdddd
        cpu 1  | ooo ppp ooo ooo
        call 1 | k       k   k
        gpu 7  |  k       k   k
    """)

    assert rows(other, "empty_steps") == []


@pytest.mark.parametrize(
    ("level", "line", "value"),
    [
        ("WARNING", "Dropped 12 activity records", 12.0),
        ("WARNING", "Exceeded max GPU buffer count (33 >= 33) - terminating tracing", None),
        ("INFO", "Record counts: Out-of-range = 0, CUPTI stopped early? = 1", None),
    ],
)
def test_the_recorders_log_tells_of_lost_records(
    level: str, line: str, value: float | None
) -> None:
    found = health(logged(level, line)).filter(pl.col("check") == "dropped")

    assert found.select("verdict", "value").rows() == [("degraded", value)]
    assert line in found["text"].item()


def test_records_outside_the_window_are_no_loss() -> None:
    line = "Record counts: Out-of-range = 52, Blocklisted runtime = 9, CUPTI stopped early? = 0"

    assert rows(logged("INFO", line), "dropped") == []


@pytest.mark.parametrize(("width", "verdict"), [(1, "good"), (4, "degraded")])
def test_the_recorders_own_work_within_steps_is_told(width: int, verdict: str) -> None:
    whole = sketch(WHOLE + f"    python 9 | {'f' * width}\n")
    frames = whole.slices["name"].cast(pl.String) == "f"
    told = whole.slices.with_columns(
        name=pl.when(frames).then(pl.lit("Buffer Flush")).otherwise(pl.col("name").cast(pl.String)),
        start=pl.when(frames).then(50_000).otherwise("start"),
        duration=pl.when(frames).then(pl.col("duration") // 10).otherwise("duration"),
    ).with_columns(pl.col("name").cast(pl.Categorical))
    kinds = whole.tracks["kind"].cast(pl.String).replace("python", "profiler")
    tracks = whole.tracks.with_columns(kind=kinds.cast(whole.tracks.schema["kind"]))
    found = replace(whole, slices=told, tracks=tracks)

    assert rows(found, "recorder")[0][0] == verdict
    assert "the recorder's own work (Buffer Flush)" in text(found, "recorder")


def test_options_that_slow_the_host_are_told() -> None:
    slowed = sketch(WHOLE, metadata={"with_stack": 1, "record_shapes": 1})

    assert rows(slowed, "flags")[0][0] == "good"
    assert text(slowed, "flags").startswith("recorded with Python stacks, shapes: the host may")


def test_more_memory_than_the_device_has_is_told() -> None:
    full = sketch(
        "A = name; bytes = 4096; device_type = 1; device = 0\ncpu 1 | aa\nmemory 1 | A",
        devices=[{"name": "small", "memory": 2048}],
    )

    assert rows(full, "memory") == [
        ("degraded", "4.00 KiB allocated on CUDA 0, which has 2.00 KiB")
    ]


def test_a_device_that_was_not_recorded_is_told_by_the_collectives_that_run_on_it() -> None:
    drawn = "mark 1 | nn\ncpu 1 |   aaa\nn = {}:all_reduce\na = aten::mm"
    assert verdicts(sketch(drawn.format("gloo")))["device"] == "good"
    assert verdicts(sketch(drawn.format("nccl")))["device"] == "degraded"


def test_collectives_without_a_kernel_of_theirs_are_told() -> None:
    drawn = """
        n = nccl:all_reduce
        k = cudaLaunchKernel; name = k
        k = {kernel}
        mark 1 | nnn
        call 1 | k
        gpu 7  |  k
    """
    unknown = sketch(drawn.format(kernel="my_AllGather_v2"))
    silent = sketch(drawn.format(kernel="gemm"))
    known = sketch(drawn.format(kernel="ncclDevKernel_AllReduce"))

    assert text(unknown, "collectives").endswith(
        "other kernels have similar names: `my_AllGather_v2`"
    )
    assert "1 collectives were issued" in text(silent, "collectives")
    assert rows(known, "collectives") == []


def test_device_work_alone_does_not_say_what_for() -> None:
    assert verdicts(sketch("call 1 | k\ngpu 7 | k"))["operators"] == "degraded"


def test_a_category_of_another_time_is_in_no_total() -> None:
    whole = sketch(WHOLE)
    strange = whole.tracks.with_columns(
        kind=whole.tracks["kind"]
        .cast(pl.String)
        .replace("device", "other")
        .cast(whole.tracks.schema["kind"])
    )

    assert verdicts(replace(whole, tracks=strange))["categories"] == "degraded"


def test_waits_are_known_by_names_unless_the_device_recorded_them() -> None:
    drawn = "k = cudaLaunchKernel\nw = cudaStreamSynchronize\ncall 1 | k www\ngpu 7 | k\n"

    assert rows(sketch(drawn), "waits")[0][0] == "good"
    assert rows(sketch(drawn + "sync 7 | sss"), "waits") == []
