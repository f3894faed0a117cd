"""Section G of the catalogue: parts of the record that are missing, and what is not PyTorch's."""

import json
from random import Random
from typing import Any

import polars as pl
from tests.ingest.rough.case import Event, annotation, case, document, kernel, launch, op
from tests.ingest.rough.program import (
    COUNT,
    PROGRAM,
    advice_of,
    checks,
    every,
    held_by_views,
    moved,
    not_checked,
    quiet,
    without,
)

from selftime.trace import Trace

DEVICE = "device activity: record"


def needs(*words: str) -> Any:
    """What rules say that they lack."""

    def look(trace: Trace) -> None:
        told = not_checked(trace)
        for word in words:
            assert word in told, word

    return look


def is_silent_on_devices(trace: Trace) -> None:
    """No figure of a device, and no 0 in its place."""
    assert trace.view("idle").is_empty()
    assert trace.view("kernels").is_empty()
    table = trace.view("steps")
    for part in ("kernel", "memcpy", "memset", "communication"):
        assert table[part].null_count() == table.height, part
    metrics = set(trace.view("overview")["metric"])
    assert not {"kernel", "SM efficiency", "device time, median"} & metrics


HOST = without("kernel", "cuda_runtime")


@case("44a", "limit", "no device activity was recorded", sound=len(HOST),
      check=every(is_silent_on_devices, needs(DEVICE), held_by_views(busy=None),
                  quiet))  # fmt: skip
def the_host_alone(_: Random) -> bytes:
    return document(HOST, deviceProperties=[])


KERNELS = [event for event in PROGRAM if event["cat"] == "kernel"]


def is_kernels_alone(trace: Trace) -> None:
    assert trace.view("kernels")["count"].sum() == 50
    assert set(trace.view("operators")["kind"]) == {"kernel"}  # themselves, of no operator
    assert trace.view("launches").is_empty()
    assert set(trace.view("idle")["cause"]) <= {"unknown", "kernel_gap"}


@case("44b", "limit", "no operator was recorded", sound=50,
      check=every(is_kernels_alone, needs("operators: record", "launches of device work"),
                  held_by_views(runtime=None, cpu=None, bound_by=None), quiet))  # fmt: skip
def kernels_alone(_: Random) -> bytes:
    return document(KERNELS)


CALLS = without("kernel")


def says_nothing_of_devices(trace: Trace) -> None:
    assert trace.view("overlap").is_empty()
    advice = advice_of(trace)
    assert advice.health.verdict == "unusable"
    assert not advice.findings


@case("44c", "limit", "50 launches and no device work", "not allowed, in use by another tool",
      sound=len(CALLS),
      check=every(is_silent_on_devices, says_nothing_of_devices,
                  held_by_views(busy=None, bound_by=None)))  # fmt: skip
def calls_without_kernels(_: Random) -> bytes:
    return document(CALLS)


@case("44d", "limit", "launched before the recording or elsewhere", sound=COUNT - 50,
      check=every(needs("launches of device work"), held_by_views(runtime=None, bound_by=None),
                  quiet))  # fmt: skip
def kernels_without_calls(_: Random) -> bytes:
    return document(without("cuda_runtime"))


def of_step(event: Event) -> int:
    return int(event["ts"] - 1000) // 100


def is_not_idle(trace: Trace) -> None:
    """What looks idle is told as not recorded, and no share of it is given."""
    causes = trace.view("idle", by="cause")
    most = causes.sort("duration", descending=True).row(0, named=True)
    assert most["cause"] == "unrecorded"
    assert trace.view("overlap")["idle"].null_count() == 1
    assert not advice_of(trace).findings


@case("44e", "limit", "4 of 5 steps have no device work", "steps 1, 2, 3, 4", sound=COUNT - 40,
      check=every(is_not_idle, held_by_views(busy=None, bound_by=None)))  # fmt: skip
def kernels_of_the_first_step_alone(_: Random) -> bytes:
    """Each step does what the others do: the operators have one name."""
    alike = [{**e, "name": "op"} if e["cat"] == "cpu_op" else e for e in PROGRAM]
    return document([e for e in alike if e["cat"] != "kernel" or of_step(e) == 0])


