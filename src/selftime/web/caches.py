"""Caches computed values in memory, and responses to the web page on disk, for later requests.

On disk, a response is a file named by a hash of the trace's fingerprint, the request, and the state
of selftime's own files, so that new code never uses old responses. Damaged responses, and those
made from files that have changed, are ignored.
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
from selftime.advice.rule_registry import RULE_ENTRY_POINT_GROUP
from selftime.errors import ReadingStopped
from selftime.ingest.trace_cache import (
    TraceCache,
    can_only_user_write_to_folder,
    make_folder_only_user_can_write_to,
    write_atomically,
)
from selftime.web.client_presence import is_client_waiting, result_while_client_waits

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_STORED_ANSWERS_FOLDER_NAME: Final = "answers-1"
"""Name of the folder of stored responses; its number changes with the file layout."""
_MAX_TOTAL_BYTES_OF_STORED_ANSWERS: Final = 256 << 20
"""Largest total size of stored responses in bytes; the least recently used are deleted."""
_MAX_BYTES_OF_ONE_STORED_ANSWER: Final = 8 << 20
"""Largest size of a response that is stored, in bytes."""
_CHECKSUM_LENGTH_BYTES: Final = sha256().digest_size
"""Number of bytes of the checksum before a stored response."""
_FileModificationState = tuple[str, int, int]
"""Path, modification time in ns and size in bytes of a file; -1 if it does not exist."""


class SharedCache(Generic[K, V]):
    """A thread-safe LRU cache of limited size in bytes; only one thread computes each value."""

    def __init__(self, max_weight: int, weight_of: Callable[[V], int]) -> None:
        self.max_weight = max_weight
        self.weight_of = weight_of
        self._lock = Lock()
        self._values: OrderedDict[K, Future[V]] = OrderedDict()
        self._weights: dict[K, int] = {}

    def get(self, key: K, compute: Callable[[], V]) -> V:
        """Returns the value of `key`, computed if it is missing; exceptions are not cached.

        Raises:
            ReadingStopped: The client of this request has gone.
        """
        while True:
            with self._lock:
                cached = self._values.get(key)
                if cached is not None:
                    self._values.move_to_end(key)
                else:
                    value = self._values[key] = Future()
            if cached is None:
                return self._compute_value_and_wake_waiting_threads(key, value, compute)
            try:
                return result_while_client_waits(cached)
            except ReadingStopped:
                if not is_client_waiting():
                    raise
            # the client of the request that computed it has gone, this one has not

    def peek(self, key: K) -> V | None:
        """Returns a value if it is at hand; None if it is missing or being computed."""
        with self._lock:
            cached = self._values.get(key)
            return cached.result() if cached is not None and key in self._weights else None

    def put(self, key: K, value: V) -> None:
        """Keeps a value that was computed with another one, unless the key has one."""
        self.get(key, lambda: value)

    def _compute_value_and_wake_waiting_threads(
        self, key: K, pending: "Future[V]", compute: Callable[[], V]
    ) -> V:
        """Computes and caches a missing value; gives it to all threads that wait for it."""
        try:
            result = compute()
        except BaseException as error:
            with self._lock:
                del self._values[key]
            pending.set_exception(error)
            raise
        pending.set_result(result)
        with self._lock:
            self._weights[key] = self.weight_of(result)
            self._remove_least_recently_used(key)
        return result

    def _remove_least_recently_used(self, newest_key: K) -> None:
        """Removes the least recently used values; never the newest, nor one being computed."""
        total = sum(self._weights.values())
        for key in list(self._values):
            if total <= self.max_weight:
                return
            if key in self._weights and key != newest_key:
                del self._values[key]
                total -= self._weights.pop(key)

    def __len__(self) -> int:
        return len(self._values)


class _StoredAnswer(msgspec.Struct, array_like=True):
    """A response stored on disk, with the modification state of source files that it depends on."""

    made_from: list[_FileModificationState]
    body: bytes


class AnswerStore:
    """A disk cache of responses; an unreadable file counts as missing and raises no error."""

    def __init__(self) -> None:
        self.folder = TraceCache().entries.parent / _STORED_ANSWERS_FOLDER_NAME

    def find(self, *request: str) -> bytes | None:
        """Returns the stored response to a request; None if it is missing, damaged or outdated."""
        path = self._path_of_stored_answer(request)
        if not can_only_user_write_to_folder(self.folder):
            return None
        try:
            content = path.read_bytes()
            if (
                sha256(content[_CHECKSUM_LENGTH_BYTES:]).digest()
                != content[:_CHECKSUM_LENGTH_BYTES]
            ):
                raise ValueError("the answer does not agree with its checksum")  # noqa: TRY301 - handled as a miss
            stored = msgspec.msgpack.decode(content[_CHECKSUM_LENGTH_BYTES:], type=_StoredAnswer)
        except (OSError, ValueError, msgspec.DecodeError):
            return None
        if any(file_modification_state(Path(state[0])) != state for state in stored.made_from):
            return None
        with suppress(OSError):
            os.utime(path)
        return stored.body

    def store(self, response: bytes, *request: str, source_files: Iterable[Path] = ()) -> None:
        """Stores a response on disk; it is valid until one of `source_files` changes."""
        if len(response) > _MAX_BYTES_OF_ONE_STORED_ANSWER:
            return
        entry = msgspec.msgpack.encode(
            _StoredAnswer([file_modification_state(path) for path in source_files], response)
        )
        with suppress(OSError):
            make_folder_only_user_can_write_to(self.folder)
            write_atomically(self._path_of_stored_answer(request), sha256(entry).digest() + entry)
            self._delete_least_recently_used()

    def _path_of_stored_answer(self, request: tuple[str, ...]) -> Path:
        """Returns the path of the file that stores the response to a request."""
        key = msgspec.json.encode([_hash_of_code_and_rules(), *request])
        return self.folder / sha256(key).hexdigest()

    def _delete_least_recently_used(self) -> None:
        """Deletes the least recently used responses until the total size is within the limit."""
        files = [(path, path.stat()) for path in self.folder.iterdir()]
        total = 0
        for path, status in sorted(files, key=lambda entry: entry[1].st_mtime, reverse=True):
            total += status.st_size
            if total > _MAX_TOTAL_BYTES_OF_STORED_ANSWERS:
                path.unlink(missing_ok=True)


def file_modification_state(path: Path) -> _FileModificationState:
    """Returns (path, modification time in ns, size in bytes) of a file; -1 for a missing file."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return str(path), -1, -1
    return str(path), status.st_mtime_ns, status.st_size


@cache
def _hash_of_code_and_rules() -> str:
    """Returns a hash that changes with the code of selftime and of rules in other packages."""
    package = Path(__file__).parents[1]
    files = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".json"))
    rule_packages: list[Any] = [
        (entry.name, entry.value, "" if entry.dist is None else entry.dist.version)
        for entry in entry_points(group=RULE_ENTRY_POINT_GROUP)
    ]
    parts = [__version__, [file_modification_state(path) for path in files], sorted(rule_packages)]
    return sha256(msgspec.json.encode(parts)).hexdigest()
