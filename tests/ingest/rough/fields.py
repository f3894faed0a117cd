"""Section C of the catalogue: types and fields."""

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

import polars as pl
from tests.ingest.rough.case import (
    HEADER,
    Event,
    N,
    case,
    document,
    events,
    json_text,
    kernel,
    names_in,
    op,
)
from tests.ingest.rough.looking import (
    added,
    advice_on,
    args_of,
    changed,
    holds,
    row,
    track_of,
    with_args,
)
from tests.ingest.rough.phases import (
    a_begin_alone,
    an_end_alone,
    asynchronous_spans,
    begins_and_ends_crossed,
    complete_events,
    flows_without_partners,
    marks_and_counters,
    names_at_the_end,
    objects_and_unknown_phases,
)

from selftime.trace import Trace

__all__ = [  # the cases of entry 25, which stand in a file of their own
    "a_begin_alone",
    "an_end_alone",
    "asynchronous_spans",
    "begins_and_ends_crossed",
    "complete_events",
    "flows_without_partners",
    "marks_and_counters",
    "names_at_the_end",
    "objects_and_unknown_phases",
]

EPOCH_US: Final = 1_712_000_000_000_000
"""April 2024 in us since the epoch: beyond 2**53 when in ns."""


# 20 Forms of `ts` and `dur`


def _is_exact(trace: Trace) -> None:
    starts = trace.slices.filter(pl.col("name").cast(pl.String).str.starts_with("op"))["start"]
    assert starts.diff().drop_nulls().unique().to_list() == [10_000]
    assert trace.origin == EPOCH_US * 1000 + 1_000_123
    assert row(trace)["duration"] == 5_000


@case("20a", "accept", sound=N, check=_is_exact)
def times_as_text(_: Random) -> bytes:
    return document(
        [{**e, "ts": f"{EPOCH_US + e['ts']}.123", "dur": f"{e['dur']}.000"} for e in events()]
    )


@case("20c", "accept", sound=N, check=_is_exact)
def three_decimals(_: Random) -> bytes:
    text = document([{**e, "ts": f"<{EPOCH_US + e['ts']}.123>"} for e in events()])
    return text.replace(b'"<', b"").replace(b'>"', b"")


@case("20d", "accept", sound=N, check=_is_exact)
def text_and_numbers(_: Random) -> bytes:
    marked = [
        {**e, "ts": f"{EPOCH_US + e['ts']}.123" if at % 2 else f"<{EPOCH_US + e['ts']}.123>"}
        for at, e in enumerate(events())
    ]
    return document(marked).replace(b'"<', b"").replace(b'>"', b"")


def kernel_time(trace: Trace) -> int:
    return int(trace.slices.filter(pl.col("category") == "kernel")["duration"].sum())


def _has_the_times(trace: Trace) -> None:
    assert kernel_time(trace) == 12 * 6_000
    assert row(trace)["duration"] == 5_000
    assert row(trace, "kernel3")["start"] - row(trace)["start"] == 4_000


def in_nanoseconds(event: Event, zero: int = 0) -> Event:
    return {**event, "ts": zero + 1000 * event["ts"], "dur": 1000 * event["dur"]}


@case("20b", "accept", "integer nanoseconds, as the clock", sound=N, check=_has_the_times)
def nanoseconds_since_the_epoch(_: Random) -> bytes:
    made = [in_nanoseconds(e, EPOCH_US * 1000) for e in events()]
    return document(made, displayTimeUnit="ms", baseTimeNanoseconds=0)


@case("20b", "accept", "integer nanoseconds, as the clock", sound=N, check=_has_the_times)
def nanoseconds_from_the_base(_: Random) -> bytes:
    made = [in_nanoseconds(e, 5 * 10**15) for e in events()]
    return document(made, baseTimeNanoseconds=EPOCH_US * 1000)


