"""Coverage-guided fuzzing by libFuzzer through atheris: each way to read what others wrote.

    python fuzz/targets.py reader -max_total_time=60 CORPUS...

What follows the target's name is libFuzzer's own. A target raises for anything but a trace or one
sentence, so that libFuzzer keeps the input that did it.
"""

import os
import pickle
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import atheris

with atheris.instrument_imports(include=["selftime.ingest", "selftime.nesting"]):
    from selftime.analysis.hang import hang
    from selftime.errors import UnreadableTrace
    from selftime.ingest.flight_recorder.dump_files import read_dump
    from selftime.ingest.flight_recorder.ledger_sightings import read_last_sighting
    from selftime.ingest.flight_recorder.restricted_pickle import read_restricted_pickle
    from selftime.ingest.load import load
    from selftime.ingest.snapshots.allocator_snapshot import read_snapshot
    from selftime.ingest.snapshots.plain_pickles import read_plain_pickle
    from selftime.reports.hang import as_json, as_text
    from selftime.trace import Trace

import hostile_pickles
from linking import check_trace, document

__all__ = ["TARGETS"]

_ACTS: Final = (
    "import", "exec", "compile", "open", "os.", "subprocess.", "socket.", "ctypes.", "pickle.",
    "shutil.", "marshal.",
)  # fmt: skip
"""Events of Python's audit by which a program reaches beyond itself."""


class _Watch:
    """Notes what is done between `begin` and `end`; an audit hook cannot be taken off again."""

    def __init__(self) -> None:
        self.seen: list[str] | None = None
        sys.addaudithook(self._see)

    def _see(self, event: str, _: tuple[Any, ...]) -> None:
        if self.seen is not None and event.startswith(_ACTS):
            self.seen.append(event)

    @contextmanager
    def nothing_happens(self) -> Iterator[None]:
        self.seen = []
        try:
            yield
        finally:
            seen, self.seen = self.seen, None
            if seen:
                raise AssertionError(f"a pickle made Python do {seen}")


_FOLDER: Final = tempfile.TemporaryDirectory(prefix="selftime-fuzz-")
_FILE: Final = Path(_FOLDER.name) / "trace.json"
_DUMP: Final = Path(_FOLDER.name) / "job" / "nccl_trace_rank_0"
_DUMP.parent.mkdir()
_DUMP.with_name("nccl_trace_rank_1").write_bytes(pickle.dumps(hostile_pickles.SOUND_DUMP, 2))


def _told(read: Callable[[], Any]) -> Any:
    """What is read, or None with a sentence; nothing else may happen."""
    try:
        return read()
    except UnreadableTrace as error:
        if len(str(error).splitlines()) != 1:
            raise AssertionError(f"not one sentence: {error}") from error
    return None


def _reader(data: bytes) -> None:
    _FILE.write_bytes(data)
    trace = _told(lambda: load(_FILE, cache=False))
    if isinstance(trace, Trace):
        check_trace(trace)


def _linker(data: bytes) -> None:
    text, complete = document(atheris.FuzzedDataProvider(data))
    _FILE.write_bytes(text)
    trace = _told(lambda: load(_FILE, cache=False))
    if trace is None and complete:
        raise AssertionError("sound events were refused")
    if trace is not None:
        if trace.slices.height < complete:
            raise AssertionError(f"{complete} events, {trace.slices.height} slices")
        check_trace(trace)


def _unpickler(data: bytes) -> None:
    with _WATCH.nothing_happens():
        _told(lambda: read_plain_pickle(data))
    _told(lambda: read_snapshot(data, "snapshot.pickle"))


def _dumps(data: bytes) -> None:
    """A dump, or a ledger, of one rank of a job whose other rank hangs."""
    with _WATCH.nothing_happens():
        value = _told(lambda: read_restricted_pickle(data))
    other = None if value is None else _told(lambda: read_plain_pickle(data))
    if other is not None and repr(other) != repr(value):  # NaN is not equal to itself
        raise AssertionError("the two readers of pickles read different values")
    _told(lambda: read_last_sighting(data, 0, "ledger"))
    _DUMP.write_bytes(data)
    if _told(lambda: read_dump(_DUMP)) is not None:
        found = hang(str(_DUMP.parent))
        as_json(found)
        as_text(found)


"".encode("unicode_escape")  # Python imports what a codec needs when it is first used
_WATCH: Final = _Watch()
TARGETS: Final[Mapping[str, Callable[[bytes], None]]] = MappingProxyType(
    {"reader": _reader, "linker": _linker, "unpickler": _unpickler, "dumps": _dumps}
)

if __name__ == "__main__":
    os.environ["SELFTIME_WORKERS"] = "1"
    name, *arguments = sys.argv[1:]
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()
