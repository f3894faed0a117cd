"""Files whose chunks are read where they are decoded: by what they are known, what can go wrong."""

import json
import os
from pathlib import Path

import pytest

from selftime.errors import UnreadableTrace
from selftime.ingest import decoding_workers
from selftime.ingest.decoding_workers import open_chunk_decoder
from selftime.ingest.load import load
from selftime.ingest.text import trace_parsing as chunking
from selftime.ingest.text.file_text_window import FileTextWindow, open_file_text
from selftime.ingest.text.hashed_file import FilePart, HashedFile
from selftime.ingest.text.trace_parsing import parse_all_traces
from selftime.trace import Trace

COUNT = 300


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", 4_000)
    events = [
        {"ph": "X", "cat": "cpu_op", "name": f"op{n}", "pid": 1, "tid": 1, "ts": 9 * n, "dur": 5}
        for n in range(COUNT)
    ]
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events, "traceName": "t"}))
    return file


def content_of(path: Path) -> str:
    """What a file is known by once it is read in parts."""
    with path.open("rb") as file:
        whole = HashedFile(file, path.stat().st_size, str(path))
        text = open_file_text(whole, None)
        assert isinstance(text, FileTextWindow)
        with open_chunk_decoder(whole.size_bytes) as reading:
            [document] = parse_all_traces(text, reading)
    assert (
        sum(sum(chunk.event_counts_by_phase_and_category.values()) for chunk in document.chunks)
        == COUNT
    )
    return whole.hash_hex()


def test_a_file_is_known_by_its_bytes_and_not_by_who_reads_them(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = content_of(path)
    monkeypatch.setattr(decoding_workers, "_MIN_FILE_BYTES_FOR_PROCESSES", 0)
    monkeypatch.setenv("SELFTIME_WORKERS", "2")
    assert content_of(path) == here


@pytest.mark.parametrize("place", [b"schema", b'"op0"', b'"op150"', b'"op299"', b"traceName"])
def test_a_byte_anywhere_makes_it_another_file(path: Path, place: bytes) -> None:
    before = content_of(path)
    text = path.read_bytes()
    at = text.index(place) + 1
    path.write_bytes(text[:at] + b"Z" + text[at + 1 :])
    assert content_of(path) != before


def test_a_part_that_cannot_be_read_is_told_in_a_sentence(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decoding_workers, "_MIN_FILE_BYTES_FOR_PROCESSES", 0)
    monkeypatch.setenv("SELFTIME_WORKERS", "2")
    take = FileTextWindow.take_bytes

    def gone(text: FileTextWindow, count: int) -> FilePart:
        part = take(text, count)
        return FilePart(f"{part.path}.gone", part.offset, part.size_bytes)

    monkeypatch.setattr(FileTextWindow, "take_bytes", gone)
    with pytest.raises(UnreadableTrace, match="cannot be read: No such file or directory"):
        load(path, cache=False)


def test_a_key_of_megabytes_before_the_events_is_read_whole(path: Path) -> None:
    """It takes several reads of the file, each longer than the one before."""
    document = json.loads(path.read_text())
    facts = {"version": 1, "flags": {f"flag {n}": n for n in range(150_000)}}
    path.write_text(json.dumps({"selftime": facts, "traceEvents": document["traceEvents"]}))

    found = load(path, cache=False)

    assert isinstance(found, Trace)
    assert (found.slices.height, found.repairs.height) == (COUNT, 0)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs the descriptors of a process")
def test_a_link_to_what_is_open_here_alone_is_read_from_begin_to_end(path: Path) -> None:
    with path.open("rb") as file:
        assert HashedFile(file, 1, str(path)).path == os.path.realpath(path)
        assert HashedFile(file, 1, os.devnull).path is None
    descriptor = os.open(path, os.O_RDONLY)
    try:
        path.unlink()  # what is open is still there, but no path leads to it
        trace = load(f"/proc/self/fd/{descriptor}", cache=False)
    finally:
        os.close(descriptor)
    assert isinstance(trace, Trace)
    assert trace.slices.height == COUNT
