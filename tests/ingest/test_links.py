"""Which row belongs to which: in drawings of one rule each, and in a recording made here."""

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from selftime.ingest.load import load
from selftime.trace import Trace

Event = dict[str, Any]
Read = Callable[[bytes], Trace]


def row(category: str, name: str, start: float, dur: float, tid: int = 1, **args: Any) -> Event:
    where = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid}
    return {**where, "ts": start, "dur": dur, "args": args}


def call(start: float, correlation: Any, tid: int = 1) -> Event:
    return row("cuda_runtime", "cudaLaunchKernel", start, 2, tid, correlation=correlation)


def kernel(start: float, correlation: Any, stream: int = 7) -> Event:
    told = {"device": 0, "stream": stream, "correlation": correlation}
    return {**row("kernel", "k", start, 5, stream, **told), "pid": 0}


def read_events(read: Read, *events: Event) -> Trace:
    return read(json.dumps({"traceEvents": events}).encode())


def name_of(trace: Trace, ids: pl.Series) -> list[str | None]:
    names = trace.slices["name"].to_list()
    return [None if at is None else names[at] for at in ids.to_list()]


def test_work_belongs_to_the_operator_around_its_launch(read: Read) -> None:
    trace = read_events(
        read,
        row("user_annotation", "step", 0, 100),
        row("cpu_op", "outer", 1, 50),
        row("cpu_op", "inner", 2, 20),
        call(5, 11),
        call(30, 12),
        call(60, 13),
        *(kernel(200 + n, n) for n in (13, 12, 11)),
    )
    operators = name_of(trace, trace.device_args["operator"])
    correlations = trace.device_args["correlation"].to_list()
    assert dict(zip(correlations, operators, strict=True)) == {11: "inner", 12: "outer", 13: "step"}


def test_a_graph_launch_has_many_kernels(read: Read) -> None:
    trace = read_events(read, call(0, 5), *(kernel(10 * n, 5) for n in range(1, 4)))
    assert trace.slices["launch"].to_list() == [None, 0, 0, 0]


@pytest.mark.parametrize("number", [0, -1, None, "x"])
def test_what_is_no_correlation_joins_nothing(number: object, read: Read) -> None:
    trace = read_events(read, call(0, number), kernel(10, number))
    assert trace.slices["launch"].null_count() == 2


def test_correlations_as_text(read: Read) -> None:
    trace = read_events(read, call(0, "7"), kernel(10, 7))
    assert trace.slices["launch"].to_list() == [None, 0]


def test_launches_that_share_a_correlation_are_not_joined(read: Read) -> None:
    trace = read_events(read, call(0, 7), call(5, 7), kernel(10, 7))
    assert trace.slices["launch"].null_count() == 3
    assert trace.repairs.select("fault", "count").rows() == [
        ("launches that share a correlation id: not linked", 2)
    ]


def test_work_before_its_launch_is_joined_and_reported(read: Read) -> None:
    trace = read_events(read, call(10, 7), kernel(9, 7))
    assert trace.slices["launch"].drop_nulls().to_list() == [1]
    assert trace.repairs["fault"].to_list() == ["device work that starts before its launch"]


def test_overlapping_work_keeps_its_times(read: Read) -> None:
    trace = read_events(read, kernel(0, 1), kernel(4.5, 2), kernel(9.9, 3))
    assert trace.slices["duration"].to_list() == [5000, 5000, 5000]
    assert trace.slices["parent"].null_count() == 3
    assert trace.slices["self"].sum() == 14_500
    assert trace.clipped.is_empty()


def test_operators_belong_to_frames_and_modules_of_their_thread(read: Read) -> None:
    frame = "python_function"
    trace = read_events(
        read,
        row(frame, "train.py(1): main", 0, 100, **{"Python id": 1}),
        row(
            frame,
            "nn.Module: Net_0",
            5,
            80,
            **{"Python id": 2, "Python parent id": 1, "Python module id": 0},
        ),
        row(frame, "net.py(9): forward", 6, 70, **{"Python id": 3, "Python parent id": 2}),
        row("cpu_op", "mm", 10, 5),
        row("cpu_op", "after", 90, 5),
        row("cpu_op", "elsewhere", 10, 5, tid=2),
    )
    found = trace.op_args.with_columns(pl.Series("name", name_of(trace, trace.op_args["id"])))
    frames = dict(zip(found["name"], name_of(trace, found["frame"]), strict=True))
    assert frames == {"mm": "net.py(9): forward", "after": "train.py(1): main", "elsewhere": None}
    modules = dict(zip(found["name"], name_of(trace, found["module"]), strict=True))
    assert modules == {"mm": "nn.Module: Net_0", "after": None, "elsewhere": None}
    callers = name_of(trace, trace.frame_args["caller"])
    assert callers == [None, "train.py(1): main", "nn.Module: Net_0"]


