"""Coverage-guided fuzzing by libFuzzer through atheris: the reader, the linker, the unpickler.

    python fuzz/targets.py reader -max_total_time=60 CORPUS...

What follows the target's name is libFuzzer's own. A target raises for anything but a trace or one
sentence, so that libFuzzer keeps the input that did it.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import atheris

with atheris.instrument_imports(include=["selftime.ingest", "selftime.nesting"]):
    from selftime.errors import UnreadableTrace
    from selftime.ingest.load import load
    from selftime.ingest.snapshots.allocator_snapshot import read_snapshot
    from selftime.ingest.snapshots.plain_pickles import read_plain_pickle
    from selftime.trace import Trace

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


"".encode("unicode_escape")  # Python imports what a codec needs when it is first used
_WATCH: Final = _Watch()
TARGETS: Final[Mapping[str, Callable[[bytes], None]]] = MappingProxyType(
    {"reader": _reader, "linker": _linker, "unpickler": _unpickler}
)

if __name__ == "__main__":
    os.environ["SELFTIME_WORKERS"] = "1"
    name, *arguments = sys.argv[1:]
    atheris.Setup([sys.argv[0], *arguments], TARGETS[name])
    atheris.Fuzz()