def replay(number: int, kernels: int = 8) -> list[Event]:
    """A replay in a step of its own; its kernels lie one after the other."""
    call = launch(10 * number, name="cudaGraphLaunch")
    args = {**kernel(0)["args"], "correlation": call["args"]["correlation"]}
    own = [kernel(10 * number + n, name=f"k{n}", args=args) for n in range(kernels)]
    return [annotation(number), op(10 * number), call, *own]


@case("44f", "limit", "of 5 graph replays 4 lack kernels", sound=5 * 3 + 8, check=is_not_idle)
def kernels_of_one_replay_alone(_: Random) -> bytes:
    return document([e for n in range(5) for e in replay(n, 8 if n == 0 else 0)])


@case("44g", "limit", "the last 10 launches", "what the device did at the end was not recorded",
      sound=COUNT - 10, check=quiet)  # fmt: skip
def a_tail_that_is_lost(_: Random) -> bytes:
    return document([e for e in PROGRAM if e["cat"] != "kernel" or of_step(e) < 4])


EIGHT = [{"id": n, "name": "NVIDIA H100", "numSms": 132} for n in range(8)]


def on_device(number: int) -> list[Event]:
    """The program on a device of its own, launched by a thread of its own."""
    made = []
    for event in PROGRAM:
        args = dict(event["args"])
        if "correlation" in args:
            args["correlation"] += 1_000 * number
        if "device" in args:
            made.append({**event, "pid": number, "args": {**args, "device": number}})
        elif not (number and event["cat"] == "user_annotation"):
            made.append({**event, "tid": 7 + number, "args": args})
    return made


@case("44h", "limit", "nothing was recorded of device 5", "all launches of 1 of 8 threads",
      sound=8 * COUNT - 7 * 5 - 50, check=quiet)  # fmt: skip
def a_device_that_is_lost(_: Random) -> bytes:
    every_device = [e for n in range(8) for e in on_device(n)]
    kept = [e for e in every_device if e["cat"] != "kernel" or e["pid"] != 5]
    return document(kept, deviceProperties=EIGHT)


def second_stream(number: int) -> list[Event]:
    args = {**kernel(0)["args"], "stream": 20, "correlation": 5_000 + number}
    call = launch(number, ts=1003.5 + 10 * number, dur=1, args={"correlation": 5_000 + number})
    around = op(number, name="gather", ts=1003.25 + 10 * number, dur=1.5)
    return [around, call, kernel(number, tid=20, name="other", args=args)]


@case("44i", "limit", "none of the 50 launches by `gather` has device work", sound=COUNT + 100,
      check=quiet)  # fmt: skip
def a_stream_that_is_lost(_: Random) -> bytes:
    second = [e for n in range(50) for e in second_stream(n) if e["cat"] != "kernel"]
    return document([*PROGRAM, *second])


def bare(event: Event) -> Event:
    return {**event, "args": {k: v for k, v in event["args"].items() if k != "Input Dims"}}


@case("45a", "limit", "input shapes (`record_shapes=True`)", sound=COUNT,
      check=needs("record_shapes=True"))  # fmt: skip
def no_shapes(_: Random) -> bytes:
    return document([bare(event) for event in PROGRAM], record_shapes=0)


def has_no_lines(trace: Trace) -> None:
    assert trace.lines.is_empty()
    assert trace.view("lines")["file"].null_count() == trace.view("lines").height


@case("45b", "limit", "Python stacks (`with_stack=True`)", sound=COUNT,
      check=every(has_no_lines, needs("with_stack=True")))  # fmt: skip
def no_stacks(_: Random) -> bytes:
    return document(PROGRAM)


@case("45c", "limit", "memory (`profile_memory=True`)", sound=COUNT,
      check=needs("profile_memory=True"))  # fmt: skip
def no_memory(_: Random) -> bytes:
    return document(PROGRAM)


