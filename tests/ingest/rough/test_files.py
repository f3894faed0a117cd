"""Rough input that is more than the bytes of one file: several traces, growth, links, sizes."""

import gzip
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from tests.ingest.rough.case import FOOTER, N, document, events, json_text, names_in, op, report

from selftime.errors import UnreadableTrace
from selftime.ingest.decoding_workers import open_chunk_decoder
from selftime.ingest.load import load
from selftime.ingest.text import decompressed_text
from selftime.ingest.text import trace_parsing as chunking
from selftime.ingest.text.text_window import TextWindow
from selftime.ingest.text.trace_parsing import parse_all_traces
from selftime.trace import Job, Trace

GOOD: Final = document()
FAR: Final = 5 << 30


def of_rank(rank: int) -> bytes:
    made = [{**event, "name": f"rank{rank} {event['name']}"} for event in events()]
    return document(made, distributedInfo={"rank": rank, "world_size": 3})


def whole(data: bytes) -> bytes:
    return data


def members(data: bytes) -> bytes:
    return b"".join(map(gzip.compress, data.splitlines(keepends=True)))


@pytest.mark.parametrize(
    ("pack", "between", "size"),
    [
        (whole, b"", 1 << 20),
        (gzip.compress, b"\n", 1 << 20),
        (members, b",\n", 1 << 20),
        (whole, b"garbage \x00", 1 << 20),
        (whole, b"\n", 400),
        (whole, b"garbage \x00", 400),
    ],
)
@pytest.mark.sweep(2)
def test_several_traces_in_one_file(
    pack: Callable[[bytes], bytes],
    between: bytes,
    size: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", size)
    path = tmp_path / "trace.json"
    path.write_bytes(pack(between.join(map(of_rank, range(3)))))
    for _ in range(2):
        job = load(path)
        assert isinstance(job, Job)
        assert [Path(name).name for name in job.traces] == [f"trace.json#{n}" for n in (1, 2, 3)]
        for rank, trace in enumerate(job):
            assert trace.metadata["distributedInfo"]["rank"] == rank
            assert {name.split()[0] for name in names_in(trace)} == {f"rank{rank}"}
            assert trace.slices.height == N
            assert trace.slices["launch"].drop_nulls().len()
            assert "the file holds 3 traces" in report(trace)


def test_bare_lists_of_events_one_after_another(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    one, other = (b'[{"ph": "X", "name": "%c", "ts": 1, "dur": 1}]\n' % name for name in b"ab")
    path.write_bytes(one + other + one)
    job = load(path)
    assert isinstance(job, Job)
    assert [names_in(trace) for trace in job] == [{"a"}, {"b"}]
    [(twice, why)] = job.refused.items()
    assert twice.endswith("#3")
    assert "holds the same trace as" in why


def test_a_list_of_traces(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(b"[" + of_rank(0) + b",\n" + of_rank(1) + b"]")
    job = load(path)
    assert isinstance(job, Job)
    assert [trace.slices.height for trace in job] == [N, N]


def test_one_of_several_traces_that_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(GOOD + document([]) + b'{"of": "another tool"}')
    trace = load(path)
    assert isinstance(trace, Trace)
    assert trace.slices.height == N


class Growing:
    """A file that somebody else goes on writing while it is read."""

    def __init__(self, path: Path, parts: Iterator[bytes]) -> None:
        self.path, self.parts = path, parts

    def __call__(self, done: int, size: int | None) -> None:
        del done, size
        with self.path.open("ab") as file:
            file.write(next(self.parts, b""))


@pytest.mark.parametrize("pack", [whole, gzip.compress])
def test_a_file_that_grows_while_it_is_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    data = pack(document([op(n) for n in range(2000)]))
    half = len(data) // 2
    path.write_bytes(data[:half])
    growing = Growing(path, iter([data[half:-9], data[-9:]]))
    trace = load(path, progress=growing)
    assert isinstance(trace, Trace)
    told = report(trace)
    assert f"the file is still growing: read up to byte {half:,}" in told
    assert "the file ends" in told
    assert 800 < trace.slices.height < 1200
    again = load(path)
    assert isinstance(again, Trace)
    assert again.slices.height == 2000
    assert again.repairs.is_empty()


def test_a_loop_of_links_in_a_folder(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(GOOD)
    (tmp_path / "loop.json").symlink_to(tmp_path / "loop.json")
    (tmp_path / "nowhere.json").symlink_to(tmp_path / "gone.json")
    (tmp_path / "around").symlink_to(tmp_path)
    job = load(tmp_path, cache=False)
    assert isinstance(job, Job)
    assert [Path(path).name for path in job.traces] == ["good.json"]
    assert [Path(path).name for path in job.refused] == ["loop.json", "nowhere.json"]
    assert all("a link that leads nowhere" in why for why in job.refused.values())


class FarText(TextWindow):
    """A text of which five GiB have been read."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        super().__init__(blocks)
        self.offset = FAR


def test_offsets_beyond_32_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["selftime.ingest.load"], "TextWindow", FarText)
    path = tmp_path / "trace.json"
    path.write_bytes(GOOD.replace(b'"op5"', b'"op5'))
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    assert trace.slices.height == N - 1
    assert trace.repairs["offset"][0] == FAR + GOOD.index(
        b'{"ph": "X", "cat": "cpu_op", "name": "op5"'
    )


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_with_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_bytes(GOOD)
    bad = tmp_path / "bad.json"
    bad.write_bytes(GOOD)
    bad.chmod(0)
    job = load(tmp_path, cache=False)
    assert isinstance(job, Job)
    assert len(job.traces) == 1
    assert "Permission denied" in job.refused[str(bad)]


def test_the_limit_of_expansion_can_be_raised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompressed_text, "_BYTES_ALLOWED_AT_ANY_EXPANSION_RATIO", 1 << 20)
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(b" " * (1 << 20)) * 3 + gzip.compress(GOOD))
    with pytest.raises(UnreadableTrace, match="SELFTIME_MOST_EXPANSION"):
        load(path, cache=False)
    monkeypatch.setenv("SELFTIME_MOST_EXPANSION", "2000")
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    assert trace.slices.height == N


EVENTS: Final = GOOD.index(b'{"ph"')

HEADERS: Final = {
    "lines of a log before it": (b"INFO: writing {trace}\n" + GOOD, "text before the trace"),
    "its beginning lost": (GOOD[EVENTS - 40 :], "text before the trace"),
    "its beginning lost within an event": (GOOD[EVENTS + 1 :], "text before the trace"),
    "an event on each line": (
        b"\n".join(line for line in GOOD.split(b"\n") if b'"ph"' in line),
        "begins within a list of events",
    ),
    "a damaged key": (GOOD.replace(b'"record_shapes"', b'record_shapes"'), "among the top-level"),
    "a string without its end": (GOOD.replace(b'H100"', b"H100"), "among the top-level keys"),
    "a list without its end": (GOOD.replace(b"}],", b"},", 1), "is nested inside"),
    "the key of the events damaged": (GOOD.replace(b"eEv", b"eEw"), "the key `traceEwents`"),
    "the key of the events without a quote": (GOOD.replace(b'ts": [\n', b"ts: [\n"), "keys"),
}


@pytest.mark.parametrize(("data", "words"), HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("size", [400, 1 << 20])
@pytest.mark.sweep(6)
def test_damage_before_the_events_costs_none(
    data: bytes, words: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", size)
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    trace = load(path, cache=False)
    assert isinstance(trace, Trace)
    assert words in report(trace)
    assert trace.slices.height + int(trace.repairs["events_lost"].sum()) >= N - 1
    assert trace.slices.height >= N - 1


DAMAGE: Final[dict[str, tuple[Callable[[str], str], int]]] = {
    "a path": (lambda w: w.replace('"name": "', '"name": "C:\\Users\\q ', 1), 0),
    "quotes": (lambda w: w.replace('"name": "', '"name": "a "b" {"c": 1} ', 1), 0),
    "a bare word": (lambda w: w.replace('"args": {', '"args": {"x": inf, ', 1), 0),
    "bytes": (lambda w: w.replace('"name": "', '"name": "\udcff', 1), 0),
    "depth": (lambda w: w.replace('"args": {', f'"args": {{"d": {"[" * 2000}{"]" * 2000}, ', 1), 0),
    "a decimal comma": (lambda w: w.replace('"dur": ', '"dur": 1,', 1), 1),
    "single quotes": (lambda w: w.replace('"', "'"), 1),
    "no colons": (lambda w: w.replace(":", ";", 3), 1),
    "a cut": (lambda w: w[: len(w) // 2], 1),
}
"""What is done to an event's text, and how many events it costs."""


@pytest.mark.parametrize("size", [1, 200, 1 << 20])
@pytest.mark.parametrize("second", DAMAGE)
@pytest.mark.parametrize("first", DAMAGE)
@pytest.mark.sweep(40)
def test_two_faults_cost_no_more_than_each(
    first: str, second: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", size)
    written = [json.dumps(event) for event in events()]
    for place, (damage, _) in enumerate((DAMAGE[first], DAMAGE[second]), 16):
        written[place] = damage(written[place])
    end = json_text([]).removesuffix(FOOTER.encode())
    text = end + ",\n".join(written).encode("utf-8", "surrogateescape") + FOOTER.encode()
    with open_chunk_decoder(len(text)) as reading:
        [found] = parse_all_traces(TextWindow(iter([text])), reading)
    lost = DAMAGE[first][1] + DAMAGE[second][1]
    assert sum(fault.lost for fault in found.faults) == lost
    assert (
        sum(sum(chunk.event_counts_by_phase_and_category.values()) for chunk in found.chunks)
        == N - lost
    )
