"""Answers kept on disk beside the cache of tables, so that a page opens at once the next time.

An answer is a file named by what it was made from: the trace's mark, the question, and the files of
this program, so that no answer outlives the code that gave it. What is damaged, or was made from
files that changed since, is no answer.
"""

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from threading import Lock
from typing import Any, Final, Generic, TypeVar

import msgspec

from selftime._version import __version__
from selftime.advice.registry import GROUP
from selftime.ingest.cache import Cache, is_private, make_private, write_atomically

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_FOLDER: Final = "answers-1"
"""Its number is raised with each change of the layout."""
_LIMIT: Final = 256 << 20
"""Bytes of answers that are kept; the longest unused go first."""
_LARGEST: Final = 8 << 20
"""Bytes of an answer; a larger one would push out too many."""
_SUM: Final = sha256().digest_size
_State = tuple[str, int, int]
"""A file, its time and its size; -1 if it is not there."""


class Shelf(Generic[K, V]):
    """Values by key. Who asks for one that another is making waits for it."""

    def __init__(self, limit: int, weigh: Callable[[V], int]) -> None:
        self.limit = limit
        self.weigh = weigh
        self._lock = Lock()
        self._values: OrderedDict[K, Future[V]] = OrderedDict()
        self._weights: dict[K, int] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made now if it is not here; an error is told and not kept."""
        with self._lock:
            known = self._values.get(key)
            if known is not None:
                self._values.move_to_end(key)
            else:
                value = self._values[key] = Future()
        return known.result() if known is not None else self._make(key, value, make)

    def _make(self, key: K, value: "Future[V]", make: Callable[[], V]) -> V:
        try:
            made = make()
        except BaseException as error:
            with self._lock:
                del self._values[key]
            value.set_exception(error)
            raise
        value.set_result(made)
        with self._lock:
            self._weights[key] = self.weigh(made)
            self._trim(key)
        return made

    def _trim(self, newest: K) -> None:
        """Let the longest unused go; never the newest, however heavy, nor one in the making."""
        total = sum(self._weights.values())
        for key in list(self._values):
            if total <= self.limit:
                return
            if key in self._weights and key != newest:
                del self._values[key]
                total -= self._weights.pop(key)

    def __len__(self) -> int:
        return len(self._values)


class _Entry(msgspec.Struct, array_like=True):
    """What a file holds."""

    made_from: list[_State]
    body: bytes


class Kept:
    """The user's kept answers; every failure to read or write one is a miss, never an error."""

    def __init__(self) -> None:
        self.folder = Cache().entries.parent / _FOLDER

    def find(self, *question: str) -> bytes | None:
        """The answer to a question, if it is here, sound, and still true."""
        path = self._path(question)
        if not is_private(self.folder):
            return None
        try:
            content = path.read_bytes()
            if sha256(content[_SUM:]).digest() != content[:_SUM]:
                raise ValueError("the answer does not agree with its checksum")  # noqa: TRY301 - a miss like the others
            entry = msgspec.msgpack.decode(content[_SUM:], type=_Entry)
        except (OSError, ValueError, msgspec.DecodeError):
            return None
        if any(stamp_of(Path(state[0])) != state for state in entry.made_from):
            return None
        with suppress(OSError):
            os.utime(path)
        return entry.body

    def keep(self, body: bytes, *question: str, made_from: Iterable[Path] = ()) -> None:
        """Keep an answer, and of which files besides the trace it is true."""
        if len(body) > _LARGEST:
            return
        entry = msgspec.msgpack.encode(_Entry([stamp_of(path) for path in made_from], body))
        with suppress(OSError):
            make_private(self.folder)
            write_atomically(self._path(question), sha256(entry).digest() + entry)
            self._prune()

    def _path(self, question: tuple[str, ...]) -> Path:
        told = msgspec.json.encode([_program(), *question])
        return self.folder / sha256(told).hexdigest()

    def _prune(self) -> None:
        found = [(path, path.stat()) for path in self.folder.iterdir()]
        total = 0
        for path, state in sorted(found, key=lambda one: one[1].st_mtime, reverse=True):
            total += state.st_size
            if total > _LIMIT:
                path.unlink(missing_ok=True)


def stamp_of(path: Path) -> _State:
    """What changes when a file is written."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return str(path), -1, -1
    return str(path), found.st_mtime_ns, found.st_size


@cache
def _program() -> str:
    """What changes with the code that gives answers: ours, and rules of other packages."""
    package = Path(__file__).parents[1]
    files = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".json"))
    others: list[Any] = [
        (entry.name, entry.value, "" if entry.dist is None else entry.dist.version)
        for entry in entry_points(group=GROUP)
    ]
    told = [__version__, [stamp_of(path) for path in files], sorted(others)]
    return sha256(msgspec.json.encode(told)).hexdigest()
