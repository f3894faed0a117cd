"""One case of rough input: what is in the file, and what must become of it.

The 54 entries of the catalogue stand in `ENTRIES`, by section. A section's file holds its cases:
functions that return a file's bytes, each made a `Case` by the decorator `case`. `test_rough.py`
finds them and holds all of them to the same promises. What the catalogue lists and has no case
stands in the section's `LEFT_OUT`, with the reason.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal, TypeAlias

import msgspec
import polars as pl

from selftime.trace import Trace

__all__ = [
    "ENTRIES",
    "FOOTER",
    "HEADER",
    "Case",
    "N",
    "annotation",
    "case",
    "document",
    "events",
    "json_text",
    "kernel",
    "launch",
    "names_in",
    "op",
    "report",
    "shuffled",
]

Event: TypeAlias = dict[str, Any]
Outcome: TypeAlias = Literal["accept", "recover", "limit", "refuse"]
Make: TypeAlias = Callable[[Random], bytes]

ENTRIES: Final[dict[str, dict[int, str]]] = {
    "containers": {
        1: "abcdef", 2: "ab", 3: "abc", 4: "abcd", 5: "", 6: "abcdefghij", 7: "abcdef",
        8: "abcdef", 9: "abcd", 10: "ab", 11: "abcdef",
    },
    "syntax": {
        12: "abc", 13: "ab", 14: "", 15: "", 16: "abcdefg", 17: "abcde", 18: "abcd", 19: "ab",
    },
    "fields": {
        20: "abcde", 21: "abcd", 22: "abcdefg", 23: "abcdef", 24: "abcde", 25: "abcdefghi",
        26: "abcdefgh",
    },
    "times": {
        27: "abcd", 28: "abc", 29: "abcd", 30: "ab", 31: "abcd", 32: "", 33: "abc", 34: "abcd",
        35: "",
    },
    "structure": {36: "abcde", 37: "abc", 38: "abcdefghi", 39: "abcd"},
    "identity": {40: "ab", 41: "abcd", 42: "abcde", 43: "abc"},
    "missing": {44: "abcdefghi", 45: "abcdefg", 46: "abc", 47: ""},
    "drift": {48: "", 49: "abcdefg", 50: "abc"},
    "injection": {51: "abcdef"},
    "hardware": {52: "abcdefghij"},
    "snapshots": {53: "abcdefghij"},
    "layout": {54: "abcdefghi"},
}  # fmt: skip
"""The catalogue's entries and their letters, by the file of their section."""


@dataclass(frozen=True, slots=True)
class Case:
    """A generator of one rough file, and what must become of it."""

    entry: str
    """Its place in the catalogue, such as `1a`."""
    make: Make
    sound: int
    """How many events of the file are untouched, of any phase."""
    outcome: Outcome
    """`accept`: all loads and no fault is told (a note may be); `recover`: faults are told and at
    least 95 % of what is sound loads; `limit`: loads, and what cannot be known is told; `refuse`:
    one line."""
    words: tuple[str, ...] = ()
    """What the report (faults, health, unknown rules) or the refusal must hold."""
    lost: int = 0
    """How many events must be reported lost."""
    plain_only: bool = False
    """Whether the file has a container of its own, so that packing it again would be another."""
    in_one: bool = False
    """Whether the file is only read as one chunk: what is told depends on more than two events."""
    check: Callable[[Trace], None] | None = None
    """What must hold of the trace besides."""

    @property
    def id(self) -> str:
        return f"{self.entry} {self.make.__name__.strip('_').replace('_', ' ')}"

    def data(self) -> bytes:
        """The file: the same bytes each time."""
        return self.make(Random(self.id))  # noqa: S311 - no secret


def case(  # noqa: PLR0913 - the fields of a case
    entry: str,
    outcome: Outcome,
    *words: str,
    sound: int = 0,
    lost: int = 0,
    plain_only: bool = False,
    in_one: bool = False,
    check: Callable[[Trace], None] | None = None,
) -> Callable[[Make], Case]:
    """Make a generator a case: `@case("1a", "recover", "ends inside an event", sound=39)`."""

    def made(make: Make) -> Case:
        return Case(entry, make, sound, outcome, words, lost, plain_only, in_one, check)

    return made


