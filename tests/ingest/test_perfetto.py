"""Traces in Perfetto's format: selftime's own exports, and what PyTorch after 2.13 writes."""

import gzip
import os
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from tests.ingest.conftest import Read
from tests.reports.export.drawn import everything

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.ingest.perfetto.protobuf_messages import is_perfetto_trace
from selftime.ingest.text.event_positions import load_trace_with_event_positions
from selftime.reports.export import export
from selftime.reports.export.protobuf_encoding import encode_field
from selftime.trace import Trace

HOST, STREAM = 11, 12


@pytest.fixture
def real_traces() -> Path:
    folder = os.environ.get("SELFTIME_TRACES")
    if not folder:
        pytest.skip("needs real traces: set SELFTIME_TRACES to their folder")
    return Path(folder)


def packet(*parts: bytes) -> bytes:
    return encode_field(1, b"".join((*parts, encode_field(10, 1))))


def annotation(key: str, value: Any) -> bytes:
    name = encode_field(10, key)
    if isinstance(value, list):
        return encode_field(
            4, name + b"".join(encode_field(12, encode_field(4, one)) for one in value)
        )
    return encode_field(
        4, name + (encode_field(4, value) if isinstance(value, int) else encode_field(6, value))
    )


def begin(time: int, track: int, name: int, category: int, **args: Any) -> bytes:
    told = b"".join(annotation(key, value) for key, value in args.items())
    event = (
        encode_field(9, 1)
        + encode_field(11, track)
        + encode_field(10, name)
        + encode_field(3, category)
        + told
    )
    return packet(encode_field(8, time), encode_field(13, 2), encode_field(11, event))


def end(time: int, track: int) -> bytes:
    return packet(
        encode_field(8, time), encode_field(11, encode_field(9, 2) + encode_field(11, track))
    )


def interned(kind: int, *texts: str) -> bytes:
    return b"".join(
        encode_field(kind, encode_field(1, number) + encode_field(2, text))
        for number, text in enumerate(texts, 1)
    )


def thread(uuid: int, parent: int, pid: int, tid: int, name: str) -> bytes:
    told = encode_field(1, pid) + encode_field(2, tid) + encode_field(5, name)
    return packet(
        encode_field(60, encode_field(1, uuid) + encode_field(5, parent) + encode_field(4, told))
    )


def process(uuid: int, pid: int, name: str) -> bytes:
    return packet(
        encode_field(
            60,
            encode_field(1, uuid) + encode_field(3, encode_field(1, pid) + encode_field(6, name)),
        )
    )


def pytorch() -> bytes:
    """Two launches and their kernels, one right behind the other: all begins, then all ends."""
    names = interned(2, "cudaLaunchKernel", "gemm", "relu")
    cats = interned(1, "cuda_runtime", "kernel")
    return b"".join(
        [
            process(1, 70, "python"),
            thread(HOST, 1, 70, 71, "thread 71"),
            process(2, 5000, "GPU 0"),
            thread(STREAM, 2, 5000, 7, "stream 7"),
            packet(encode_field(13, 1), encode_field(12, names + cats)),
            begin(1_000, HOST, 1, 1, correlation=5),
            begin(3_000, HOST, 1, 1, correlation=6),
            end(2_500, HOST),
            end(4_000, HOST),
            begin(5_000, STREAM, 2, 2, correlation=5, device=0, stream=7, grid=[4, 2, 1]),
            begin(9_001, STREAM, 3, 2, correlation=6, device=0, stream=7, grid=[1, 1, 1]),
            end(9_001, STREAM),
            end(12_000, STREAM),
        ]
    )


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_what_pytorch_writes(packed: Any, read: Read) -> None:
    trace = read(packed(pytorch()), "trace.pftrace")
    rows = trace.slices.select("name", "category", "start", "duration", "launch").rows()
    assert rows == [
        ("cudaLaunchKernel", "cuda_runtime", 0, 1_500, None),
        ("cudaLaunchKernel", "cuda_runtime", 2_000, 1_000, None),
        ("gemm", "kernel", 4_000, 4_001, 0),
        ("relu", "kernel", 8_001, 2_999, 1),
    ]
    assert trace.device_args["grid"].to_list() == [[4, 2, 1], [1, 1, 1]]
    assert trace.tracks.select("kind", "tid", "name", "process_name", "stream").rows() == [
        ("host", "71", "thread 71", "python", None),
        ("device", "7", "stream 7", "GPU 0", 7),
    ]
    assert trace.repairs.height == 0


