"""Files that ask for more than they hold: what is sound comes back, in time and memory in bounds.

The generators are those by which `make fuzz` measures that no step is quadratic. Here each file is
small where the cost is linear, and a hang where it once was not.
"""

import gzip
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from hostile import TRACES, Hostile
from hostile_pickles import PICKLES, SOUND
from tests.ingest.conftest import Read

from selftime.errors import UnreadableTrace
from selftime.ingest.snapshots.allocator_snapshot import read_snapshot

SHARE: Final = 20
"""Of the size at which the cost is measured, tests take so small a part."""
BOMB: Final = 400
"""MiB of text that a gzip bomb holds in the tests: more than is read of anything."""


@pytest.mark.parametrize("kind", TRACES)
@pytest.mark.sweep(8)
def test_hostile_text(kind: str, read: Read) -> None:
    hostile: Hostile = TRACES[kind]
    trace = read(hostile.make(hostile.size // SHARE))
    names = trace.slices["name"].cast(str)
    assert names.str.starts_with("good").sum() >= hostile.good


@pytest.mark.parametrize("kind", PICKLES)
def test_hostile_pickles(kind: str) -> None:
    hostile: Hostile = PICKLES[kind]
    data = hostile.make(hostile.size)
    if hostile.good:
        assert read_snapshot(data, "snapshot.pickle").memory.height > hostile.good
        return
    with pytest.raises(UnreadableTrace) as caught:
        read_snapshot(data, "snapshot.pickle")
    assert str(caught.value).isprintable()


def test_a_sound_snapshot_is_read() -> None:
    trace = read_snapshot(pickle.dumps(SOUND), "snapshot.pickle")
    assert trace.slices["name"].to_list() == ["step"]


def test_names_in_a_refusal_cannot_act() -> None:
    program = b"\x80\x04c\x1b[2J\x1e\nsys\x07tem\n."
    with pytest.raises(UnreadableTrace) as caught:
        read_snapshot(program, "snapshot.pickle")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("ts", "NaN"),
        ("ts", "Infinity"),
        ("ts", "1e999999999"),
        ("ts", "-9223372036854775808"),
        ("ts", "9223372036854775807"),
        ("ts", "9223372036854775.807"),
        ("ts", "9" * 10_000),
        ("ts", "0." + "1" * 10_000),
        ("dur", "9223372036854775807"),
        ("dur", "9223372036854775.807"),
        ("dur", "1e999999999"),
        ("dur", "1e-999999999"),
        ("dur", "9" * 4_000),
        ("dur", "-5"),
        ("pid", "9" * 4_000),
        ("tid", "1e999999999"),
        ("name", "9" * 4_000),
        ("args", f'{{"correlation": {"9" * 400}, "device": {"9" * 4_000}}}'),
    ],
)  # fmt: skip
def test_numbers_beyond_all_bounds(field: str, text: str, read: Read) -> None:
    """No time overflows: none is negative, and the sound events have theirs."""
    fields = {"ph": '"X"', "name": '"odd"', "pid": "1", "tid": "1", "ts": "50", "dur": "5"}
    odd = ", ".join(f'"{key}": {value}' for key, value in (fields | {field: text}).items())
    good = '{"ph": "X", "name": "good", "pid": 1, "tid": 1, "ts": 40, "dur": 3}'
    trace = read(f'{{"traceEvents": [{good}, {{{odd}}}]}}'.encode())
    sound = trace.slices.filter(trace.slices["name"].cast(str) == "good")
    assert sound["duration"].to_list() == [3_000]
    accounted = int(trace.events["count"].sum()) + int(trace.repairs["events_lost"].sum())
    assert accounted == 2
    for column in ("start", "duration", "self"):
        assert (trace.slices[column].drop_nulls() >= 0).all()


def test_counters_beyond_all_bounds(read: Read) -> None:
    samples = ", ".join(f'"{n}": {text}' for n, text in enumerate(["9" * 400, "1e999", "NaN", "3"]))
    event = f'{{"ph": "C", "name": "c", "pid": 1, "tid": 1, "ts": 1, "args": {{{samples}}}}}'
    trace = read(f"[{event}]".encode())
    assert trace.counters["value"].drop_nulls().to_list()[-1] == 3


def _bomb(path: Path) -> None:
    """One block of spaces many times over, as gzip lets members follow each other."""
    block = gzip.compress(b" " * (1 << 20), 1)
    path.write_bytes(gzip.compress(b'{"traceEvents": [{"ph": "X", "name": "') + block * BOMB)


_LIMITED: Final = """
import resource, sys
from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
try:
    load(sys.argv[1], cache=False)
except UnreadableTrace as error:
    print(error)
"""
"""Memory beyond the limit cannot be had: the reader would end with another error."""


def test_a_bomb_is_refused_before_it_fills_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.json.gz"
    _bomb(path)
    limit = 2 << 30
    done = subprocess.run(  # noqa: S603 - our own lines
        [sys.executable, "-c", _LIMITED, str(path), str(limit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1
