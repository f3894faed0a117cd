"""Snapshots of the CUDA allocator: what they tell, and what is refused."""

import gzip
import os
import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ingest.conftest import Read

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.ingest.snapshots.allocator_snapshot import read_snapshot
from selftime.ingest.snapshots.plain_pickles import read_plain_pickle
from selftime.trace import Trace
from selftime.views.memory_curve import memory_curve
from selftime.views.memory_events import memory_events
from selftime.views.memory_operators import memory_operators
from selftime.views.memory_peak import memory_peak

KIB = 1024
T = 1_700_000_000_000_000
"""The first microsecond."""

protocols = pytest.mark.parametrize("protocol", [2, 3, 4, 5])


def frames(*lines: str) -> list[dict[str, Any]]:
    """Frames from texts such as `train.py:12 step`, innermost first."""
    split = [(*line.split(" ")[0].rsplit(":", 1), line.split(" ")[1]) for line in lines]
    return [{"filename": file, "line": int(line), "name": name} for file, line, name in split]


STEP = frames("/repo/net.py:5 forward", "/lib/torch/nn/modules/module.py:9 _call_impl")
LOSS = frames("/repo/train.py:31 step")


def entry(action: str, time: int, address: int, size: int, stack: Any = None) -> dict[str, Any]:
    where = {"device_free": 0} if action == "oom" else {"addr": address}
    stack = [] if stack is None else stack
    return {"action": action, **where, "size": size, "stream": 0, "time_us": T + time,
            "frames": stack}  # fmt: skip