def test_our_own_export_gives_the_same_slices(tmp_path: Path) -> None:
    trace = everything(tmp_path / "trace.json")
    export(trace, tmp_path / "a.pftrace.gz", to="perfetto")
    found = load(tmp_path / "a.pftrace.gz", cache=False)
    assert isinstance(found, Trace)
    assert_frame_equal(found.slices, trace.slices, categorical_as_str=True)
    assert found.origin == trace.origin
    assert_frame_equal(found.view("steps"), trace.view("steps"))
    for name in ("op_args", "call_args", "frame_args"):
        assert_frame_equal(found.tables()[name], trace.tables()[name], categorical_as_str=True)
    assert found.instants.select("time", "name").rows() == [(20_250, "mark")]
    assert found.counters.filter(pl.col("name") == "load busy").height == 4


@pytest.mark.sweep(1)
@pytest.mark.parametrize("name", ["h100-2025-vit", "b200-2025-vllm-eager", "mi300-2025-bert-small"])
def test_a_real_trace_comes_back(name: str, real_traces: Path, tmp_path: Path) -> None:
    trace = load(real_traces / f"{name}.json.gz")
    assert isinstance(trace, Trace)
    export(trace, tmp_path / "a.pftrace", to="perfetto")
    found = load(tmp_path / "a.pftrace", cache=False)
    assert isinstance(found, Trace)
    assert_frame_equal(found.slices, trace.slices, categorical_as_str=True)
    for view in ("steps", "launches", "idle", "copies"):
        assert_frame_equal(found.view(view), trace.view(view))


def test_a_file_that_was_cut_off_says_so(read: Read) -> None:
    trace = read(pytorch()[:-3])
    assert trace.slices.height == 4
    assert trace.slices["duration"].null_count() == 1
    assert "a packet that ends too early: what follows is left out" in trace.repairs["fault"]


def test_a_file_without_events_is_refused(read: Read) -> None:
    with pytest.raises(UnreadableTrace, match="cannot be read"):
        read(process(1, 70, "python"))


@pytest.mark.parametrize(
    ("odd", "why"),
    [
        (packet(encode_field(50, b"x")), "its packets are compressed: give the trace as JSON"),
        (
            packet(encode_field(8, 5), encode_field(58, 64), encode_field(11, encode_field(9, 1))),
            "its times are relative to a clock of their own: give the trace as JSON",
        ),
    ],
)
def test_what_is_not_supported_is_one_sentence(odd: bytes, why: str, read: Read) -> None:
    with pytest.raises(UnreadableTrace, match=why):
        read(pytorch() + odd)


@pytest.mark.parametrize(
    "head",
    [b"", b"\n", b"\n\x00", b'\n{"traceEvents": []}', b"\n\x0b\x08\x01\x12\x07/host:C", b"\nabc"],
)
def test_other_files_are_not_taken_for_it(head: bytes) -> None:
    assert not is_perfetto_trace(head)


@given(st.data())
def test_a_damaged_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    text = bytearray(pytorch())
    for _ in range(data.draw(st.integers(1, 6))):
        text[data.draw(st.integers(0, len(text) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("damaged") / "a.pftrace"
    path.write_bytes(text)
    try:
        found = load(path, cache=False)
    except UnreadableTrace:
        return
    assert isinstance(found, Trace)


def test_a_number_may_come_to_mean_another_text(read: Read) -> None:
    def texts(of: str) -> bytes:
        return packet(encode_field(12, interned(2, of) + interned(1, "cpu_op") + interned(29, of)))

    def told(time: int) -> bytes:
        argument = encode_field(4, encode_field(10, "Input type") + encode_field(17, 1))
        event = (
            encode_field(9, 1)
            + encode_field(11, HOST)
            + encode_field(10, 1)
            + encode_field(3, 1)
            + argument
        )
        return packet(encode_field(8, time), encode_field(11, event)) + end(time + 5, HOST)

    head = process(1, 70, "python") + thread(HOST, 1, 70, 71, "main")
    trace = read(
        head + texts("one") + told(10) + packet(encode_field(13, 1)) + texts("two") + told(20)
    )
    assert trace.slices["name"].to_list() == ["one", "two"]
    assert trace.op_args["input_types"].to_list() == ["one", "two"]


def test_commands_that_copy_text_say_how_to_get_some(tmp_path: Path) -> None:
    (tmp_path / "a.pftrace").write_bytes(pytorch())
    with pytest.raises(UnreadableTrace, match="in Perfetto's format: make JSON of it with"):
        load_trace_with_event_positions(tmp_path / "a.pftrace")
