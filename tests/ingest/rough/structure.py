"""Section E of the catalogue: structure and nesting."""

from random import Random

import polars as pl
from tests.ingest.rough.case import Event, annotation, case, document, kernel, launch, op
from tests.ingest.rough.program import (
    COUNT,
    PROGRAM,
    Looks,
    checks,
    every,
    frame,
    linked,
    moved,
    names_of,
    quiet,
    without,
)

from selftime.trace import Trace

HELD_BY = {"39d": "test_ranks.py::test_two_files_of_one_process_are_windows"}

DEEP = 1_200


def callers(trace: Trace) -> dict[str | None, str | None]:
    """Each frame's caller, by name."""
    frames = trace.frame_args
    called, caller = names_of(trace, frames["id"]), names_of(trace, frames["caller"])
    return dict(zip(called, caller, strict=True))


def is_deep(trace: Trace) -> None:
    assert trace.slices["depth"].max() == DEEP - 1
    assert trace.frame_args["caller"].null_count() == 1
    inner = trace.lines.filter(pl.col("id") == trace.op_args["id"].max())
    assert inner.select("file", "line").rows() == [("net.py", 3)]
    assert trace.view("flame").height > 0


@case("36a", "accept", sound=COUNT + DEEP + 1, check=is_deep)
def recursion(_: Random) -> bytes:
    tower = [
        frame("net.py(3): fold", 5000 + n, 4 * DEEP - 2 * n, n + 1, n or None) for n in range(DEEP)
    ]
    return document([*PROGRAM, *tower, op(0, ts=5001 + DEEP, name="inner", dur=1)])


def is_cut(trace: Trace) -> None:
    assert callers(trace) == {"a.py(1): f": None, "b.py(1): g": "a.py(1): f",
                              "c.py(1): h": "b.py(1): g"}  # fmt: skip
    assert set(trace.lines["file"]) == {"a.py", "c.py"}  # the innermost around each operator


@case("36b", "recover", "in a circle: cut at the first (1)", sound=COUNT + 3, check=is_cut)
def callers_in_a_circle(dice: Random) -> bytes:
    circle = [
        frame("a.py(1): f", 1000, 900, 1, 3),
        frame("b.py(1): g", 1000.5, 800, 2, 1),
        frame("c.py(1): h", 1000.75, 700, 3, 2),
    ]
    dice.shuffle(circle)
    return document([*PROGRAM, *circle])


def is_nested_by_time(trace: Trace) -> None:
    assert callers(trace) == {"a.py(1): f": None, "b.py(1): g": "a.py(1): f"}


@case("36c", "recover", "whose caller is not in the file: nested by time (1)", sound=COUNT + 2,
      check=is_nested_by_time)  # fmt: skip
def caller_not_in_the_file(_: Random) -> bytes:
    frames = [frame("a.py(1): f", 999, 900, 1), frame("b.py(1): g", 1000, 800, 2, 77)]
    return document([*PROGRAM, *frames])


@case("36c", "accept", "whose caller began before the recording", sound=COUNT + 2,
      check=is_nested_by_time)  # fmt: skip
def caller_open_when_the_recording_began(_: Random) -> bytes:
    """As in a part of a long recording: the outermost frame of its thread is not in it."""
    frames = [frame("a.py(1): f", 999, 900, 8, 3), frame("b.py(1): g", 1000, 800, 9, 8)]
    return document([*PROGRAM, *frames])


@case("36d", "accept", sound=COUNT + 2, check=is_nested_by_time)
def callers_that_stand_later(_: Random) -> bytes:
    """Also where caller and called begin at one instant."""
    frames = [frame("b.py(1): g", 1000, 800, 1, 2), frame("a.py(1): f", 1000, 900, 2)]
    return document([*PROGRAM, *frames])


def is_a_root(trace: Trace) -> None:
    assert callers(trace) == {"a.py(1): f": None, "b.py(1): g": None}


@case("36e", "recover", "name themselves as their caller: taken as outermost (1)",
      sound=COUNT + 2, check=is_a_root)  # fmt: skip
def frame_that_calls_itself(_: Random) -> bytes:
    frames = [frame("a.py(1): f", 999, 900, 1), frame("b.py(1): g", 1000, 800, 2, 2)]
    return document([*PROGRAM, *frames])


STREAMS = 300


def on_stream(number: int, stream: int) -> Event:
    return kernel(number, tid=stream, args={"device": 0, "stream": stream, "correlation": 100})


def is_one_replay(trace: Trace) -> None:
    assert trace.tracks.filter(pl.col("kind") == "device").height == STREAMS
    assert linked(trace) == 3 * STREAMS
    assert trace.view("timeline", pixels=100).height <= (STREAMS + 2) * 2 * 100
    assert trace.view("kernels")["count"].sum() == 3 * STREAMS


