"""Section J of the catalogue: snapshots of the CUDA allocator."""

import pickle
import struct
from random import Random
from typing import Any, Final

import polars as pl
from tests.ingest.rough.case import Case, case

from selftime.trace import Trace

LEFT_OUT = {"53d": "a gigabyte takes minutes and some 12 GB of memory: too much for a test"}

KIB: Final = 1024
T: Final = 1_700_000_000_000_000
STACK: Final = [{"filename": "/repo/net.py", "line": 5, "name": "forward"}]


def entry(action: str, at: int, address: int, size: int, stack: Any = None) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": T + at,
            "frames": STACK if stack is None else stack}  # fmt: skip


def block(address: int, size: int) -> dict[str, Any]:
    return {"address": address, "size": size, "requested_size": size, "state": "active_allocated",
            "frames": STACK}  # fmt: skip


def segment(*blocks: dict[str, Any], size: int = 64 * KIB) -> dict[str, Any]:
    return {"device": 0, "address": 0, "total_size": size, "stream": 0, "segment_type": "large",
            "blocks": [*blocks]}  # fmt: skip


def snapshot(*entries: dict[str, Any], segments: Any = ()) -> dict[str, Any]:
    return {"device_traces": [[*entries]], "segments": [*segments], "external_annotations": []}


WHOLE: Final = snapshot(
    entry("segment_alloc", 0, 0, 64 * KIB),
    entry("alloc", 1, 0, KIB),
    entry("alloc", 2, KIB, 2 * KIB),
    entry("free_requested", 4, 0, KIB),
    entry("free_completed", 5, 0, KIB),
    segments=[segment(block(KIB, 2 * KIB))],
)


def curve(trace: Trace) -> list[int | None]:
    return trace.view("memory_curve")["allocated"].to_list()


def is_whole(trace: Trace) -> None:
    assert curve(trace) == [0, 0, KIB, 3 * KIB, 2 * KIB]


def _of_protocol(protocol: int) -> Case:
    def whole_snapshot(_: Random) -> bytes:
        return pickle.dumps(WHOLE, protocol)

    whole_snapshot.__name__ = f"whole_snapshot_of_protocol_{protocol}"
    return case("53a", "accept", check=is_whole)(whole_snapshot)


protocol_2, protocol_3, protocol_4, protocol_5 = map(_of_protocol, range(2, 6))


class Thing:
    """Something that is no plain value."""


@case("53b", "refuse", "would load `tests.ingest.rough.snapshots.Thing`")
def an_object_in_it(dice: Random) -> bytes:
    return pickle.dumps({**WHOLE, "more": Thing()}, dice.randrange(2, 6))


@case("53b", "refuse", "would load `builtins.len`")
def a_function_in_it(_: Random) -> bytes:
    return pickle.dumps({**WHOLE, "more": len}, 4)


def _text(word: str) -> bytes:
    """A text as protocol 4 writes it."""
    return b"\x8c" + bytes([len(word)]) + word.encode()


_SYSTEM: Final = _text("os") + _text("system") + b"\x93"
PROGRAMS: Final[dict[str, bytes]] = {
    "reduce": _SYSTEM + _text("id") + b"\x85R.",
    "global": b"cos\nsystem\n(" + _text("id") + b"tR.",
    "inst": b"(" + _text("id") + b"ios\nsystem\n.",
    "obj": b"(" + _SYSTEM + _text("id") + b"o.",
    "newobj": _SYSTEM + _text("id") + b"\x85\x81.",
    "newobj_ex": _SYSTEM + _text("id") + b"\x85}\x92.",
    "stack_global": _SYSTEM + b".",
    "build": b"}}b.",
    "ext1": b"\x82\x01.",
    "ext2": b"\x83\x01\x00.",
    "ext4": b"\x84\x01\x00\x00\x00.",
    "persid": b"Pid\n.",
    "binpersid": b"K\x01Q.",
    "next_buffer": b"\x97.",
    "behind_plain_values": b"}" + _text("segments") + b"]" + _SYSTEM + _text("id") + b"\x85Rs.",
    "behind_a_mark": b"((((" + b"]" * 4_000 + _SYSTEM + _text("id") + b"\x85R.",
    "behind_the_end": b"}." + _SYSTEM + _text("id") + b"\x85R.",
    "false_memo": b"]r\xff\xff\xff\x7f.",
    "false_length": b"\x96" + struct.pack("<Q", 1 << 40) + b".",
    "false_text": b"\x8d" + struct.pack("<Q", 1 << 62) + b"x.",
    "false_frame": b"\x95" + struct.pack("<Q", 1 << 40) + b".",
    "long_number": b"\x8b" + struct.pack("<I", 1 << 30) + b"\x01.",
    "tower": b"]" * 100_000 + b"a" * 99_999 + b".",
    "bomb": b"](" + b"h\x00" * 10 + b"e" + b".",
}
"""Pickles of protocol 4 that call, name or build what they should not, or fill memory."""


