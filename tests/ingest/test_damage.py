"""Damage that occurs in practice: what is sound comes back, what is lost is counted and named.

Each case is the text of a file of which `sound` events can be read; `lost` is what the report must
count, and `words` what it must say. Cases of JSON's grammar come plain and compressed.
"""

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

import polars as pl
import pytest

from selftime.ingest.text import trace_parsing as chunking
from selftime.trace import Trace

N: Final = 40


class Read(Protocol):
    def __call__(self, data: bytes, name: str = ..., *, cache: bool = ...) -> Trace: ...


@dataclass(frozen=True)
class Case:
    text: bytes
    sound: int = N
    lost: int = 0
    words: tuple[str, ...] = ()


def event(number: int, **instead: Any) -> str:
    whole = {
        "ph": "X",
        "cat": "cpu_op",
        "name": f"op{number}",
        "pid": 1,
        "tid": 1,
        "ts": 10 * number,
        "dur": 5,
        "args": {"External id": number, "Input Dims": [[number, 2], []]},
    }
    return json.dumps({**whole, **instead})


def whole(events: list[str], *, comma: str = ",\n", end: str = '],\n"traceName": "t"}\n') -> bytes:
    return ('{"schemaVersion": 1, "traceEvents": [\n' + comma.join(events) + "\n" + end).encode()