@case("37a", "accept", sound=2 + 3 * STREAMS, check=is_one_replay)
def many_streams(_: Random) -> bytes:
    replay = [op(0), launch(0, name="cudaGraphLaunch")]
    return document([*replay, *(on_stream(n % 3, 7 + n // 3) for n in range(3 * STREAMS))])


THREADS = 2_000


def are_apart(trace: Trace) -> None:
    assert trace.tracks.filter(pl.col("kind") == "host").height == THREADS
    ops = trace.op_args.filter(pl.col("frame").is_not_null())
    assert ops.height == THREADS
    tracks = [trace.slices["track"].gather(ops[end]) for end in ("id", "frame")]
    threads = [trace.tracks["thread"].gather(track) for track in tracks]
    assert (threads[0] == threads[1]).all()


@case("37b", "accept", sound=2 * THREADS, check=are_apart)
def many_threads(_: Random) -> bytes:
    return document(
        [op(0, tid=n, name="op") for n in range(THREADS)]
        + [{**frame("a.py(1): f", 999, 900, n + 1), "tid": n} for n in range(THREADS)]
    )


MANY = 3_000


def is_merged(trace: Trace) -> None:
    assert trace.view("timeline", pixels=100).height <= 2 * 100 * 2
    assert trace.view("operators")["count"].to_list() == [MANY]


@case("37c", "accept", sound=MANY, check=is_merged)
def one_thread_with_all_events(_: Random) -> bytes:
    return document([op(n, name="op") for n in range(MANY)])


def steps_of(trace: Trace) -> list[tuple[str, int]]:
    return trace.view("steps").select("source", "step").rows()


def told_by(source: str, *numbers: int) -> Looks:
    def look(trace: Trace) -> None:
        assert steps_of(trace) == [(source, number) for number in numbers]

    return look


WORK = without("user_annotation")
ANY_STEPS = (0, 1, 2, 3, 4)


def needs_no_mark(trace: Trace) -> None:
    assert steps_of(trace) == [("window", 0)]
    assert "steps" in checks(trace)


@case("38a", "accept", "no steps: the whole recording counts as one", sound=len(WORK),
      check=every(needs_no_mark, quiet))  # fmt: skip
def no_steps(_: Random) -> bytes:
    return document(WORK)


def has_no_spread(trace: Trace) -> None:
    metrics = set(trace.view("overview")["metric"])
    assert "step time, median" in metrics
    assert not {"step time, deviation", "step time, p95"} & metrics


@case("38b", "accept", "1 step, found by the profiler: too few", sound=31, check=has_no_spread)
def one_step(_: Random) -> bytes:
    return document(PROGRAM[:31])


@case("38c", "limit", "step numbers restart 1 time", sound=2 * COUNT,
      check=told_by("profiler", *ANY_STEPS, *ANY_STEPS))  # fmt: skip
def numbers_that_come_twice(_: Random) -> bytes:
    return document([*PROGRAM, *moved(PROGRAM, 600)])


def inner(number: int) -> list[Event]:
    return [
        annotation(10 * number + half, ts=1000 + 100 * number + 50 * half + 1, dur=40)
        for half in range(2)
    ]


@case("38d", "limit", "10 more marks of steps", sound=COUNT + 10,
      check=told_by("profiler", *ANY_STEPS))  # fmt: skip
def steps_within_steps(_: Random) -> bytes:
    return document([*PROGRAM, *(one for number in range(5) for one in inner(number))])


@case("38e", "limit", "3 more marks of steps on other threads", sound=COUNT + 3,
      check=told_by("profiler", *ANY_STEPS))  # fmt: skip
def steps_on_two_threads(_: Random) -> bytes:
    return document([*PROGRAM, *(annotation(number, tid=8) for number in range(3))])


DEVICE_MARKS = [
    annotation(n, cat="gpu_user_annotation", pid=0, ts=1004 + 100 * n, dur=96) for n in range(5)
]


@case("38f", "limit", "marked on the device alone", sound=len(WORK) + 5,
      check=every(told_by("device", *ANY_STEPS), quiet))  # fmt: skip
def steps_on_the_device_alone(_: Random) -> bytes:
    return document([*WORK, *DEVICE_MARKS])


def last_is_partial(trace: Trace) -> None:
    notes = trace.view("steps")["note"].to_list()
    assert notes[-1] is not None
    assert notes[-1].startswith("partial")


@case("38g", "accept", sound=COUNT - 15, check=last_is_partial)
def a_last_step_that_is_cut(_: Random) -> bytes:
    return document(PROGRAM[:-15])


def is_no_profiler_step(trace: Trace) -> None:
    assert all(source == "window" for source, _ in steps_of(trace))


@case("38h", "accept", sound=COUNT, check=is_no_profiler_step)
def the_name_of_all_steps(_: Random) -> bytes:
    return document([*WORK, *(annotation(n, name="ProfilerStep*") for n in range(5))])


@case("38i", "limit", "in other processes", sound=COUNT + 3,
      check=told_by("profiler", *ANY_STEPS))  # fmt: skip
def steps_of_two_processes(_: Random) -> bytes:
    return document([*PROGRAM, *(annotation(number, pid=8) for number in range(3))])


def counts_time_once(trace: Trace) -> None:
    assert checks(trace)["twice"].startswith("100 calls are in the file twice")
    [row] = trace.view("overlap").iter_rows(named=True)
    assert row["compute"] == 50 * 6_000 - 1_000  # the last ends after the last step


@case("39a", "limit", "two profilers recorded at once", sound=2 * COUNT,
      check=every(counts_time_once, quiet))  # fmt: skip
def two_profilers(_: Random) -> bytes:
    return document([*PROGRAM, *PROGRAM])


@case("39b", "limit", "two profilers recorded at once", sound=COUNT + 31, check=quiet)
def a_profiler_within_another(_: Random) -> bytes:
    return document([*PROGRAM, *PROGRAM[31:62]])


def are_windows(trace: Trace) -> None:
    assert linked(trace) == 100
    assert [number for _, number in steps_of(trace)] == [*ANY_STEPS, *ANY_STEPS]


@case("39c", "accept", sound=2 * COUNT, check=are_windows)
def a_profiler_that_was_restarted(_: Random) -> bytes:
    return document([*PROGRAM, *moved(PROGRAM, 60_000)])
