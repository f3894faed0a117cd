"""Pickles that cost a careless reader more than they hold, or run what they name.

Each is assembled from operations: Python's own pickler writes none of them.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from hostile import Hostile

__all__ = ["PICKLES", "SOUND", "SOUND_DUMP"]

SOUND: Final[dict[str, Any]] = {
    "device_traces": [
        [
            {"action": "segment_alloc", "addr": 4096, "size": 4096, "time_us": 1, "frames": []},
            {
                "action": "alloc",
                "addr": 4096,
                "size": 512,
                "time_us": 2,
                "pool_id": (0, 0),
                "frames": [{"filename": "/repo/train.py", "line": 3, "name": "step"}],
            },
        ]
    ],
    "segments": [{"device": 0, "address": 4096, "total_size": 4096, "blocks": []}],
    "external_annotations": [
        {"device": 0, "name": "step", "stage": "START", "time_us": 1},
        {"device": 0, "name": "step", "stage": "END", "time_us": 3},
    ],
    "allocator_settings": {"expandable_segments": False},
}
"""A snapshot with one of everything."""

SOUND_DUMP: Final[dict[str, Any]] = {
    "version": "2.10",
    "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}},
    "pg_status": {"0": {"last_enqueued_collective": 2}},
    "entries": [
        {
            "frames": [{"name": "train", "filename": "/repo/train.py", "line": 3}],
            "record_id": number,
            "pg_id": 0,
            "process_group": ("0", "default_pg"),
            "collective_seq_id": number + 1,
            "p2p_seq_id": 0,
            "op_id": number + 1,
            "profiling_name": f"nccl:{name}",
            "time_created_ns": 1_700_000_000_000_000_000 + number,
            "input_sizes": [[4]],
            "input_dtypes": ["Float"],
            "output_sizes": [[4]],
            "output_dtypes": ["Float"],
            "state": state,
            "time_discovered_started_ns": None,
            "time_discovered_completed_ns": None,
            "retired": state == "completed",
            "timeout_ms": 600_000,
            "is_p2p": False,
        }
        for number, (name, state) in enumerate(
            (("all_reduce", "completed"), ("all_gather", "scheduled"))
        )
    ],
}
"""A dump of the Flight Recorder of one of two ranks, which waits in its second collective."""

_HEADER: Final = b"\x80\x04"
_DUP: Final = b"2"
_ONE: Final = b"K\x01"


def _text(value: str) -> bytes:
    data = value.encode()
    return b"X" + len(data).to_bytes(4, "little") + data


def _dict(**values: bytes) -> bytes:
    return b"}(" + b"".join(_text(key) + value for key, value in values.items()) + b"u"


def _list(*values: bytes) -> bytes:
    return b"](" + b"".join(values) + b"e"


_ENTRY: Final = _dict(action=_text("alloc"), addr=_ONE, size=_ONE, time_us=_ONE, frames=b"]")


def _snapshot(**values: bytes) -> bytes:
    """A snapshot with one record, and what else is told."""
    sound = {"device_traces": _list(_list(_ENTRY)), "segments": b"]"}
    return _HEADER + _dict(**(sound | values)) + b"."


def _key(operations: bytes) -> bytes:
    """A dict with the value that the operations make as its key."""
    return _snapshot(x=b"}(" + operations + _ONE + b"u")


def _deep_list(n: int) -> bytes:
    return b"]" * n + b"a" * (n - 1)


def _repeated(n: int) -> bytes:
    """A list that holds a list twice, which holds another twice, and so on."""
    levels = range(min(n, 250))
    twice = (b"](h%bh%beq%b" % (bytes([k]), bytes([k]), bytes([k + 1])) for k in levels)
    return b"]q\x00" + b"0".join([b"", *twice])


def _annotation(**values: bytes) -> bytes:
    return _dict(**({"name": _text("n"), "time_us": _ONE, "stage": _text("START")} | values))


def _frames(n: int) -> bytes:
    one = _dict(filename=_text("/f.py" * 70), line=_ONE, name=_text("f" * 40))
    return _list(*[one] * min(n, 256))


def _many_of(n: int, value: bytes) -> bytes:
    """A list of one value, many times."""
    return b"](" + value + _DUP * (n - 1) + b"e"


def _blocks(n: int) -> bytes:
    history = b"](" + b"}" * n + b"e"
    block = _dict(state=_text("active_allocated"), size=_ONE, history=history)
    return _list(_dict(device=b"K\x00", total_size=_ONE, blocks=_many_of(n, block)))


def _colliding(n: int) -> bytes:
    """Numbers of one hash: Python takes whole numbers modulo this prime."""
    prime = (1 << 61) - 1
    numbers = ((k * prime).to_bytes(12, "little") for k in range(n))
    return b"}(" + b"".join(b"\x8a\x0c" + number + _ONE for number in numbers) + b"u"


def _running(operations: bytes) -> Callable[[int], bytes]:
    return lambda n: _snapshot(x=operations * n)


PICKLES: Final[Mapping[str, Hostile]] = MappingProxyType(
    {
        "tuples in tuples": Hostile(lambda n: _snapshot(x=b")" + b"\x85" * n), 1_000_000, 0),
        "tuples in tuples for a key": Hostile(lambda n: _key(b")" + b"\x85" * n), 1_000_000, 0),
        "a tuple twice in a tuple, for a key": Hostile(lambda n: _key(b")" + b"2\x86" * n), 100, 0),
        "a set": Hostile(lambda n: _key(b"(" + _ONE * n + b"\x91"), 100, 0),
        "numbers of one hash": Hostile(lambda n: _snapshot(x=_colliding(n)), 20_000, 0),
        "lists in lists": Hostile(lambda n: _snapshot(x=_deep_list(n)), 500_000, 1),
        "lists in lists in the settings": Hostile(
            lambda n: _snapshot(allocator_settings=_dict(a=_deep_list(n))), 100_000, 1
        ),
        "a list twice in a list, in the settings": Hostile(
            lambda n: _snapshot(allocator_settings=_dict(a=_repeated(n))), 50, 1
        ),
        "a list twice in a list, as a device": Hostile(
            lambda n: _snapshot(external_annotations=_list(_annotation(device=_repeated(n)))),
            50,
            1,
        ),
        "lists in lists as a device": Hostile(
            lambda n: _snapshot(external_annotations=_list(_annotation(device=_deep_list(n)))),
            100_000,
            1,
        ),
        "one annotation again and again": Hostile(
            lambda n: _snapshot(
                external_annotations=_many_of(n, _annotation(name=_text("n" * 1000)))
            ),
            100_000,
            1,
        ),
        "one entry with a long stack, again and again": Hostile(
            lambda n: _snapshot(
                device_traces=_list(
                    _many_of(
                        n,
                        _dict(action=_text("alloc"), addr=_ONE, size=_ONE, frames=_frames(n)),
                    )
                )
            ),
            20_000,
            1,
        ),
        "one history of every block": Hostile(lambda n: _snapshot(segments=_blocks(n)), 10_000, 1),
        "one list again and again": Hostile(
            lambda n: _snapshot(device_traces=_many_of(1000, _many_of(n, _ENTRY))), 5_000, 0
        ),
        "a call": Hostile(_running(b"cos\nsystem\n(" + _text("id") + b"tR"), 1, 0),
        "a class by its names": Hostile(_running(_text("os") + _text("system") + b"\x93"), 1, 0),
        "an instance": Hostile(_running(b"(" + _text("id") + b"ios\nsystem\n"), 1, 0),
        "an extension": Hostile(_running(b"\x82\x01"), 1, 0),
        "an object kept elsewhere": Hostile(_running(_ONE + b"Q"), 1, 0),
        "a state": Hostile(_running(b"}}b"), 1, 0),
        "a new object": Hostile(_running(b")\x81"), 1, 0),
    }
)
"""Kinds of pickle; `good` says how many records come back at least, 0 that it is refused."""