def block(address: int, size: int, stack: Any = None) -> dict[str, Any]:
    return {"address": address, "size": -(-size // 512) * 512, "requested_size": size,
            "state": "active_allocated", "frames": stack or []}  # fmt: skip


def segment(*blocks: dict[str, Any], size: int, device: int = 0) -> dict[str, Any]:
    return {"device": device, "address": 0x1000, "total_size": size, "stream": 0,
            "segment_type": "small", "blocks": [*blocks]}  # fmt: skip


def snapshot(*entries: dict[str, Any], segments: Any = ()) -> dict[str, Any]:
    return {"device_traces": [[*entries]], "segments": [*segments], "external_annotations": [],
            "allocator_settings": {"expandable_segments": False}}  # fmt: skip


WHOLE = snapshot(
    entry("segment_alloc", 0, 0x1000, 4 * KIB),
    entry("alloc", 1, 0x1000, 1 * KIB, STEP),
    entry("alloc", 2, 0x1400, 2 * KIB, LOSS),
    entry("free_requested", 4, 0x1000, 1 * KIB),
    entry("free_completed", 5, 0x1000, 1 * KIB),
    entry("snapshot", 6, 0, 0),
    segments=[segment(block(0x1400, 2 * KIB, LOSS), size=4 * KIB)],
)


def curve(trace: Trace) -> list[tuple[Any, ...]]:
    return memory_curve(trace).select("time", "allocated", "reserved").rows()


def sites(trace: Trace) -> list[tuple[Any, ...]]:
    table = memory_peak(trace, by="category+line")
    return table.select("bytes", "category", "file", "line", "how").rows()


@protocols
def test_reads_every_protocol(protocol: int, read: Read) -> None:
    trace = read(pickle.dumps(WHOLE, protocol), "snapshot.pickle")

    assert curve(trace) == [
        (0, 0, 0),
        (0, 0, 4 * KIB),
        (1_000, 1 * KIB, 4 * KIB),
        (2_000, 3 * KIB, 4 * KIB),
        (4_000, 2 * KIB, 4 * KIB),
    ]
    assert trace.origin == T * 1000
    assert trace.metadata["allocator_settings"] == {"expandable_segments": False}
    assert sites(trace) == [
        (2 * KIB, "unknown", "/repo/train.py", 31, "stack"),
        (1 * KIB, "unknown", "/repo/net.py", 5, "stack"),  # nobody told who released it
    ]


def test_is_read_compressed_and_from_the_cache(read: Read) -> None:
    data = gzip.compress(pickle.dumps(WHOLE))
    first = read(data, "snapshot.pickle.gz", cache=True)
    again = read(data, "snapshot.pickle.gz", cache=True)

    assert first.memory.equals(again.memory)
    assert dict(first.metadata) == dict(again.metadata)


def test_without_stacks_lines_are_unknown() -> None:
    bare = snapshot(
        entry("alloc", 1, 0x1000, 512), segments=[segment(block(0x1000, 512), size=KIB)]
    )
    trace = read_snapshot(pickle.dumps(bare), "")

    assert sites(trace) == [(512, "unknown", None, None, None)]


def test_what_the_ring_lost_was_there_before() -> None:
    data = snapshot(
        entry("free_completed", 0, 0x9000, 64),
        entry("free_requested", 1, 0x1000, 1 * KIB),
        entry("free_completed", 1, 0x1000, 1 * KIB),
        entry("alloc", 2, 0x1400, 512, STEP),
        segments=[segment(block(0x1400, 512, STEP), block(0x2000, 3 * KIB, LOSS), size=8 * KIB)],
    )
    trace = read_snapshot(pickle.dumps(data), "")

    assert [row[1] for row in curve(trace)] == [4 * KIB, 3 * KIB, 3 * KIB + 512]
    assert sites(trace) == [
        (3 * KIB, "before the recording", "/repo/train.py", 31, "stack"),
        (1 * KIB, "before the recording", None, None, None),
    ]
    events = memory_events(trace).select("size", "allocated", "released", "state", "line")
    assert events.rows() == [
        (3 * KIB, None, None, "before the recording", 31),
        (1 * KIB, None, 0, "before the recording", None),
        (512, 1_000, None, "lives on", 5),
    ]


def test_a_snapshot_without_history_tells_what_is_held() -> None:
    data = snapshot(segments=[segment(block(0x1400, 512, STEP), size=2 * KIB, device=3)])
    trace = read_snapshot(pickle.dumps(data), "")

    assert curve(trace) == [(0, 512, 2 * KIB)]
    assert sites(trace) == [(512, "before the recording", "/repo/net.py", 5, "stack")]
    assert memory_curve(trace)["device"].to_list() == [3]


def test_a_history_without_segments_is_summed() -> None:
    data = {"device_traces": [[entry("free_requested", 0, 1, 64), entry("alloc", 1, 2, 32)]]}
    trace = read_snapshot(pickle.dumps(data), "")

    assert curve(trace) == [(0, 0, None), (1_000, 32, None)]


def test_expandable_segments_and_failed_allocations() -> None:
    data = snapshot(
        entry("segment_map", 0, 0x1000, 2 * KIB),
        entry("alloc", 1, 0x1000, 1 * KIB),
        entry("oom", 2, 0, 1 << 40, LOSS),
        entry("segment_unmap", 3, 0x1000, 1 * KIB),
        segments=[segment(block(0x1000, 1 * KIB), size=1 * KIB)],
    )
    trace = read_snapshot(pickle.dumps(data), "")

    assert [row[1:] for row in curve(trace)] == [
        (0, 0), (0, 2 * KIB), (1 * KIB, 2 * KIB), (1 * KIB, 1 * KIB),
    ]  # fmt: skip
    failed = memory_events(trace).filter(pl.col("state") == "failed")
    assert failed.select("size", "file", "line").rows() == [(1 << 40, "/repo/train.py", 31)]


def test_stacks_tell_what_the_program_was_doing() -> None:
    optimizer = frames("/lib/torch/optim/adamw.py:9 _init_group", "/repo/train.py:40 step")
    engine = [
        {"filename": "engine.cpp", "line": 0, "name": "torch::autograd::Engine::thread_main()"}
    ]
    names = {"name": "ProfilerStep#1", "device": 0}
    data = snapshot(
        entry("alloc", 1, 0x1, 100, STEP),
        entry("alloc", 2, 0x2, 90, engine),
        entry("free_requested", 3, 0x1, 100, engine),
        entry("alloc", 4, 0x3, 80, optimizer),
        entry("free_requested", 6, 0x2, 90, STEP),
    ) | {
        "external_annotations": [
            {**names, "stage": "START", "time_us": T}, {**names, "stage": "END", "time_us": T + 5},
        ]
    }  # fmt: skip
    table = memory_events(read_snapshot(pickle.dumps(data), ""))

    assert table.select("size", "category", "step").rows() == [
        (100, "activation", 1),
        (90, "gradient", 1),
        (80, "optimizer state", 1),
    ]


def test_an_empty_stack_among_stacks_is_that_of_the_backward_pass() -> None:
    data = snapshot(
        entry("alloc", 1, 0x1, 100, STEP),
        entry("alloc", 2, 0x2, 90, []),
        entry("alloc", 3, 0x3, 80, []),
        entry("free_requested", 4, 0x2, 90, []),
        entry("free_requested", 5, 0x1, 100, []),
        entry("free_requested", 6, 0x3, 80, LOSS),
    )
    table = memory_events(read_snapshot(pickle.dumps(data), ""))

    assert table.select("size", "category").rows() == [
        (100, "activation"),
        (90, "temporary"),
        (80, "gradient"),
    ]


def test_lines_of_stacks_hold_what_they_called() -> None:
    inner = frames("/repo/net.py:5 forward", "/repo/train.py:31 step")
    data = snapshot(
        entry("alloc", 1, 0x1, 100, inner),
        entry("alloc", 2, 0x2, 20, LOSS),
        entry("free_requested", 3, 0x1, 100, LOSS),
        entry("alloc", 4, 0x3, 7),
    )
    table = memory_operators(read_snapshot(pickle.dumps(data), ""), by="line")
    columns = ("file", "line", "self_size_increase", "size_increase", "self_allocations")

    assert table.select(columns).rows() == [
        ("/repo/net.py", 5, 100, 100, 1),
        (None, None, 7, 7, 1),
        ("/repo/train.py", 31, -80, 20, 1),
    ]


def test_devices_are_told_apart() -> None:
    data = {"device_traces": [[entry("alloc", 1, 7, 64)], [], [entry("alloc", 0, 7, 32)]]}
    trace = read_snapshot(pickle.dumps(data), "")

    assert memory_events(trace).select("device", "size", "allocated").rows() == [
        (0, 64, 1_000),
        (2, 32, 0),
    ]


def test_entries_without_times_keep_their_order() -> None:
    entries = [entry("alloc", 0, 1, 64), entry("free_requested", 0, 1, 64)]
    bare = [{k: v for k, v in one.items() if k != "time_us"} for one in entries]
    trace = read_snapshot(pickle.dumps({"device_traces": [bare]}), "")

    assert memory_events(trace)["duration"].to_list() == [1_000]
    assert trace.repairs["count"].to_list() == [2]
    assert trace.origin is None


class Malicious:
    """Runs a command when it is loaded by what loads anything."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.path}",)


@protocols
def test_what_would_run_code_is_refused(protocol: int, tmp_path: Path) -> None:
    proof, path = tmp_path / "proof", tmp_path / "snapshot.pickle"
    path.write_bytes(pickle.dumps(WHOLE | {"segments": [Malicious(proof)]}, protocol))

    with pytest.raises(UnreadableTrace, match=r"would load `(?:posix|nt)\.system`.*any code"):
        load(path, cache=False)
    assert not proof.exists()


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (b"cos\nsystem\n(S'id'\ntR.", r"`os\.system`"),  # GLOBAL and REDUCE
        (b"(S'id'\nios\nsystem\n.", "operation that is not read"),
        (b"(X\x02\x00\x00\x00idios\nsystem\n.", r"`os\.system`"),  # INST
        (b"X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93.", r"`os\.system`"),  # STACK_GLOBAL
        (b"\x82\x01.", "an object"),  # EXT1
        (b"Pid\n.", "an object"),  # PERSID
        (b"K\x01Q.", "an object"),  # BINPERSID
        (b"}}b.", "an object"),  # BUILD
        (b"\x97.", "operation that is not read"),  # NEXT_BUFFER
        (b"\xff.", "no operation 0xff"),
        (b"]r\xff\xff\xff\x7f.", "not consecutive"),  # room for two thousand million values
        (b"\x96\xff\xff\xff\xff\x00\x00\x00\x00.", "ends too early"),  # BYTEARRAY8
        (b"]", "ends too early"),
        (b".", "damaged"),
        (b"", "ends too early"),
        (b"h\x07.", "damaged"),
        (b"]]}s.", "damaged"),
        (b"}]K\x01s.", "damaged"),
    ],
)
def test_programs_of_every_kind_are_refused(program: bytes, words: str) -> None:
    with pytest.raises(UnreadableTrace, match=words) as caught:
        read_plain_pickle(b"\x80\x04" + program)
    assert "\n" not in str(caught.value)


@protocols
def test_plain_values_are_read(protocol: int) -> None:
    value = {
        "numbers": [0, -1, 255, 65536, 1 << 40, -(1 << 63), (1 << 64) - 1, 0.5, True, False, None],
        "texts": ["", "é", "x" * 300, "y" * 70_000],
        "tuples": [(), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)],
        "many": [{"a": n, "b": [n]} for n in range(300)],
        "more": [n % 7 for n in range(20_000)],
        "addresses": [(1 << 47) + n * (1 << 33) for n in range(5_000)],
    }
    assert read_plain_pickle(pickle.dumps(value, protocol)) == value


def test_other_protocols_are_told() -> None:
    with pytest.raises(UnreadableTrace, match="protocol other than 2 to 5"):
        read_plain_pickle(b"\x80\x06.")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1, 2], "something else than a snapshot"),
        ({"state_dict": {}}, "something else than a snapshot"),
        ({"device_traces": [], "segments": []}, "without a record"),
        ({"device_traces": None}, "without a record"),
        ({"device_traces": [[{}] * 3, 7], "segments": [{}]}, None),
    ],
)
def test_other_pickles_are_told(value: Any, words: str | None) -> None:
    data = pickle.dumps(value)
    if words is None:
        assert read_snapshot(data, "").memory["bytes"].to_list() == [0, 0]
        return
    with pytest.raises(UnreadableTrace, match=words):
        read_snapshot(data, "")


def test_lists_that_repeat_without_end_are_refused() -> None:
    entries = [entry("alloc", 0, 1, 1)] * 2_000
    with pytest.raises(UnreadableTrace, match="repeats one list many times"):
        read_snapshot(pickle.dumps({"device_traces": [entries] * 500}), "")


odd = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["alloc", "oom", "free_requested", "segment_alloc", "active_allocated"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["action", "addr", "size", "time_us", "frames", "filename", "line", "name",
                         "blocks", "state", "address", "total_size", "device", "history", "stage"]),
        inner, max_size=6,
    ),
    max_leaves=20,
)  # fmt: skip


@given(odd, odd, odd)
def test_odd_values_are_unknown_and_never_an_error(traces: Any, segments: Any, marks: Any) -> None:
    value = {"device_traces": traces, "segments": segments, "external_annotations": marks}
    try:
        trace = read_snapshot(pickle.dumps(value), "")
    except UnreadableTrace:
        return
    memory_events(trace)
    memory_peak(trace)


@given(st.integers(0, 10_000), st.integers(0, 255), st.sampled_from([2, 4, 5]))
def test_damage_is_told_in_one_sentence(place: int, byte: int, protocol: int) -> None:
    data = bytearray(pickle.dumps(WHOLE, protocol))
    data[2 + place % (len(data) - 2)] = byte
    try:
        told = repr(read_snapshot(bytes(data), "(damaged)"))
    except UnreadableTrace as error:
        told = str(error)
    assert "\n" not in told


@given(st.integers(0, 10_000))
def test_a_cut_snapshot_is_refused(length: int) -> None:
    data = pickle.dumps(WHOLE)
    with pytest.raises(UnreadableTrace, match=r"ends too early|other than"):
        read_snapshot(data[: length % len(data)], "")
