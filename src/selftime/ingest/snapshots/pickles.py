"""Read pickles of plain values: numbers, text, lists, tuples and dicts; nothing that runs code.

A pickle is a program for a stack machine, and may call any function that it names. Here the program
is scanned before it runs: a pickle that names, calls or builds anything, or claims more bytes than
it has, is refused. What remains can only build plain values. Protocols 2 to 5, as `pickletools` of
the standard library describes them.
"""

import os
import pickle
import pickletools
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Final, NoReturn

from selftime.errors import UnreadableTrace
from selftime.ingest.text.parts import open_unchanged
from selftime.ingest.text.sniff import is_pickle
from selftime.ingest.text.source import Source

LIMIT: Final = 4 << 30
"""The largest pickle that is read, in bytes: its values take several times as much memory."""


_FIRST, _LAST = 2, 5
"""The first and last pickle protocol that is supported."""
_HEADER: Final = 2
_SCALAR: Final = rb"(?:[N\x88\x89)]|K.|M..|J.{4}|G.{8}|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}))"
"""One number, None, a boolean, or the empty tuple."""
_RUN: Final = re.compile(
    rb"(?:" + _SCALAR + rb"(?:(?:" + _SCALAR + rb"(?:" + _SCALAR + rb"\x87|\x86))|\x85)"
    rb"|\(" + _SCALAR + rb"{0,16}t"
    rb"|[()012Naesdu\]}\x88\x89\x94]|[Khq].|M..|[Jj].{4}|[G\x95].{8}"
    rb"|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8})){1,4096}",
    re.DOTALL,
)
"""A run of operations of fixed length that build or memoize plain values, and integers of five to
eight bytes, which addresses and times have. Tuples may hold only scalars, as a memory pool's id
does: hashing a key made of nested tuples can take exponential time.
"""
_UNHASHED: Final = frozenset({"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_SET", "FROZENSET"})
"""Operations that build compound dict keys, which no snapshot has."""
_INTEGER: Final = 0x8A
_INTEGER_BYTES: Final = 9
"""Bytes of a signed 64-bit integer; larger ones could be chosen to collide in a hash table."""
_LENGTH_PREFIXED: Final = {
    ord("X"): 4, 0x8C: 1, 0x8D: 8,  # text
    ord("C"): 1, ord("B"): 4, 0x8E: 8, 0x96: 8,  # bytes
    _INTEGER: 1,  # whole numbers
}  # fmt: skip
"""Operations with a length prefix, and the prefix's size in bytes."""
_TEXT: Final = frozenset({ord("X"), 0x8C, 0x8D})
_MEMOIZE: Final = ord("r")
"""Memoizes a value under a four-byte index; Python allocates memory for every index below it."""
_FREE_INDICES: Final = 255
"""Memo indices of one byte are always allowed."""
_STOP: Final = ord(".")
_KNOWN: Final = {ord(op.code): op for op in pickletools.opcodes}
_SHOWN: Final = 80
"""The most characters of a name that a message shows."""
_NAMING: Final = frozenset({"GLOBAL", "INST", "STACK_GLOBAL"})
_CALLING: Final = frozenset(
    {"REDUCE", "BUILD", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"}
)
_DAMAGED: Final = (
    pickle.UnpicklingError,
    EOFError,
    AttributeError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    TypeError,
    ValueError,
)


def join_blocks(first: bytes, blocks: Iterator[bytes]) -> bytes:
    """Returns the bytes of a snapshot, joined.

    Raises:
        UnreadableTrace: They are more than `LIMIT`.
    """
    parts, size = [first], len(first)
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > LIMIT:
            raise UnreadableTrace(
                f"it is a memory snapshot of more than {LIMIT >> 30} GiB: record fewer entries "
                "with `max_entries`"
            )
    return b"".join(parts)


def snapshot_values(
    place: str | os.PathLike[str], progress: Callable[[int, int | None], None] | None = None
) -> Any:
    """Returns the plain values of a snapshot file as a dict; None if it is not a pickle.

    Raises:
        UnreadableTrace: The pickle holds anything but plain values, or is not a snapshot.
    """
    where = os.fspath(place)
    with open_unchanged(where) as (file, size):
        blocks = Source(file, size, progress).blocks()
        try:
            first = next(blocks, b"")
            if not is_pickle(first):
                return None
            found = read_plain(join_blocks(first, blocks))
        except UnreadableTrace as error:
            raise UnreadableTrace(f"`{where}` cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableTrace(f"`{where}` is a pickle of something else than a snapshot")
    return found


def read_plain(data: bytes) -> Any:
    """Returns the value in a pickle.

    Raises:
        UnreadableTrace: It holds anything but plain values, or is damaged or truncated.
    """
    if len(data) < _HEADER or not _FIRST <= data[1] <= _LAST:
        raise UnreadableTrace("it is a pickle of a protocol other than 2 to 5")
    _Scan(data).run()
    try:
        return _PlainUnpickler(BytesIO(data), encoding="utf-8").load()
    except _DAMAGED as error:
        raise UnreadableTrace(f"it is a damaged pickle ({error})") from error


class _PlainUnpickler(pickle.Unpickler):
    """Python's own unpickler, without access to classes and functions."""

    def find_class(self, module: str, name: str) -> NoReturn:
        _refuse_object(f"`{module}.{name}`")

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002 - whatever it is
        _refuse_object("an object that is kept elsewhere")


def _refuse_object(what: str) -> NoReturn:
    shown = what.encode("unicode_escape").decode()
    raise UnreadableTrace(
        f"it is a pickle that would load {shown}, which a memory snapshot does not hold and which "
        "may run any code: give a file that `torch.cuda.memory._dump_snapshot` wrote"
    )


class _Scan:
    """Scans a pickle's operations without running them."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, _HEADER
        self.numbers = _FREE_INDICES
        self.texts: list[str] = []
        """The last two texts: a following operation may load the object that they name."""

    def run(self) -> None:
        while True:
            while (run := _RUN.match(self.data, self.at)) is not None:
                self.at = run.end()
            operation = self._byte()
            if operation == _STOP:
                return
            if operation in _LENGTH_PREFIXED:
                self._counted(operation)
            elif operation == _MEMOIZE:
                self._keep()
            else:
                self._refuse_object(operation)

    def _byte(self) -> int:
        if self.at >= len(self.data):
            self._truncated()
        return self.data[self.at]

    def _counted(self, operation: int) -> None:
        width = _LENGTH_PREFIXED[operation]
        begin = self.at + 1 + width
        end = begin + int.from_bytes(self.data[self.at + 1 : begin], "little")
        if operation == _INTEGER and (
            end - begin > _INTEGER_BYTES or self.data[begin + 8 : end] > b"\0"
        ):
            raise UnreadableTrace(
                "it is a pickle with a number beyond 64 bits, which no memory snapshot holds: "
                "give a file that `torch.cuda.memory._dump_snapshot` wrote"
            )
        if end > len(self.data):
            self._truncated()
        if operation in _TEXT:
            text = self.data[begin : min(end, begin + _SHOWN)].decode("utf-8", "backslashreplace")
            self.texts = [*self.texts[-1:], text]
        self.at = end

    def _keep(self) -> None:
        end = self.at + 5
        if end > len(self.data):
            self._truncated()
        number = int.from_bytes(self.data[self.at + 1 : end], "little")
        if number > self.numbers + 1:
            raise UnreadableTrace("it is a damaged pickle (it keeps values under false numbers)")
        self.numbers = max(self.numbers, number)
        self.at = end

    def _refuse_object(self, operation: int) -> NoReturn:
        known = _KNOWN.get(operation)
        if known is None:
            raise UnreadableTrace(f"it is a damaged pickle (no operation {operation:#04x})")
        if known.name in _NAMING:
            _refuse_object(_loaded_name(known.name, self.data[self.at + 1 :][:_SHOWN], self.texts))
        if known.name in _CALLING:
            _refuse_object("an object")
        if known.name in _UNHASHED:
            raise UnreadableTrace(
                "it is a pickle with a set, or a tuple of more than numbers, which no memory "
                "snapshot holds: give a file that `torch.cuda.memory._dump_snapshot` wrote"
            )
        if known.arg is not None and known.arg.n >= 0 and self.at + known.arg.n >= len(self.data):
            self._truncated()
        raise UnreadableTrace(f"it is a pickle with an operation that is not read ({known.name})")

    def _truncated(self) -> NoReturn:
        raise UnreadableTrace(
            f"it is a pickle that ends too early, after {len(self.data):,} bytes: give a whole one"
        )


def _loaded_name(operation: str, after: bytes, texts: list[str]) -> str:
    """Returns the name of what an operation would load: in the lines after it, or texts before."""
    if operation == "STACK_GLOBAL":
        return f"`{'.'.join(texts)}`"
    lines = after.split(b"\n")[:2]
    return f"`{'.'.join(line.decode('utf-8', 'backslashreplace') for line in lines)}`"