@case("20b", "accept", "as the bandwidth of copies", sound=N + 1)
def nanoseconds_told_by_a_copy(_: Random) -> bytes:
    told = {"device": 0, "stream": 7, "bytes": 64_000, "memory bandwidth (GB/s)": 32.0}
    copy = kernel(20, cat="gpu_memcpy", name="Memcpy HtoD", dur=2, args=told)
    return document([in_nanoseconds(e) for e in [*events(), copy]])


@case("20b", "accept", "as the length of the shortest calls", sound=400)
def nanoseconds_told_by_calls(dice: Random) -> bytes:
    made = [in_nanoseconds(e) for e in events(400)]
    return document([{**e, "dur": e["dur"] + dice.randrange(900)} for e in made], traceName="x")


def half_in_nanoseconds(of: str, zero: int) -> list[Event]:
    return [
        in_nanoseconds(e, zero * 1000) if e["cat"] == of else {**e, "ts": zero + e["ts"]}
        for e in events()
    ]


def _knows_no_device_times(trace: Trace) -> None:
    advice = advice_on(trace)
    assert advice["health"]["verdict"] == "unusable"
    assert not advice["findings"]
    assert trace.view("idle").is_empty()


@case("20e", "limit", "times in two units", sound=N, check=_knows_no_device_times)
def units_mixed_since_the_epoch(_: Random) -> bytes:
    return document(half_in_nanoseconds("kernel", EPOCH_US))


@case("20e", "limit", "times in two units", sound=N, check=_knows_no_device_times)
def units_mixed_from_a_zero(_: Random) -> bytes:
    return document(half_in_nanoseconds("kernel", 3 * 10**9))


@case("20e", "limit", "times in two units", sound=N)
def units_mixed_within_a_category(_: Random) -> bytes:
    made = [{**e, "name": "op"} if e["cat"] == "cpu_op" else e for e in events()]
    return document([in_nanoseconds(e) if at % 3 == 1 else e for at, e in enumerate(made)])


# 21 `pid` and `tid`


def _has_tracks(*kinds: str) -> Callable[[Trace], None]:
    def check(trace: Trace) -> None:
        spans = trace.tracks.filter(pl.col("process") == "Spans")
        assert sorted(spans["tid"]) == sorted(kinds)

    return check


def on_threads(*tids: Any, pid: Any = "Spans") -> bytes:
    return added(*(op(40 + n, pid=pid, tid=tid) for n, tid in enumerate(tids)))


TEXTS: Final = ("Spans", "PyTorch Profiler", "Traces", "stream 7", "python")


@case("21a", "accept", sound=N + 5, check=_has_tracks(*TEXTS))
def threads_as_text(_: Random) -> bytes:
    return on_threads(*TEXTS)


NUMBERS: Final = (-1, 0, 2**31, 2**32 - 1, 2**53 + 1, 2**53, 2**63, 2**64 - 1)


@case("21b", "accept", sound=N + 8, check=_has_tracks(*map(str, NUMBERS)))
def threads_of_any_number(_: Random) -> bytes:
    return on_threads(*NUMBERS)


def _is_on_thread_7(trace: Trace) -> None:
    assert track_of(trace) == track_of(trace, "op4")


@case("21c", "accept", sound=N, check=_is_on_thread_7)
def threads_with_a_fraction_of_none(_: Random) -> bytes:
    return changed({"pid": 7.0, "tid": 7.0})


def _is_apart(trace: Trace) -> None:
    tids = [track_of(trace, name)["tid"] for name in ("op3", "op40", "op41", "op42")]
    assert len(set(tids)) == 4


@case("21d", "recover", "without a process or thread", sound=N + 3, check=_is_apart)
def no_thread(_: Random) -> bytes:
    more = [op(40, pid=0, tid=0), op(41, tid="?"), op(42, pid=False, tid=False)]
    return changed({"pid": ..., "tid": ...}, made=[*events(), *more])


# 22 `args`, `name`, `cat`


@case("22a", "accept", sound=N)
def no_arguments(_: Random) -> bytes:
    return changed({"args": ...})


def _has_no_arguments(trace: Trace) -> None:
    assert args_of(trace, "op_args", "op3")["external_id"] is None