def _refused(name: str, program: bytes) -> Case:
    def make(_: Random) -> bytes:
        return b"\x80\x04" + program

    make.__name__ = f"program_{name}"
    return case("53c", "refuse")(make)


for _name, _program in PROGRAMS.items():
    globals()[f"program_{_name}"] = _refused(_name, _program)


@case("53c", "refuse", "ends too early")
def a_cut_snapshot(dice: Random) -> bytes:
    data = pickle.dumps(WHOLE, dice.randrange(2, 6))
    return data[: dice.randrange(len(data) // 2, len(data) - 1)]


def holds_blocks_alone(trace: Trace) -> None:
    assert curve(trace) == [2 * KIB]
    assert trace.view("memory_peak")["bytes"].to_list() == [2 * KIB]


@case("53e", "limit", "recorded without history", check=holds_blocks_alone)
def segments_without_history(_: Random) -> bytes:
    return pickle.dumps(snapshot(segments=[segment(block(KIB, 2 * KIB))]))


@case("53f", "limit", "1 blocks in use are older: its history is partial")
def a_ring_that_overflowed(_: Random) -> bytes:
    data = snapshot(
        entry("free_requested", 1, 9 * KIB, KIB),
        entry("alloc", 2, 0, 512),
        segments=[segment(block(0, 512), block(KIB, 2 * KIB))],
    )
    return pickle.dumps(data)


def shows_the_failure(trace: Trace) -> None:
    failed = trace.view("memory_events").filter(pl.col("state") == "failed")
    assert failed.select("size", "file", "line").rows() == [(1 << 40, "/repo/net.py", 5)]


@case("53g", "accept", check=shows_the_failure)
def an_allocation_that_failed(_: Random) -> bytes:
    oom = {**entry("oom", 6, 0, 1 << 40), "device_free": 0}
    del oom["addr"]
    return pickle.dumps({**WHOLE, "device_traces": [[*WHOLE["device_traces"][0], oom]]})


def shows_escapes(trace: Trace) -> None:
    files = trace.view("memory_peak", by="line")["file"].to_list()
    assert files == ["/repo/caf\\udce9.py", "/repo/th\\udce9.py"]


@case(
    "53h",
    "recover",
    "frames that are not valid Unicode: shown with escapes (2)",
    check=shows_escapes,
)
def files_that_are_no_unicode(_: Random) -> bytes:
    stacks = [
        [{"filename": f"/repo/{name}\udce9.py", "line": 5, "name": "f"}] for name in ("caf", "th")
    ]
    entries = [entry("alloc", n, KIB * n, KIB * (2 - n), s) for n, s in enumerate(stacks)]
    return pickle.dumps({"device_traces": [entries]})


LARGE: Final = (1 << 53) + 1


def is_exact(trace: Trace) -> None:
    assert curve(trace)[-1] == LARGE
    assert trace.memory["bytes"].max() == LARGE


@case("53i", "accept", check=is_exact)
def sizes_beyond_doubles(_: Random) -> bytes:
    return pickle.dumps({"device_traces": [[entry("alloc", 1, 1, LARGE)]]})


@case("53j", "limit", "more are allocated than its allocator has reserved")
def more_than_there_is(_: Random) -> bytes:
    held = snapshot(
        entry("alloc", 1, 0, 1 << 37), segments=[segment(block(0, 1 << 37), size=1 << 36)]
    )
    return pickle.dumps(held)
