"""What the tests of reading share: a small whole trace, and ways to write and read it."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from selftime.ingest.load import load
from selftime.trace import Trace

Event: TypeAlias = dict[str, Any]
Document: TypeAlias = dict[str, Any]
Read: TypeAlias = Callable[..., Trace]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Writes bytes to a file and reads the trace in it."""

    def write_and_read(data: bytes, name: str = "trace.json", *, cache: bool = False) -> Trace:
        path = tmp_path / name
        path.write_bytes(data)
        trace = load(path, cache=cache)
        assert isinstance(trace, Trace)
        return trace

    return write_and_read


@pytest.fixture(params=["plain", "gzip"])
def packed(request: pytest.FixtureRequest) -> Callable[[bytes], bytes]:
    """The text as it is, and compressed."""
    return gzip.compress if request.param == "gzip" else bytes


@pytest.fixture
def document() -> Document:
    """Two steps of a training on one device, with a thing of every kind."""
    events: list[Event] = [
        {"name": "process_name", "ph": "M", "pid": 7, "args": {"name": "python"}},
        {"name": "thread_name", "ph": "M", "pid": 7, "tid": 9, "args": {"name": "thread 9 (main)"}},
    ]
    for step in range(2):
        events += _step(step, 1000.0 * step)
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "H100", "totalGlobalMem": 1 << 36, "numSms": 132}],
        "distributedInfo": {"backend": "nccl", "rank": 1, "world_size": 2},
        "traceEvents": events,
        "traceName": 'C:\\traces\\"one"\n',
        "baseTimeNanoseconds": 1_712_000_000_000_000_000,
    }


def _step(number: int, at: float) -> list[Event]:
    def host(category: str, name: str, start: float, dur: float, **args: Any) -> Event:
        where = {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 9}
        return {**where, "ts": round(at + start, 3), "dur": dur, "args": args}

    base, launch = 10 * number, 100 * number + 1
    shape = [[8, 3], [3, 4]]
    stream = {"device": 0, "stream": 7, "correlation": launch, "External id": base + 2}
    kernel = {**stream, "grid": [4, 1, 1], "block": [128, 1, 1], "est. achieved occupancy %": 50}
    return [
        host("user_annotation", f"ProfilerStep#{number}", 0.0, 900.125),
        host("python_function", "train.py(12): step", 1.0, 890.0, **{"Python id": base + 1}),
        host(
            "cpu_op",
            "aten::linear",
            10.001,
            80.5,
            **{"External id": base + 1, "Sequence number": number, "Fwd thread id": 0},
        ),
        host(
            "cpu_op", "aten::addmm", 12.002, 60.25, **{"External id": base + 2, "Input Dims": shape}
        ),
        host("cuda_runtime", "cudaLaunchKernel", 20.0, 5.0, correlation=launch),
        {
            "ph": "X",
            "cat": "kernel",
            "name": "sgemm, [{x}]",
            "pid": 0,
            "tid": 7,
            "ts": at + 40.5,
            "dur": 30.75,
            "args": kernel,
        },
        {"ph": "s", "id": launch, "pid": 7, "tid": 9, "ts": at + 20, "cat": "ac2g", "name": "ac2g"},
        {"ph": "f", "id": launch, "pid": 0, "tid": 7, "ts": at + 40.5, "cat": "ac2g", "bp": "e"},
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 7,
            "tid": 9,
            "ts": at + 14,
            "args": {"Bytes": 128, "Addr": 4096, "Device Type": 1, "Device Id": 0},
        },
        {"ph": "C", "name": "clock", "pid": 7, "tid": 9, "ts": at + 30, "args": {"MHz": 1400.5}},
        host(
            "cpu_op",
            "AddmmBackward0",
            200.0,
            40.0,
            **{"External id": base + 3, "Sequence number": number, "Fwd thread id": 1},
        ),
    ]


@pytest.fixture
def text(document: Document) -> bytes:
    """The document as `json.dumps` writes it."""
    return json.dumps(document).encode()