def _with_arguments(value: Any) -> bytes:
    return changed({"args": value})


@case("22b", "recover", "arguments that are not an object", sound=N, check=_has_no_arguments)
def arguments_null(_: Random) -> bytes:
    return _with_arguments(None)


@case("22b", "recover", "arguments that are not an object", sound=N, check=_has_no_arguments)
def arguments_in_a_list(_: Random) -> bytes:
    return _with_arguments([1, {"External id": 2}])


@case("22b", "recover", "arguments that are not an object", sound=N, check=_has_no_arguments)
def arguments_as_text(_: Random) -> bytes:
    return _with_arguments("External id: 2")


def _is_nameless(trace: Trace) -> None:
    assert row(trace, "(no name)")["duration"] == 5_000


@case("22c", "recover", "no name", sound=N, check=_is_nameless)
def name_missing(_: Random) -> bytes:
    return changed({"name": ...})


@case("22c", "recover", "no name", sound=N, check=_is_nameless)
def name_null(_: Random) -> bytes:
    return changed({"name": None})


@case("22c", "recover", "no name", sound=N, check=_is_nameless)
def name_empty(_: Random) -> bytes:
    return changed({"name": ""})


@case("22d", "accept", sound=N, check=holds(lambda trace: names_in(trace) >= {"12.50"}))
def name_a_number(_: Random) -> bytes:
    return changed({"name": "<12.50>"}).replace(b'"<12.50>"', b"12.50")


def _is_of(category: str, *which: str) -> Callable[[Trace], None]:
    def check(trace: Trace) -> None:
        for name in which or ("op3",):
            assert row(trace, name)["category"] == category

    return check


@case("22e", "accept", sound=N, check=_is_of("cpu_op"))
def several_categories(_: Random) -> bytes:
    return changed({"cat": "mine, cpu_op,user"})


@case("22f", "accept", sound=N, check=_is_of("kernel", "kernel3", "kernel4"))
def categories_in_capitals(_: Random) -> bytes:
    capitals = {"cpu_op": "Operator", "kernel": "Kernel", "cuda_runtime": "Runtime"}
    return document([{**e, "cat": capitals.get(e["cat"], "USER_ANNOTATION")} for e in events()])


@case("22g", "limit", "slices of unknown category (none given, `of_tomorrow`)", sound=N + 3)
def categories_unknown(_: Random) -> bytes:
    without = op(40)
    del without["cat"]
    return added(without, op(41, cat=""), op(42, cat="of_tomorrow"))


# 23 Ids and streams


def _has_one_id(trace: Trace) -> None:
    ids = [args_of(trace, "op_args", f"op{n}")["external_id"] for n in (3, 4, 5)]
    assert ids == [4, 5, 6]


@case("23a", "accept", sound=N, check=_has_one_id)
def ids_in_any_spelling(_: Random) -> bytes:
    spelled = {"op3": "External id", "op4": "external id", "op5": "External Id"}
    made = [
        {**e, "args": {spelled.get(e["name"], "External id"): e["args"]["External id"]}}
        if e["cat"] == "cpu_op"
        else e
        for e in events()
    ]
    return document(made)


def _is_launched(trace: Trace) -> None:
    assert row(trace, "kernel3")["launch"] is not None


@case("23b", "accept", sound=N, check=_is_launched)
def correlation_as_text(_: Random) -> bytes:
    return with_args({"correlation": "103"}, "kernel3")


def _are_not_linked(trace: Trace) -> None:
    assert trace.slices["launch"].null_count() == trace.slices.height
    assert trace.device_args["operator"].null_count() == trace.device_args.height
    advice = advice_on(trace)
    assert advice["health"]["verdict"] != "good"
    assert not advice["findings"]
    assert {"copy_to_host", "few_block_kernel"} <= {one["rule"] for one in advice["unknown"]}