def record(at: float, size: int, address: int, **told: Any) -> Event:
    """A `[memory]` record of device 0."""
    args = {"Bytes": size, "Addr": address, "Device Type": 1, "Device Id": 0, **told}
    return {
        "ph": "i", "s": "t", "cat": "cpu_instant_event", "name": "[memory]", "pid": 7, "tid": 7,
        "ts": at, "args": args,
    }  # fmt: skip


RECORDS = [
    record(1000, 512, 16, **{"Total Allocated": 512, "Total Reserved": 4096}),
    record(1010, 1024, 32, **{"Total Allocated": 1536, "Total Reserved": 4096}),
    record(1020, -512, 16, **{"Total Allocated": 1024, "Total Reserved": 4096}),
]


def curve(trace: Trace) -> list[int | None]:
    return trace.view("memory_curve")["allocated"].to_list()


def is_a_curve(trace: Trace) -> None:
    assert curve(trace)[-3:] == [512, 1536, 1024]
    assert trace.view("memory_events").height == 2
    assert trace.view("memory_peak").height > 0


@case("45d", "limit", "3 memory records and no operator or kernel", sound=3, check=is_a_curve)
def memory_records_alone(_: Random) -> bytes:
    return document(RECORDS)


def never_falls_below_nothing(trace: Trace) -> None:
    known = [held for held in curve(trace) if held is not None]
    assert min(known, default=0) >= 0
    events = trace.view("memory_events")
    assert events["state"].to_list() == ["before the recording"] * events.height


@case("45e", "limit", "memory was allocated on a device (CUDA)", sound=len(HOST) + 3,
      check=never_falls_below_nothing)  # fmt: skip
def frees_without_allocations(dice: Random) -> bytes:
    frees = [record(1000 + 10 * n, -512 * dice.randrange(1, 9), 16 * (n + 1)) for n in range(3)]
    return document([*HOST, *frees])


def has_no_false_totals(trace: Trace) -> None:
    told = trace.memory["allocated"].drop_nulls()
    assert 0 not in told
    assert all(held is None or held >= 0 for held in curve(trace))


@case("45f", "limit", "allocated on CUDA 0: the recorded totals are wrong", sound=len(HOST) + 3)
def totals_below_nothing(_: Random) -> bytes:
    negative = [
        {**one, "args": {**one["args"], "Total Allocated": -one["args"]["Total Allocated"]}}
        for one in RECORDS
    ]
    return document([*HOST, *negative])


@case("45f", "limit", "memory was allocated on a device (CUDA)", sound=len(HOST) + 3,
      check=has_no_false_totals)  # fmt: skip
def totals_missing(_: Random) -> bytes:
    gone = ("Total Allocated", "Total Reserved")
    left = [{k: v for k, v in one["args"].items() if k not in gone} for one in RECORDS]
    return document([*HOST, *({**r, "args": args} for r, args in zip(RECORDS, left, strict=True))])


def is_from_before(trace: Trace) -> None:
    states = trace.view("memory_events")["state"].to_list()
    assert "before the recording" in states


@case(
    "45g",
    "limit",
    "memory was allocated on a device (CUDA)",
    sound=len(HOST) + 2,
    check=is_from_before,
)
def memory_from_before(_: Random) -> bytes:
    held = {"Total Allocated": 9_000, "Total Reserved": 16_384}
    return document([*HOST, record(1005, -1024, 48, **held), record(1010, 512, 16, **held)])


OWN = ("Activity Buffer Request", "Buffer Flush", "Unrecognized", "Lazy Function Loading",
       "CUPTI Activity Overhead")  # fmt: skip


def is_no_work(trace: Trace) -> None:
    assert trace.view("kernels")["count"].sum() == 50
    assert not set(OWN) & set(trace.view("operators")["name"].cast(pl.String))
    kinds = trace.tracks["kind"].gather(trace.slices.filter(_named(OWN))["track"])
    assert set(kinds.cast(pl.String)) == {"profiler"}
    assert "overhead" not in str(trace.view("idle")["what"].drop_nulls().to_list())


def _named(words: tuple[str, ...]) -> pl.Expr:
    return pl.col("name").cast(pl.String).is_in(words)


