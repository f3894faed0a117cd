"""Rough input: each case of every section, held to what must happen to it, and to rules for all.

No crash; nothing dropped silently; the same tables plain and compressed, read in small chunks, read
again from the cache, and in another order; a refusal is one line and leaves nothing behind.
"""

import gzip
import os
from importlib import import_module
from pathlib import Path
from random import Random
from time import process_time
from types import ModuleType
from typing import Final

import pytest
from polars.testing import assert_frame_equal
from tests.ingest.rough.case import ENTRIES, Case, report, shuffled

from selftime.errors import UnreadableTrace
from selftime.ingest.load import load
from selftime.ingest.text import trace_parsing as chunking
from selftime.trace import Trace

HERE: Final = Path(__file__).parent
LEAST_BACK: Final = 0.95
"""Of the sound events of a damaged file."""
SOON: Final = 5.0
"""Seconds of computing within which what cannot be read is refused."""
SMALL_CHUNK: Final = 400
"""Bytes: a chunk of about two events, so that faults lie across the chunks' borders."""


def section(name: str) -> ModuleType:
    return import_module(f"tests.ingest.rough.{name}")


def cases_of(name: str) -> list[Case]:
    """The cases of a section: its module's members, and those of its lists."""
    members = vars(section(name)).values()
    listed = [each for found in members if isinstance(found, list) for each in found]
    return [found for found in [*members, *listed] if isinstance(found, Case)]


WRITTEN: Final = [name for name in ENTRIES if (HERE / f"{name}.py").is_file()]
CASES: Final = [found for name in WRITTEN for found in cases_of(name)]


@pytest.mark.parametrize("name", WRITTEN)
def test_every_entry_has_its_case(name: str) -> None:
    """Or a test of its own, or a reason why it is left out."""
    listed = {f"{n}{letter}" for n, letters in ENTRIES[name].items() for letter in letters or [""]}
    elsewhere: dict[str, str] = getattr(section(name), "HELD_BY", {})
    left_out: dict[str, str] = getattr(section(name), "LEFT_OUT", {})
    assert {found.entry for found in cases_of(name)} | {*elsewhere} | {*left_out} == listed
    for test in elsewhere.values():
        file, _, function = test.partition("::")
        assert f"def {function}(" in (HERE / file).read_text("utf-8")
    assert all(left_out.values())


def test_cases_have_different_names() -> None:
    names = [found.id for found in CASES]
    assert len(names) == len(set(names))


class Folder:
    """Where a case's file is written, and read in one way or another."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, data: bytes, name: str = "trace.json", *, cache: bool = False) -> Trace:
        path = self.path / name
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)
        trace = load(path, cache=cache)
        assert isinstance(trace, Trace)
        return trace

    def refusal(self, data: bytes, name: str = "trace.json") -> str:
        begun = process_time()
        with pytest.raises(UnreadableTrace) as caught:
            self.read(data, name, cache=True)
        assert process_time() - begun < SOON
        text = str(caught.value)
        assert "\n" not in text
        assert text.isprintable()
        assert name in text
        return text


@pytest.mark.parametrize("found", CASES, ids=[found.id for found in CASES])
@pytest.mark.sweep(20)
def test_rough(found: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, data = Folder(tmp_path), found.data()
    if found.outcome == "refuse":
        hold_refused(found, folder, data)
        return
    first = folder.read(data, cache=True)
    hold_outcome(found, first)
    assert_same(folder.read(data, cache=True), first)
    if not found.in_one:
        monkeypatch.setattr(chunking, "EVENT_CHUNK_BYTES", SMALL_CHUNK)
    again = folder.read(data if found.plain_only else gzip.compress(data), "unknown")
    assert_same(again, first)
    if not again.repairs.equals(first.repairs):  # all else is equal, and so is what is told of it
        hold_outcome(found, again)
    order = shuffled(data, Random(found.id)) if found.outcome == "accept" else None  # noqa: S311 - no secret
    if order is not None:
        assert_same_but_for_order(folder.read(order, "shuffled.json"), first)


def hold_refused(found: Case, folder: Folder, data: bytes) -> None:
    texts = [folder.refusal(data)]
    if not found.plain_only:
        texts.append(folder.refusal(gzip.compress(data), "unknown"))
    for text in texts:
        assert all(word in text for word in found.words), text
    assert not Path(os.environ["SELFTIME_CACHE"]).exists()
    assert {path.name for path in folder.path.iterdir()} <= {"trace.json", "unknown"}


def hold_outcome(found: Case, trace: Trace) -> None:
    """What the outcome promises, and that every event is loaded or reported lost."""
    loaded = int(trace.events["count"].sum())
    lost = int(trace.repairs["events_lost"].sum())
    told = report(trace)
    assert loaded + lost == found.sound + found.lost, told
    assert lost == found.lost, told
    assert loaded >= LEAST_BACK * found.sound
    for word in found.words:
        assert word in told, f"`{word}` is not in: {told}"
    faults = trace.repairs.filter(~trace.repairs["note"])
    if found.outcome == "accept":
        assert faults.is_empty(), told
    if found.outcome == "recover":  # what lies in sound events, health tells
        assert faults.height or found.words, told
    if found.outcome == "limit":
        assert found.words, "a limit is named"
    if found.check is not None:
        found.check(trace)


def assert_same(trace: Trace, expected: Trace) -> None:
    """All tables but the repairs, whose counts may differ by where a chunk ends; these by kind."""
    for name, table in expected.tables().items():
        if name != "repairs":
            assert_frame_equal(trace.tables()[name], table, categorical_as_str=True)
    assert set(trace.repairs["fault"]) == set(expected.repairs["fault"])
    assert trace.metadata == expected.metadata
    assert trace.origin == expected.origin


ORDERED: Final = ("name", "category", "start", "duration", "depth", "self")
"""Columns of slices that tell nothing of the file's order."""


def assert_same_but_for_order(trace: Trace, expected: Trace) -> None:
    found, wanted = (t.slices.select(ORDERED) for t in (trace, expected))
    assert_frame_equal(found, wanted, check_row_order=False, categorical_as_str=True)
    for name in ("devices", "events"):
        assert_frame_equal(trace.tables()[name], expected.tables()[name])
    assert trace.origin == expected.origin
