"""Any damage ends in a trace or in one sentence, and costs little more than what it hit."""

import gzip
import json
import random
from pathlib import Path
from typing import Any, Final, Protocol

import pytest
from damage import LEAST, Sample, damaged, outcome
from layouts import LAYOUTS

from selftime.errors import UnreadableTrace
from selftime.ingest.text import trace_parsing as chunking
from selftime.trace import Trace

ROUNDS: Final = 30
DAMAGES: Final = 10
"""Files of each layout, cut or flipped, plain or compressed; `make fuzz` takes thousands."""
EVENTS: Final = 40


class Read(Protocol):
    def __call__(self, data: bytes, name: str = ..., *, cache: bool = ...) -> Trace: ...


@pytest.fixture
def dice(request: pytest.FixtureRequest) -> random.Random:
    return random.Random(request.node.name)  # noqa: S311 - no secret


def attempt(read: Read, data: bytes) -> Trace | None:
    """The trace, or None with a sentence; nothing else may happen."""
    try:
        return read(data)
    except UnreadableTrace as error:
        lines = str(error).splitlines()
    assert len(lines) == 1
    return None


def flipped(dice: random.Random, data: bytes, count: int) -> bytes:
    damaged = bytearray(data)
    for _ in range(count):
        damaged[dice.randrange(len(damaged))] = dice.randrange(256)
    return bytes(damaged)


def events_of(text: bytes) -> int:
    return len(json.loads(text)["traceEvents"])


def accounted(trace: Trace) -> int:
    """Events that were read, and those that were reported lost."""
    return int(trace.events["count"].sum()) + int(trace.repairs["events_lost"].sum())


@pytest.mark.parametrize("size", [300, 1 << 20])
def test_cut_off_anywhere(
    size: int, text: bytes, read: Read, dice: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", size)
    begin = text.index(b'"traceEvents"') + len('"traceEvents": [')
    end = text.rindex(b'"traceName"')
    begins = [
        at
        for at in range(begin, end)
        if text[at : at + 2] == b'{"' and text[at - 3 : at] in {b"}, ", b": ["}
    ]
    for _ in range(ROUNDS):
        cut = dice.randrange(begin, end)
        trace = attempt(read, text[:cut])
        if trace is not None:
            assert "the file ends" in " | ".join(trace.repairs["fault"])
            assert accounted(trace) >= sum(at < cut for at in begins) - 1


@pytest.mark.parametrize("size", [300, 1 << 20])
def test_a_flipped_byte_costs_an_event_at_most(
    size: int, text: bytes, read: Read, dice: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", size)
    begin = text.index(b'"traceEvents"') + len('"traceEvents": [')
    end = text.rindex(b'"traceName"') - 4
    for _ in range(ROUNDS):
        middle = flipped(dice, text[begin:end], 1)
        damaged = text[:begin] + middle + text[end:]
        trace = read(damaged)
        assert int(trace.events["count"].sum()) >= events_of(text) - 2, damaged
        assert accounted(trace) >= events_of(text) - 1, damaged


def test_many_flipped_bytes(
    text: bytes, read: Read, dice: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", 500)
    for _ in range(ROUNDS):
        attempt(read, flipped(dice, text, dice.randrange(1, 60)))


def test_compressed_cut_off_anywhere(text: bytes, read: Read, dice: random.Random) -> None:
    data = gzip.compress(text)
    for _ in range(ROUNDS):
        attempt(read, data[: dice.randrange(len(data))])


def test_compressed_with_flipped_bytes(text: bytes, read: Read, dice: random.Random) -> None:
    data = gzip.compress(text)
    for _ in range(ROUNDS):
        attempt(read, flipped(dice, data, dice.randrange(1, 4)))


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("flip", [False, True], ids=["cuts", "flips"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.sweep(4)
def test_sound_events_come_back(
    layout: str, flip: bool, packed: bool, dice: random.Random, tmp_path: Path
) -> None:
    sample = Sample.of(layout, EVENTS, packed=packed)
    path = tmp_path / "trace.json"
    files = (damaged(sample, dice, flip=flip) for _ in range(DAMAGES))
    found = [outcome(sample, what, data, path) for what, data in files]
    assert all(len(one.refused.splitlines()) <= 1 for one in found)
    read = [one for one in found if not one.refused]
    assert sum(one.back for one in read) >= LEAST * sum(one.sound for one in read)
    assert packed or all(one.share >= LEAST for one in read)


def test_sound_events_are_those_whose_bytes_are_untouched(tmp_path: Path) -> None:
    sample = Sample.of("kineto", 10, packed=False)
    begin, end = sample.events[4]
    middle = (begin + end) // 2
    for data in (sample.text[:middle], sample.text[:begin] + b"?" + sample.text[begin + 1 :]):
        found = outcome(sample, "", data, tmp_path / "trace.json")
        assert found.sound == found.back == (4 if len(data) < len(sample.text) else 9)


def test_values_of_any_kind(document: dict[str, Any], read: Read, dice: random.Random) -> None:
    odd: list[Any] = [
        None,
        True,
        -1,
        0,
        2**63,
        2**64,
        1e300,
        -(10**30),
        "",
        "x",
        "\ud83d",
        [],
        [[]],
        {},
    ]
    count = len(document["traceEvents"])
    for _ in range(ROUNDS):
        changed = json.loads(json.dumps(document))
        for _ in range(5):
            event = dice.choice(changed["traceEvents"])
            part = event if dice.random() < 0.5 else event.get("args", event)
            if isinstance(part, dict) and part:
                part[dice.choice(list(part))] = dice.choice(odd)
        for key in ("deviceProperties", "distributedInfo", "baseTimeNanoseconds"):
            if dice.random() < 0.2:
                changed[key] = dice.choice([*odd, [None], [{"id": "x", "name": 5}], {"rank": "x"}])
        damaged = json.dumps(changed).encode()
        assert int(read(damaged).events["count"].sum()) == count, damaged


def test_facts_of_any_kind(document: dict[str, Any], read: Read, dice: random.Random) -> None:
    lines = {"id": [1, 2], "file": [0, 0], "line": [3, 4], "function": [0, 0], "how": [0, 1]}
    sound = {
        "lines": {**lines, "files": ["train.py"], "functions": ["step"]},
        "ops": {"id": [1], "overload": ["x"], "async": [1], "flops": {"id": [1], "value": [9]}},
    }
    odd: list[Any] = [
        None,
        True,
        -1,
        99,
        2**63,
        "x",
        [],
        [None],
        [99, 99],
        ["x", "y"],
        [1.5, 2],
        {},
        {"id": 1},
    ]
    for _ in range(ROUNDS):
        facts = json.loads(json.dumps(sound))
        part = dice.choice([facts, facts["lines"], facts["ops"], facts["ops"]["flops"]])
        part[dice.choice(list(part))] = dice.choice(odd)
        trace = read(json.dumps({**document, "selftime": facts}).encode())
        assert int(trace.events["count"].sum()) == len(document["traceEvents"])
