"""The ways in which writers lay out a trace, with events that can be told from each other."""

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

__all__ = ["LAYOUTS", "numbered", "spans"]

Event: TypeAlias = dict[str, Any]

_KINDS: Final = ("cpu_op", "kernel", "cuda_runtime", "python_function", "user_annotation")


def numbered(count: int) -> list[Event]:
    """Events of every kind, each with a name and a duration of its own."""
    return [
        {
            "ph": "X",
            "cat": _KINDS[n % len(_KINDS)],
            "name": f'event {n} "{{x}}"',
            "pid": 7,
            "tid": 9 + n % 3,
            "ts": 1_712_000_000_000_000 + 10 * n + 0.5,
            "dur": n + 0.125,
            "args": {"External id": n, "correlation": n, "Input Dims": [[n, 2], []]},
        }
        for n in range(count)
    ]


def _compact(events: list[Event]) -> bytes:
    text = json.dumps({"schemaVersion": 1, "traceEvents": events}, separators=(",", ":"))
    return text.encode()


def _kineto(events: list[Event]) -> bytes:
    """As Kineto writes: keys before and after the events, an event on a few lines."""
    rows = []
    for event in events:
        fields = ", ".join(f"{json.dumps(k)}: {json.dumps(event[k])}" for k in list(event)[:5])
        times = f'"ts": {event["ts"]:.3f}, "dur": {event["dur"]:.3f}'
        rows.append(
            f'  {{\n    {fields},\n    {times},\n    "args": {json.dumps(event["args"])}\n  }}'
        )
    head = '{\n  "schemaVersion": 1,\n  "traceEvents": [\n'
    return (head + ",\n".join(rows) + '\n  ],\n  "traceName": "t.json"\n}\n').encode()


def _array(events: list[Event]) -> bytes:
    """A bare array, indented, the arguments first."""
    turned = [dict(reversed(event.items())) for event in events]
    return json.dumps(turned, indent=1).encode()


LAYOUTS: Final[Mapping[str, Callable[[list[Event]], bytes]]] = MappingProxyType(
    {"compact": _compact, "kineto": _kineto, "array": _array}
)


def spans(text: bytes, count: int) -> list[tuple[int, int]]:
    """Where each event of `numbered` begins and ends in its text, found by its braces."""
    found: list[tuple[int, int]] = []
    decoder = json.JSONDecoder()
    source = text.decode("ascii")
    at = source.index("[", source.index("traceEvents") if "traceEvents" in source else 0)
    while len(found) < count:
        at = source.index("{", at)
        _, end = decoder.raw_decode(source, at)
        found.append((at, end))
        at = end
    return found