def correlated(value: Any) -> bytes:
    made = []
    for event in events():
        told = {key: v for key, v in event["args"].items() if key != "correlation"}
        if event["cat"] in {"kernel", "cuda_runtime"} and value is not ...:
            told["correlation"] = value
        made.append({**event, "args": told})
    return document(made)


NOT_LINKED: Final = "12 without a correlation number to link them by"


@case("23c", "limit", NOT_LINKED, sound=N, check=_are_not_linked)
def correlation_zero(_: Random) -> bytes:
    return correlated(0)


@case("23c", "limit", NOT_LINKED, sound=N, check=_are_not_linked)
def correlation_minus_one(_: Random) -> bytes:
    return correlated(-1)


@case("23c", "limit", NOT_LINKED, sound=N, check=_are_not_linked)
def correlation_absent(_: Random) -> bytes:
    return correlated(...)


@case("23d", "accept", sound=N)
def numbers_of_events(_: Random) -> bytes:
    return document([{**e, "args": {**e["args"], "Ev Idx": at}} for at, e in enumerate(events())])


def wait(tid: Any, stream: Any, number: int = 0) -> Event:
    told = {"cuda_sync_kind": "Stream Sync", "stream": stream, "device": 0}
    where = {"pid": 0, "tid": tid, "ts": 1300 + 10 * number, "dur": 8}
    return {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "args": told, **where}


def _is_no_stream(trace: Trace) -> None:
    assert trace.sync_args["stream"].to_list() == [None, None]


@case("23e", "accept", sound=N + 2, check=_is_no_stream)
def no_one_stream(_: Random) -> bytes:
    return added(wait(-1, -1), wait(-1, 4_294_967_295, 1))


def _waits_for_stream_7(trace: Trace) -> None:
    assert trace.sync_args["stream"].to_list() == [7, 7, 7, 7]
    streams = trace.tracks.filter(pl.col("kind") == "device")
    assert streams["stream"].to_list() == [7]
    assert kernel_time(trace) == 12 * 6_000


@case("23f", "accept", sound=N + 4, check=_waits_for_stream_7)
def streams_of_waits(_: Random) -> bytes:
    return added(
        wait(7, "7"), wait("stream 7 (sync)", "stream 7 (sync)", 1),
        wait(1_000_007, 1_000_007, 2), wait(1_000_007, 7, 3),
    )  # fmt: skip


# 24 Shapes and stacks


def _has_shapes(text: str | None, name: str = "op3") -> Callable[[Trace], None]:
    def check(trace: Trace) -> None:
        assert args_of(trace, "op_args", name)["input_shapes"] == text
        assert trace.view("operators", by="shape").height

    return check


@case("24a", "accept", sound=N, check=_has_shapes("[[],[[]],[[1],[2,3]]]"))
def shapes_of_lists(_: Random) -> bytes:
    return with_args({"Input Dims": [[], [[]], [[1], [2, 3]]]})


ODD: Final = "input shapes that are cut off"


@case("24b", "limit", ODD, sound=N, check=_has_shapes(None))
def shapes_cut_off(_: Random) -> bytes:
    return with_args({"Input Dims": "[[64, 128], [128, ..."})


@case("24b", "limit", ODD, sound=N, check=_has_shapes(None))
def shapes_with_an_ellipsis(_: Random) -> bytes:
    return with_args({"Input Dims": [[64, 128], "..."]})


@case("24b", "limit", ODD, sound=N, check=_has_shapes(None))
def shapes_very_large(_: Random) -> bytes:
    return with_args({"Input Dims": [[64, 128]] * 120_000})


@case("24c", "limit", ODD, sound=N, check=_has_shapes(None))
def fewer_types_than_shapes(_: Random) -> bytes:
    return with_args({"Input Dims": [[64, 128], [128]], "Input type": ["float"]})


PATH: Final = 'C:\\data\\"a", b.pt'


def _has_the_path(trace: Trace) -> None:
    told = args_of(trace, "op_args", "op3")["concrete_inputs"]
    assert json.loads(told) == ["", PATH]


