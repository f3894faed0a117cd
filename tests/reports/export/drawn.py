"""Traces to export: drawn ones, one with a thing of every kind, one with hostile names."""

import json
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from selftime.ingest.load import load
from selftime.testing import sketch
from selftime.trace import Trace

LANES: Final = ("python 1", "cpu 1", "cpu 2", "call 1", "mark 1", "gpu 7", "gpu 1.7", "copy 8")
LETTERS: Final = "a = aten::mm; input_shapes = [[2, 3], []]; sequence = 4\nk = void gemm<float>()\n"


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """Nested, crossing and overlapping slices on several threads, streams and devices."""
    drawn = draw(st.lists(st.tuples(st.sampled_from(LANES), st.text("abkm  ", max_size=20))))
    return sketch(LETTERS + "\n".join(f"{lane} | {text}" for lane, text in drawn))


def read(path: Path, events: list[dict[str, Any]], **keys: Any) -> Trace:
    """The trace of some events, written to a file and read."""
    path.write_text(json.dumps({"schemaVersion": 1, **keys, "traceEvents": events}))
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    return trace


HOSTILE: Final = (
    '"',
    "\\",
    "a\nb",
    "\x00",
    "\x7f",
    "\u202e",
    "</script>",
    "=1+1",
    "é😀",
    ";",
    " ",
    "",
)


def everything(path: Path) -> Trace:
    """Slices that cross and overlap, one without an end, marks, samples, allocations, arrows."""

    def host(name: str, ts: float, dur: float | None, cat: str = "cpu_op", **args: Any) -> Any:
        event = {"ph": "X", "cat": cat, "name": name, "pid": 7, "tid": 9, "ts": ts, "args": args}
        return event if dur is None else {**event, "dur": dur}

    def work(name: str, ts: float, dur: float, **args: Any) -> Any:
        told = {"device": 0, "stream": 3, "grid": [4, 2, 1], **args}
        where = {"pid": 0, "tid": 3, "cat": "kernel"}
        return {"ph": "X", "name": name, **where, "ts": ts, "dur": dur, "args": told}

    def counted(ts: float, **series: Any) -> Any:
        return {"ph": "C", "name": "load", "pid": 7, "tid": 0, "ts": ts, "args": series}

    def allocated(ts: float, size: int, total: int) -> Any:
        told = {"Bytes": size, "Addr": 64, "Total Allocated": total, "Total Reserved": 4096}
        where = {"pid": 7, "tid": 9, "ts": ts, "s": "t", "cat": "cpu_instant_event"}
        args = {**told, "Device Type": 1, "Device Id": 0}
        return {"ph": "i", "name": "[memory]", **where, "args": args}

    forward: dict[str, Any] = {
        "Sequence number": 5,
        "Fwd thread id": 0,
        "External id": 1,
        "Input Dims": [[2, 3], []],
    }
    backward: dict[str, Any] = {"Sequence number": 5, "Fwd thread id": 1, "External id": 2}
    events = [
        {"name": "process_name", "ph": "M", "pid": 7, "args": {"name": "python"}},
        {"name": "thread_name", "ph": "M", "pid": 7, "tid": 9, "args": {"name": "thread 9"}},
        host("ProfilerStep#1", 0.0, 50.125, "user_annotation"),
        host("train.py(3): main", 0.5, 80.0, "python_function", **{"Python id": 1}),
        host("aten::mm.out", 1.001, 9.5, **forward),
        host("cudaLaunchKernel", 2.0, 3.0, "cuda_runtime", correlation=11),
        host("cudaGraphLaunch", 6.0, 3.0, "cuda_runtime", correlation=12),
        host("MmBackward0", 30.0, 9.0, **backward),
        host("never ended", 60.0, None),
        work("gemm", 8.0, 10.0, correlation=11, **{"est. achieved occupancy %": 12.5}),
        work("overlaps", 15.0, 10.0, correlation=12),
        work("within neither", 17.0, 30.0, correlation=12, bytes=-1),
        *(counted(float(at), busy=at / 3, idle=None) for at in range(4)),
        *(allocated(5.0 + at, 100, 100 * at) for at in range(3)),
        {"ph": "i", "name": "mark", "s": "g", "pid": 7, "tid": 9, "ts": 20.25, "cat": "note"},
        *(host(name, 61.0 + 2 * at, 1.5) for at, name in enumerate(HOSTILE)),
    ]
    return read(path, events, baseTimeNanoseconds=1_712_000_000_000_000_000, deviceProperties=[])


REAL: Final = (
    "a100-2024-nccl-2ranks",
    "b200-2025-vllm-eager",
    "mi300-2025-resnet-ddp-recompute",
    "mi300-2026-sglang-decode-graph-replay",
    "v100-2021-resnet50-workers0.pt.trace",
    "v100-2024-resnet-nanoseconds",
    "a100-2022-diff-test",
)