N: Final = 40
"""Events of `events()`: one event is less than 5 % of the others."""


def op(number: int, **instead: Any) -> Event:
    """The operator `op<number>`, of 5 us at 10 us times its number."""
    return {
        "ph": "X", "cat": "cpu_op", "name": f"op{number}", "pid": 7, "tid": 7,
        "ts": 1000 + 10 * number, "dur": 5,
        "args": {"External id": number + 1, "Input Dims": [[number, 2], []]}, **instead,
    }  # fmt: skip


def launch(number: int, **instead: Any) -> Event:
    """The call within `op<number>` that launches `kernel<number>`."""
    return {
        "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7,
        "ts": 1001 + 10 * number, "dur": 2,
        "args": {"External id": number + 1, "correlation": 100 + number}, **instead,
    }  # fmt: skip


def kernel(number: int, **instead: Any) -> Event:
    """What `launch(number)` launched: `kernel<number>`, on stream 7 of device 0."""
    return {
        "ph": "X", "cat": "kernel", "name": f"kernel{number}", "pid": 0, "tid": 7,
        "ts": 1004 + 10 * number, "dur": 6,
        "args": {
            "External id": number + 1, "correlation": 100 + number, "device": 0, "stream": 7,
            "grid": [4, 1, 1], "block": [128, 1, 1], "registers per thread": 32,
        }, **instead,
    }  # fmt: skip


def annotation(number: int, **instead: Any) -> Event:
    """`ProfilerStep#<number>`, around ten numbers' work from ten times its number."""
    return {
        "ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{number}", "pid": 7, "tid": 7,
        "ts": 1000 + 100 * number, "dur": 99, "args": {"External id": 1000 + number}, **instead,
    }  # fmt: skip


def events(count: int = N) -> list[Event]:
    """So many events: steps of three operators, each with its launch and its kernel."""
    made: list[Event] = []
    for number in range(count // 3 + 1):
        if number % 10 == 0:
            made.append(annotation(number // 10))
        made += [op(number), launch(number), kernel(number)]
    return made[:count]


HEADER: Final[dict[str, Any]] = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA H100", "numSms": 132}],
    "record_shapes": 1,
    "baseTimeNanoseconds": 0,
}  # fmt: skip

FOOTER: Final = '\n  ],\n  "traceName": "t.json"\n}\n'


def document(made: list[Event] | None = None, **instead: Any) -> bytes:
    """Such events as Kineto writes them: header, events on lines of their own, footer."""
    return json_text(
        [json.dumps(event) for event in (events() if made is None else made)], **instead
    )


def json_text(
    written: list[str], *, between: str = ",\n  ", end: str = FOOTER, **instead: Any
) -> bytes:
    """A document of events that are text already, so that each may be damaged by itself."""
    header = {**HEADER, **instead}
    keys = ",\n  ".join(f'"{key}": {json.dumps(value)}' for key, value in header.items())
    return f'{{\n  {keys},\n  "traceEvents": [\n  {between.join(written)}{end}'.encode()


def names_in(trace: Trace) -> set[str]:
    """The names of the slices that were loaded."""
    return set(trace.slices["name"].cast(pl.String))


def report(trace: Trace) -> str:
    """All that is told of the trace's faults and limits: its repairs, its health."""
    health = trace.view("health")
    told = [*trace.repairs["fault"], *health["text"], *health["affects"].drop_nulls()]
    return " | ".join(told)


def shuffled(data: bytes, dice: Random) -> bytes | None:
    """The same JSON with its events in another order; None if the text is no such JSON."""
    try:
        found = msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=_Shuffle)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    keys = {**found, "traceEvents": found["traceEvents"]}
    dice.shuffle(raw := msgspec.json.decode(keys["traceEvents"], type=list[msgspec.Raw]))
    return msgspec.json.encode({**keys, "traceEvents": raw})


_Shuffle: TypeAlias = dict[str, msgspec.Raw]
