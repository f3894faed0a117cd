"""The cache gives what the file holds, or nothing: whatever is done to it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from selftime.ingest import trace_cache as caching
from selftime.ingest.load import load
from selftime.ingest.trace_cache import TraceCache, file_stamp
from selftime.trace import Trace


@pytest.fixture
def path(tmp_path: Path, text: bytes) -> Path:
    file = tmp_path / "trace.json"
    file.write_bytes(text)
    return file


def read(path: Path) -> Trace:
    trace = load(path)
    assert isinstance(trace, Trace)
    return trace


def assert_same(found: Trace, expected: Trace) -> None:
    for name, table in expected.tables().items():
        assert_frame_equal(found.tables()[name], table, categorical_as_str=True)
    assert (found.metadata, found.origin) == (expected.metadata, expected.origin)
    assert found.source == expected.source


def spoil(path: Path) -> None:
    """Other bytes, of the same length and age: whoever reads the file now, reads no trace."""
    found = path.stat()
    with path.open("r+b") as file:
        file.write(b"x" * found.st_size)
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def entries() -> list[Path]:
    folder = TraceCache().entries
    return sorted(folder.iterdir()) if folder.is_dir() else []


def test_the_second_time_the_file_is_not_read(path: Path) -> None:
    first = read(path)
    spoil(path)
    assert_same(read(path), first)


def test_the_cache_of_the_cache_is_the_same(path: Path) -> None:
    first = read(path)
    second = read(path)
    TraceCache().write_trace("copy", None, second)
    third = TraceCache().read_by_content_hash("copy", str(path))
    assert third is not None
    assert_same(third, first)


def test_a_touched_file_of_the_same_content_shares_its_entry(path: Path, tmp_path: Path) -> None:
    first = read(path)
    os.utime(path, (1, 1))
    assert_same(read(path), first)
    shutil.copy(path, tmp_path / "copy.json")
    read(tmp_path / "copy.json")
    assert len(entries()) == 1


def test_a_changed_file_is_read_anew(path: Path) -> None:
    read(path)
    path.write_bytes(path.read_bytes().replace(b"aten::addmm", b"aten::bmmmm"))
    assert "aten::bmmmm" in read(path).slices["name"]


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x55
    file.write_bytes(bytes(data))


def clear(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("damage", [cut, flip, clear, Path.unlink])
@pytest.mark.parametrize("name", ["tables.columns", "manifest.json"])
def test_a_damaged_entry_is_built_anew(
    name: str, damage: Callable[[Path], None], path: Path
) -> None:
    first = read(path)
    [entry] = entries()
    damage(entry / name)
    assert_same(read(path), first)
    spoil(path)
    assert_same(read(path), first)


@pytest.mark.parametrize("content", ["", "../../etc", "x" * 64, "\udcff"])
def test_a_damaged_index_is_no_way_out(content: str, path: Path) -> None:
    first = read(path)
    (TraceCache().index / file_stamp(path)).write_bytes(content.encode("utf-8", "surrogateescape"))
    assert_same(read(path), first)


def test_another_format_is_not_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = read(path)
    monkeypatch.setattr(caching, "CACHE_FORMAT_VERSION", caching.CACHE_FORMAT_VERSION + 1)
    assert entries() == []
    assert_same(read(path), first)
    assert len(entries()) == 1


def test_a_cache_that_cannot_be(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("SELFTIME_CACHE", str(tmp_path / "file" / "cache"))
    assert_same(read(path), read(path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_cache_that_cannot_be_written(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    monkeypatch.setenv("SELFTIME_CACHE", str(folder))
    assert_same(read(path), read(path))


def test_without_the_cache_nothing_is_written(path: Path) -> None:
    load(path, cache=False)
    assert entries() == []


def test_another_process_reads_what_is_kept(path: Path) -> None:
    first = read(path)
    spoil(path)
    program = (
        "import sys; from selftime.ingest.load import load; trace = load(sys.argv[1]);"
        "print(trace.slices['name'].cast(str).to_list())"
    )
    told = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, check=True, text=True
    )
    assert told.stdout.strip() == repr(first.slices["name"].cast(pl.String).to_list())


def test_two_processes_at_once(path: Path) -> None:
    program = (
        "import sys; from selftime.ingest.load import load; print(load(sys.argv[1]).slices.height)"
    )
    running = [
        subprocess.Popen(  # noqa: S603 - our own interpreter
            [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    heights = [int(process.communicate()[0]) for process in running]
    assert heights == [read(path).slices.height] * 2
    assert len(entries()) == 1


def test_beyond_its_limit_the_longest_unused_goes_first(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what another version of selftime kept; never what was just written."""
    read(path)
    [first] = entries()
    size = sum(file.stat().st_size for file in first.iterdir())
    older = TraceCache().entries.with_name("tables-1") / "entry"
    older.mkdir(0o700, parents=True)
    older.parent.chmod(0o700)
    (older / "slices.arrow").write_bytes(b"x")
    os.utime(older, (1, 1))
    os.utime(first, (2, 2))

    monkeypatch.setattr(caching, "_MAX_CACHE_BYTES", 3 * size)
    second = tmp_path / "second.json"
    second.write_bytes(path.read_bytes().replace(b"aten::addmm", b"aten::bmmmm"))
    read(second)
    assert older.exists()
    assert len(entries()) == 2

    monkeypatch.setattr(caching, "_MAX_CACHE_BYTES", 1)
    third = tmp_path / "third.json"
    third.write_bytes(path.read_bytes().replace(b"aten::addmm", b"aten::cmmmm"))
    newest = read(third)
    assert not older.exists()
    [left] = entries()
    assert left != first
    spoil(third)
    assert_same(read(third), newest)