@pytest.mark.parametrize(
    ("folder", "file"), [("site-packages/vllm", "site-packages/vllm/linear.py"), ("", "tensor.py")]
)
def test_a_librarys_handler_of_operators_hands_them_on(folder: str, file: str, read: Read) -> None:
    frame, below = "python_function", f"{folder}/" if folder else ""
    handler = f"{below}tensor.py(122): __torch_function__"
    trace = read_events(
        read,
        row(frame, "site-packages/vllm/linear.py(20): apply", 5, 80, **{"Python id": 2}),
        row(frame, handler, 6, 70, **{"Python id": 3, "Python parent id": 2}),
        row("cpu_op", "linear", 10, 5),
        row(frame, handler, 90, 5, **{"Python id": 4}),
        row("cpu_op", "alone", 91, 1),
    )
    files = dict(zip(name_of(trace, trace.lines["id"]), trace.lines["file"], strict=True))
    assert files == {"linear": file, "alone": f"{below}tensor.py"}


def test_memory_belongs_to_the_operator_at_its_time(read: Read) -> None:
    marks: list[Event] = [
        {"ph": "i", "cat": "cpu_instant_event", "name": "[memory]", "pid": 1, "tid": tid, "ts": at,
         "args": {"Bytes": size, "Device Type": 0, "Device Id": -1}}
        for at, size, tid in ((3, 8, 1), (12, -8, 1), (3, 16, 2))
    ]  # fmt: skip
    trace = read_events(read, row("cpu_op", "outer", 0, 10), row("cpu_op", "inner", 2, 4), *marks)
    found = dict(zip(trace.memory["bytes"], name_of(trace, trace.memory["operator"]), strict=True))
    assert found == {8: "inner", -8: None, 16: None}


def test_kernels_belong_to_the_record_of_their_collective(read: Read) -> None:
    told: dict[str, Any] = {
        "Collective name": "allreduce",
        "Group size": 2,
        "Process Group Name": "0",
    }
    device = {**kernel(50, 3), "name": "ncclDevKernel_AllReduce"}
    device["args"] = {**device["args"], **told}
    trace = read_events(
        read, row("cpu_op", "record_param_comms", 0, 20, **told), call(5, 3), device
    )
    assert trace.collective_args["record"].to_list() == [None, 0]
    assert trace.collective_args["collective"].to_list() == ["allreduce"] * 2


def test_backward_belongs_to_the_latest_forward_of_its_number(read: Read) -> None:
    def op(name: str, start: float, thread: int, number: int = 8) -> Event:
        return row("cpu_op", name, start, 5, **{"Sequence number": number, "Fwd thread id": thread})

    trace = read_events(
        read,
        op("select", 0, 0),
        op("conv", 10, 0),
        op("ConvBackward0", 20, 1),
        op("again", 30, 0),
        op("LaterBackward0", 40, 1),
        op("OtherBackward0", 50, 1, number=9),
    )
    forward = dict(
        zip(
            name_of(trace, trace.op_args["id"]),
            name_of(trace, trace.op_args["forward"]),
            strict=True,
        )
    )
    assert forward == {
        **dict.fromkeys(("select", "conv", "again", "OtherBackward0")),
        "ConvBackward0": "conv",
        "LaterBackward0": "again",
    }


RECORDED = """
import sys
import torch

network = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
with torch.profiler.profile(record_shapes=True, with_stack=True) as recorder:
    for _ in range(3):
        network(torch.randn(4, 8)).sum().backward()
recorder.export_chrome_trace(sys.argv[1])
"""


@pytest.mark.torch
def test_a_recording_made_here(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    path = tmp_path / "trace.json"
    # A process of its own: what other tests do with torch here may hide the frames of modules.
    command = [sys.executable, "-c", RECORDED, str(path)]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - a test's own program
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    assert trace.repairs.is_empty()

    written = json.loads(path.read_text(), parse_float=Decimal)  # a float has too few digits
    flows: dict[Any, dict[str, Decimal]] = {}
    for event in written["traceEvents"]:
        if event.get("cat") == "fwdbwd":
            flows.setdefault(event["id"], {})[event["ph"]] = event["ts"]
    zero = (trace.origin or 0) - written["baseTimeNanoseconds"]
    expected = {(round(f["s"] * 1000) - zero, round(f["f"] * 1000) - zero) for f in flows.values()}
    starts = trace.slices.select("id", "start").update(trace.clipped, on="id")["start"]
    linked = trace.op_args.filter(pl.col("forward").is_not_null())
    found = set(zip(starts.gather(linked["forward"]), starts.gather(linked["id"]), strict=True))
    assert len(expected) >= 9
    assert expected <= found

    complete = [e for e in written["traceEvents"] if e["ph"] == "X"]
    assert trace.slices.height == len(complete)
    inside = trace.op_args.with_columns(pl.Series("name", name_of(trace, trace.op_args["id"])))
    linear = inside.filter(pl.col("name") == "aten::linear")
    assert set(name_of(trace, linear["module"])) == {"nn.Module: Linear_0", "nn.Module: Linear_1"}
