"""However a trace is laid out and packed, its tables are the same."""

import gzip
import json
import os
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import pytest
import zstandard
from polars.testing import assert_frame_equal

from selftime.ingest import decoding_workers
from selftime.ingest.text import trace_parsing as chunking
from selftime.trace import Trace

Document = dict[str, Any]


class Read(Protocol):
    def __call__(self, data: bytes, name: str = ..., *, cache: bool = ...) -> Trace: ...


def kineto(document: Document) -> str:
    """As PyTorch writes it: keys of the file on lines of their own, one event after another."""
    keys = {key: value for key, value in document.items() if key != "traceEvents"}
    head = ",\n".join(f'  "{key}": {json.dumps(value)}' for key, value in keys.items())
    events = ",".join(
        "\n  {\n    " + ", ".join(f'"{k}": {json.dumps(v)}' for k, v in event.items()) + "\n  }"
        for event in document["traceEvents"]
    )
    return f'{{\n{head},\n  "traceEvents": [{events}\n  ]\n}}\n'


def events_at(place: int) -> Callable[[Document], str]:
    def written(document: Document) -> str:
        keys = [key for key in document if key != "traceEvents"]
        keys.insert(place % (len(keys) + 1), "traceEvents")
        return json.dumps({key: document[key] for key in keys})

    return written


LAYOUTS: dict[str, Callable[[Document], str]] = {
    "json.dumps": json.dumps,
    "kineto": kineto,
    "one line": lambda d: json.dumps(d, separators=(",", ":")),
    "indented": lambda d: json.dumps(d, indent=4),
    "indented by tabs": lambda d: json.dumps(d, indent="\t"),
    "keys sorted": lambda d: json.dumps(d, sort_keys=True),
    "events first": events_at(0),
    "events last": events_at(-1),
    "CRLF": lambda d: kineto(d).replace("\n", "\r\n"),
    "BOM": lambda d: "\ufeff" + kineto(d),
    "not ASCII": lambda d: json.dumps(d, ensure_ascii=False),
}


def members(data: bytes) -> bytes:
    cuts = [0, 1, len(data) // 3, len(data) // 2, len(data)]
    return b"".join(gzip.compress(data[a:b]) for a, b in pairwise(cuts))


PACKINGS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "gzip members": members,
    "zstd": zstandard.compress,
    "zstd frames": lambda data: zstandard.compress(data[:500]) + zstandard.compress(data[500:]),
}


def assert_same(found: Trace, expected: Trace) -> None:
    for name, table in expected.tables().items():
        assert_frame_equal(found.tables()[name], table, categorical_as_str=True)
    assert dict(found.metadata) == dict(expected.metadata)
    assert found.origin == expected.origin


@pytest.fixture
def check(read: Read) -> Callable[[bytes, Trace], None]:
    """Equals the expected tables; likewise under an unknown name, and out of the cache, twice."""

    def checked(data: bytes, expected: Trace) -> None:
        for name in ("trace.json", "unknown", "trace.json.gz"):
            assert_same(read(data, name), expected)
        for _ in range(3):
            assert_same(read(data, "kept.json", cache=True), expected)

    return checked


@pytest.mark.parametrize("packing", PACKINGS.values(), ids=PACKINGS)
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.sweep(6)
def test_tables_do_not_depend_on_the_layout(
    layout: Callable[[Document], str],
    packing: Callable[[bytes], bytes],
    document: Document,
    read: Read,
    check: Callable[[bytes, Trace], None],
) -> None:
    expected = read(json.dumps(document).encode())
    assert expected.repairs.is_empty()
    check(packing(layout(document).encode()), expected)


def test_the_tables_are_those_of_the_document(document: Document, read: Read) -> None:
    trace = read(json.dumps(document).encode())
    times = [e["ts"] for e in document["traceEvents"] if "ts" in e and e["ph"] in "XiC"]
    origin = min(times)
    complete = sorted(
        (
            (e["name"], round((e["ts"] - origin) * 1000), round(e["dur"] * 1000))
            for e in document["traceEvents"]
            if e["ph"] == "X"
        ),
        key=lambda row: row[1:],
    )
    found = trace.slices.select("name", "start", "duration").rows()
    assert sorted(found, key=lambda row: row[1:]) == complete
    assert trace.origin == document["baseTimeNanoseconds"] + round(origin * 1000)
    assert trace.metadata["traceName"] == document["traceName"]
    assert trace.memory["bytes"].to_list() == [128, 128]
    assert trace.counters["value"].to_list() == [1400.5, 1400.5]
    launched = trace.slices.filter(trace.slices["launch"].is_not_null())
    calls = trace.slices["name"].gather(launched["launch"])
    assert calls.to_list() == ["cudaLaunchKernel"] * 2


def test_a_bare_array_has_the_same_tables_without_the_header(
    document: Document, check: Callable[[bytes, Trace], None], read: Read
) -> None:
    only = {"traceEvents": document["traceEvents"]}
    expected = read(json.dumps(only).encode())
    for indent in (None, 0, 2):
        check(json.dumps(only["traceEvents"], indent=indent).encode(), expected)


@pytest.mark.parametrize("size", [1, 60, 200, 333, 700, 2000])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.sweep(6)
def test_tables_do_not_depend_on_where_chunks_are_cut(
    size: int,
    layout: Callable[[Document], str],
    document: Document,
    read: Read,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = layout(document).encode()
    expected = read(data)
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", size)
    assert_same(read(data), expected)


def lookalikes(document: Document) -> Document:
    """Strings and nested values of the document hold what looks like events and their ends."""
    inner = {"ph": "X", "name": "inner", "pid": 1, "tid": 1, "ts": 5, "dur": 1}
    events = [
        {
            **event,
            "args": {
                **event.get("args", {}),
                "list": [inner] * 3,
                "deep": {"list": [{"a": 1}], "more": [[inner], inner]},
                "text": '}, {"ph": "X", "name": "text"}]}',
            },
        }
        for event in document["traceEvents"]
        if event["ph"] == "X"
    ]
    return {**document, "traceEvents": events, "deviceProperties": [inner, inner]}


@pytest.mark.parametrize("size", [1, 100, 300, 900])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.sweep(5)
def test_what_looks_like_an_event_within_one_is_none(
    size: int,
    layout: Callable[[Document], str],
    document: Document,
    read: Read,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    odd = lookalikes(document)
    data = layout(odd).encode()
    expected = read(data)
    names = sorted(event["name"] for event in odd["traceEvents"])
    assert sorted(expected.slices["name"].to_list()) == names
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", size)
    found = read(data)
    assert found.repairs.is_empty()
    assert_same(found, expected)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="one core: no process is started")
def test_several_processes_read_the_same(
    document: Document, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = json.dumps(lookalikes(document)).encode()
    expected = read(data)
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", 700)
    monkeypatch.setattr(decoding_workers, "_MIN_FILE_BYTES_FOR_PROCESSES", 0)
    monkeypatch.setenv("SELFTIME_WORKERS", "2")
    assert_same(read(data), expected)