@case("46a", "accept", "the recorder's own work", sound=COUNT + 5, check=every(is_no_work, quiet))
def the_recorders_own_work(_: Random) -> bytes:
    own = [op(9 * n, cat="overhead", name=name, pid=-1, tid=0) for n, name in enumerate(OWN)]
    return document([*PROGRAM, *own])


def ends_with_the_work(trace: Trace) -> None:
    assert trace.instants.height == 2
    told = dict(trace.view("overview").select("metric", "value").rows())
    assert told["recorded"] < 1e6  # not the ten days until the second mark
    assert trace.view("steps").height == 5


@case("46b", "accept", sound=COUNT + 2, check=ends_with_the_work)
def marks_of_the_recorder(_: Random) -> bytes:
    begin = {"ph": "i", "s": "g", "name": "Iteration Start: PyTorch Profiler", "pid": "Traces",
             "tid": "Trace PyTorch Profiler", "ts": 1000}  # fmt: skip
    end = {"ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "", "ts": 10**12}
    return document([*PROGRAM, begin, end])


def is_no_event_of_the_program(trace: Trace) -> None:
    spans = trace.slices.filter(pl.col("category").cast(pl.String) == "trace")
    assert spans.height == 1
    assert "PyTorch Profiler (0)" not in set(trace.view("operators")["name"].cast(pl.String))
    assert checks(trace)["content"].startswith("155 slices")


@case("46c", "accept", sound=COUNT + 1, check=is_no_event_of_the_program)
def the_recorders_span(_: Random) -> bytes:
    span = op(0, cat="Trace", name="PyTorch Profiler (0)", pid="Spans", tid="PyTorch Profiler",
              dur=600)  # fmt: skip
    return document([*PROGRAM, span])


def is_limited(trace: Trace) -> None:
    advice = advice_of(trace)
    assert advice.health.verdict == "unusable"
    assert not advice.findings
    assert trace.view("timeline").height > 0


NOT_TORCH = "this is not a trace of PyTorch's profiler"


def foreign(category: str, **header: Any) -> bytes:
    made = moved([op(n, cat=category, name=f"task{n}", args={}) for n in range(20)])
    return json.dumps({"traceEvents": made, **header}).encode()


@case("47", "limit", NOT_TORCH, "of VizTracer", "limited view", sound=20, check=is_limited)
def viztracer(_: Random) -> bytes:
    return foreign("FEE", viztracer_metadata={"version": "1.0"}, file_info={"files": {}})


@case("47", "limit", NOT_TORCH, "Chrome's DevTools", sound=20, check=is_limited)
def chrome(_: Random) -> bytes:
    return foreign("disabled-by-default-devtools.timeline")


@case("47", "limit", NOT_TORCH, "of JAX or XLA", sound=21, check=is_limited)
def jax(_: Random) -> bytes:
    label = {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": "/device:TPU:0"}}
    made = [label, *(op(n, cat="", name=f"fusion.{n}", args={}) for n in range(20))]
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": made}).encode()


@case("47", "limit", NOT_TORCH, "of TensorFlow", sound=21, check=is_limited)
def tensorflow(_: Random) -> bytes:
    name = "/job:localhost/replica:0/task:0/device:GPU:0 Compute"
    label = {"ph": "M", "name": "process_name", "pid": 7, "args": {"name": name}}
    return json.dumps([label, *(op(n, cat="Op", args={}) for n in range(20))]).encode()


@case("47", "limit", NOT_TORCH, "of Android's systrace", sound=20, check=is_limited)
def android(_: Random) -> bytes:
    return foreign("sched", systemTraceEvents="")


@case("47", "limit", NOT_TORCH, "of Node.js", sound=20, check=is_limited)
def node(_: Random) -> bytes:
    return foreign("node,node.async_hooks")


@case("47", "limit", NOT_TORCH, "of Nsight Systems", sound=20, check=is_limited)
def nsight(_: Random) -> bytes:
    return foreign("nvtx")


@case("47", "limit", NOT_TORCH, "limited view", sound=20, check=is_limited)
def of_nobody_known(_: Random) -> bytes:
    return foreign("something")