def with_one(text: str, at: int = N // 2, **kwargs: Any) -> bytes:
    """A trace in which the event of that place is written so."""
    events = [event(n) for n in range(N)]
    events[at] = text
    return whole(events, **kwargs)


GOOD: Final = whole([event(n) for n in range(N)])
LAST: Final = GOOD.index(b'{"ph": "X", "cat": "cpu_op", "name": "op39"')
ODD: Final = event(N // 2)
PATH: Final = r"C:\Users\new\train.py"


def spliced(old: str, new: str, **kwargs: Any) -> bytes:
    assert old in ODD
    return with_one(ODD.replace(old, new), **kwargs)


GRAMMAR: Final = {
    "1e cut in a key": Case(GOOD[:-6], N, 0, ("ends inside `traceName`",)),
    "8d half a pair at the end": Case(GOOD.replace(b"op39", rb"op\ud83d39"), words=("escape",)),
    "12 beside a sound escape": Case(spliced("op20", r"a\\Users\"\q"), words=("backslash",)),
    "16a doubled comma": Case(with_one(ODD + ","), words=("comma too many",)),
    "broken beyond mending": Case(spliced('"tid": 1', '"tid: 1'), N - 1, 1, ("not JSON",)),
    "broken, the first": Case(with_one(event(0).replace(":", ";"), 0), N - 1, 1, ("not JSON",)),
    "broken, the last": Case(with_one(ODD.replace(":", ";"), N - 1), N - 1, 1, ("event",)),
    "no object": Case(with_one("17"), N - 1, 1, ("not an object",)),
}

TYPES: Final = {
    "20a times as strings": Case(spliced('"ts": 200', '"ts": "200.0"')),
    "20c decimals": Case(spliced('"ts": 200', '"ts": 200.000')),
    "21a text for a thread": Case(with_one(event(20, pid="Spans", tid="stream 7"))),
    "21b large threads": Case(with_one(event(20, pid=-1, tid=2**64 - 1))),
    "21c a thread with a fraction": Case(with_one(event(20, tid=7.0))),
    "21d no thread": Case(
        with_one(ODD.replace('"pid": 1, "tid": 1, ', "")), words=("a process or",)
    ),
    "22a no args": Case(with_one(ODD.partition(', "args"')[0] + "}")),
    "22b args null": Case(with_one(event(20, args=None)), words=("not an object",)),
    "22b args a list": Case(
        with_one(event(20, args=[1, {"External id": 2}])), words=("not an object",)
    ),
    "22b args a string": Case(with_one(event(20, args="x")), words=("not an object",)),
    "22c no name": Case(with_one(event(20, name=None)), words=("no name",)),
    "22c empty name": Case(with_one(event(20, name="")), words=("no name",)),
    "22d a number for a name": Case(with_one(event(20, name=20))),
    "22e a list of categories": Case(with_one(event(20, cat="cpu_op,user"))),
    "22f upper case": Case(with_one(event(20, cat="Operator"))),
    "22g unknown category": Case(with_one(event(20, cat="of_tomorrow"))),
    "23 ids as text": Case(with_one(event(20, args={"External id": "20", "correlation": "1"}))),
    "24a odd shapes": Case(with_one(event(20, args={"Input Dims": [[], [[]], [[1], [2, [3]]]]}))),
    "24b shapes as text": Case(
        with_one(event(20, args={"Input Dims": "[[1, 2], ..."})), words=("shapes",)
    ),
    "25h an unknown phase": Case(
        whole([event(n) for n in range(N)] + [event(N, ph="?")]), words=("unknown phase",)
    ),
    "29a negative duration": Case(with_one(event(20, dur=-1)), words=("without an end",)),
    "29b no duration": Case(with_one(event(20, dur=0))),
    "29 a time beyond all": Case(with_one(event(20, ts=10**40)), words=("no time",)),
    "29 a duration beyond all": Case(with_one(event(20, dur=9 * 10**15)), words=("an end",)),
    "32 display unit": Case(GOOD.replace(b'"schemaVersion"', b'"displayTimeUnit": "ns", "s"')),
}

CASES: Final = {**GRAMMAR, **TYPES}


def check(trace: Trace, case: Case) -> None:
    assert trace.slices.height == case.sound
    assert trace.repairs["events_lost"].sum() == case.lost
    report = " | ".join(trace.repairs["fault"])
    for word in case.words:
        assert word in report
    assert bool(case.words) == bool(trace.repairs.height), report
    offsets = trace.repairs["offset"].drop_nulls()
    assert ((offsets >= 0) & (offsets <= 2 * len(case.text))).all()
    dim = trace.slices.filter(pl.col("name") == "op1").row(0, named=True)
    start = dim["start"] + (trace.origin or 0)
    assert dim["duration"] == 5_000
    assert start in {10_000, 0}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.sweep(20)
def test_what_is_sound_comes_back(case: Case, packed: Callable[[bytes], bytes], read: Read) -> None:
    check(read(packed(case.text)), case)


@pytest.mark.parametrize("size", [1, 300, 2000])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
@pytest.mark.sweep(12)
def test_wherever_chunks_are_cut(
    case: Case, size: int, read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", size)
    check(read(case.text), case)


def one(trace: Trace, number: int = 20) -> dict[str, Any]:
    """The row of the damaged event, which stands at its time."""
    return trace.slices.filter(pl.col("start") == 10_000 * number).row(0, named=True)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("12 beside a sound escape", 'a\\Users"\\q'),
        ("22d a number for a name", "20"),
        ("22c no name", "(no name)"),
    ],
)
def test_names_are_kept_as_they_were_meant(case: str, name: str, read: Read) -> None:
    assert one(read(CASES[case].text))["name"] == name


@pytest.mark.parametrize("word", ["NaN", "inf", '"soon"', "null", "[1]", "true"])
def test_an_event_without_a_time_is_kept_out_of_totals(word: str, read: Read) -> None:
    trace = read(spliced('"ts": 200', f'"ts": {word}'))
    row = trace.slices.filter(pl.col("name") == "op20").row(0, named=True)
    assert (row["duration"], row["self"]) == (None, None)
    assert trace.slices.height == N


def test_a_time_of_zero_among_times_since_the_epoch_was_lost(read: Read) -> None:
    events = [event(n, ts=1_712_000_000_000_000 + 10 * n) for n in range(N)]
    trace = read(whole([*events, event(N, ts=0)]))
    assert trace.origin == 1_712_000_000_000_000_000
    assert trace.slices["start"].max() == 10_000 * (N - 1)
    assert "no time: kept, but not in totals" in trace.repairs["fault"]


def test_categories_of_all_eras_are_one(read: Read) -> None:
    for case in ("22e a list of categories", "22f upper case"):
        assert one(read(CASES[case].text))["category"] == "cpu_op"


def test_threads_are_never_merged(read: Read) -> None:
    pids = [0, 1, -1, "1", "a", None, 2**32 - 1, 2**64 - 1]
    trace = read(whole([event(n, pid=pid) for n, pid in enumerate(pids)]))
    assert trace.tracks.height == len(pids) - 1  # 1 and "1" are one


@pytest.mark.parametrize("seed", range(3))
def test_order_in_the_file_does_not_matter(seed: int, read: Read) -> None:
    events = [event(n) for n in range(N)]
    expected = read(whole(events))
    random.Random(seed).shuffle(events)  # noqa: S311 - no secret
    found = read(whole(events))
    assert found.slices.drop("id").equals(expected.slices.drop("id"))


class TestBeginsAndEnds:
    """Phases B and E: half events are joined, and what cannot be joined is counted."""

    def half(self, phase: str, name: str, ts: float | None) -> str:
        return json.dumps({"ph": phase, "name": name, "pid": 1, "tid": 1, "ts": ts})

    def test_nested(self, read: Read) -> None:
        halves = [("B", "a", 1), ("B", "b", 2), ("E", "b", 3), ("E", "a", 5)]
        trace = read(whole([self.half(*h) for h in halves]))
        assert trace.slices.select("name", "duration", "self").rows() == [
            ("a", 4000, 3000),
            ("b", 1000, 1000),
        ]
        assert trace.repairs.is_empty()

    def test_crossed(self, read: Read) -> None:
        halves = [("B", "a", 10), ("B", "b", 20), ("E", "a", 40), ("E", "b", 50)]
        trace = read(whole([self.half(*h) for h in halves]))
        assert trace.slices.select("name", "duration").rows() == [("a", 30_000), ("b", 30_000)]
        assert "crosses" in trace.repairs["fault"][0]

    @pytest.mark.parametrize(
        ("halves", "rows", "words"),
        [
            ([("E", "a", 1), ("B", "b", 2), ("E", "b", 3)], [("b", 1000)], "without a begin"),
            ([("B", "a", 1), ("E", "b", 2)], [("a", None)], "without a begin"),
            ([("B", "a", 1)], [("a", None)], "without an end"),
            ([("B", "a", None), ("E", "a", 2)], [("a", None)], ""),
        ],
    )
    def test_without_its_other_half(
        self,
        halves: list[tuple[str, str, float | None]],
        rows: list[tuple[str, int | None]],
        words: str,
        read: Read,
    ) -> None:
        trace = read(whole([self.half(*h) for h in halves]))
        assert trace.slices.select("name", "duration").rows() == rows
        assert words in " | ".join(trace.repairs["fault"])