@case("24d", "accept", sound=N, check=_has_the_path)
def paths_as_inputs(_: Random) -> bytes:
    return with_args({"Concrete Inputs": ["", PATH]})


def _has_the_line(trace: Trace) -> None:
    lines = trace.view("operators", by="stack")
    told = set(lines["stack"].drop_nulls())
    assert {"train.py(9): main;net.py(3): forward"} == told


@case("24e", "accept", sound=N, check=_has_the_line)
def stacks_with_any_separator(_: Random) -> bytes:
    frames = ("train.py(9): main", "net.py(3): forward")
    made = events()
    for event, mark in zip([e for e in made if e["cat"] == "cpu_op"], (";", "\n"), strict=False):
        event["args"]["Call stack"] = mark.join(frames)
    return document(made)


# 26 Metadata


def _has_both_names(trace: Trace) -> None:
    assert track_of(trace)["process_name"] == "python, trainer"


@case("26a", "accept", sound=N + 2, check=_has_both_names)
def two_names_of_a_process(_: Random) -> bytes:
    named = [{"ph": "M", "name": "process_name", "pid": 7, "args": {"name": name}}
             for name in ("python", "trainer")]  # fmt: skip
    return added(*named)


def with_header(**header: Any) -> bytes:
    return document(events(), **header)


def told_rank(trace: Trace) -> list[str]:
    table = trace.view("overview")
    return table.filter(pl.col("metric") == "rank")["text"].to_list()


@case("26b", "limit", "the header says rank 3, the file name 5", sound=N,
      check=holds(lambda trace: told_rank(trace) == ["3 of 8"]))  # fmt: skip
def two_ranks(_: Random) -> bytes:
    keys = {**HEADER, "distributedInfo": {"rank": 3, "world_size": 8}}
    written = [json.dumps(event) for event in events()]
    return json_text(written, end='\n], "traceName": "out/rank5.json"}\n', **keys)


def _knows_no_device(trace: Trace) -> None:
    assert trace.devices.is_empty()
    table = trace.view("overview").filter(pl.col("section") == "device")
    told = dict(table.select("metric", "value").rows())
    assert told["SM efficiency"] is None
    assert told["multiprocessors"] is None
    assert trace.view("kernels")["occupancy"].null_count() == trace.view("kernels").height


UNTOLD: Final = "does not describe its devices"


@case("26c", "limit", UNTOLD, sound=N, check=_knows_no_device)
def no_devices_described(_: Random) -> bytes:
    return with_header(deviceProperties=[])


@case("26c", "limit", UNTOLD, sound=N, check=_knows_no_device)
def devices_null(_: Random) -> bytes:
    return with_header(deviceProperties=None)


@case("26c", "accept", sound=N, check=holds(lambda t: t.devices["name"].to_list() == ["X"]))
def devices_with_unknown_fields(_: Random) -> bytes:
    return with_header(deviceProperties=[{"id": 0, "name": "X", "warp": {"drive": [9]}}])


@case("26d", "accept", sound=N, check=holds(lambda trace: told_rank(trace) == ["3 of 8"]))
def rank_as_text(_: Random) -> bytes:
    return with_header(distributedInfo={"rank": "3", "world_size": "8"})


@case("26e", "limit", "impossible size of the job", sound=N,
      check=holds(lambda trace: told_rank(trace) == ["0"]))  # fmt: skip
def no_ranks_at_all(_: Random) -> bytes:
    return with_header(distributedInfo={"rank": 0, "world_size": 0})


@case("26f", "accept", sound=N)
def many_groups(_: Random) -> bytes:
    groups = [{"pg_name": str(n), "ranks": list(range(8))} for n in range(5_000)]
    return with_header(distributedInfo={"rank": 0, "world_size": 8, "pg_config": groups})


@case("26g", "accept", sound=N)
def no_version(_: Random) -> bytes:
    return json.dumps({"traceEvents": events()}).encode()


@case("26h", "accept", "schemaVersion 999 is newer", sound=N)
def version_of_tomorrow(_: Random) -> bytes:
    return with_header(schemaVersion=999)
