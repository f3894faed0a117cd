"""Pickles of plain values: numbers, text, lists, tuples, dicts, and nothing that runs code.

A pickle is a program for a small machine, and may call any function that it names. Here a program
is read through before it runs: what names, calls or builds anything, or is longer or claims more
than it holds, is refused. What is left can only put plain values together. Protocols 2 to 5, as
`pickletools` of the standard library describes them.
"""

import os
import pickle
import pickletools
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, Final, NoReturn

from selftime.errors import UnreadableTrace
from selftime.ingest.text.parts import opened
from selftime.ingest.text.sniff import is_pickle
from selftime.ingest.text.source import Source

LIMIT: Final = 4 << 30
"""Bytes of a pickle that are read: in memory its values take several times as many."""


_FIRST, _LAST = 2, 5
"""Protocols that are read."""
_HEADER: Final = 2
_SCALAR: Final = rb"(?:[N\x88\x89)]|K.|M..|J.{4}|G.{8}|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}))"
"""One number, None, a truth value, or the tuple of nothing."""
_RUN: Final = re.compile(
    rb"(?:" + _SCALAR + rb"(?:(?:" + _SCALAR + rb"(?:" + _SCALAR + rb"\x87|\x86))|\x85)"
    rb"|\(" + _SCALAR + rb"{0,16}t"
    rb"|[()012Naesdu\]}\x88\x89\x94]|[Khq].|M..|[Jj].{4}|[G\x95].{8}"
    rb"|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8})){1,4096}",
    re.DOTALL,
)
"""A stretch of operations that make or keep plain values, and whose length is in their code; with
whole numbers of five to eight bytes, as addresses and times are. Tuples are made of numbers only,
as a memory pool's is: Python descends through a key for its hash, without end for tuples in tuples.
"""
_UNHASHED: Final = frozenset({"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_SET", "FROZENSET"})
"""Operations for keys of several values, which no snapshot has."""
_WHOLE: Final = 0x8A
_WHOLE_BYTES: Final = 9
"""Bytes of a number of 64 bits and its sign; greater ones can be chosen to have the same hash."""
_COUNTED: Final = {
    ord("X"): 4, 0x8C: 1, 0x8D: 8,  # text
    ord("C"): 1, ord("B"): 4, 0x8E: 8, 0x96: 8,  # bytes
    _WHOLE: 1,  # whole numbers
}  # fmt: skip
"""Operations that tell their length, and in how many bytes they tell it."""
_TEXT: Final = frozenset({ord("X"), 0x8C, 0x8D})
_KEEP: Final = ord("r")
"""Keeps a value under a number of four bytes; Python makes room for every number below it."""
_FREE_NUMBERS: Final = 255
"""Numbers of one byte are kept as they come."""
_STOP: Final = ord(".")
_KNOWN: Final = {ord(op.code): op for op in pickletools.opcodes}
_SHOWN: Final = 80
"""Characters of a name that a message shows."""
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


def whole(first: bytes, blocks: Iterator[bytes]) -> bytes:
    """The bytes of a snapshot, within what can be read at once.

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
    """The plain values of the snapshot in a file, a dict; None if the file is no pickle.

    Raises:
        UnreadableTrace: The pickle holds anything but plain values, or is no snapshot.
    """
    where = os.fspath(place)
    with opened(where) as (file, size):
        blocks = Source(file, size, progress).blocks()
        try:
            first = next(blocks, b"")
            if not is_pickle(first):
                return None
            found = read_plain(whole(first, blocks))
        except UnreadableTrace as error:
            raise UnreadableTrace(f"`{where}` cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableTrace(f"`{where}` is a pickle of something else than a snapshot")
    return found


def read_plain(data: bytes) -> Any:
    """The value in a pickle.

    Raises:
        UnreadableTrace: It holds anything but plain values, or is damaged or cut short.
    """
    if len(data) < _HEADER or not _FIRST <= data[1] <= _LAST:
        raise UnreadableTrace("it is a pickle of a protocol other than 2 to 5")
    _Scan(data).run()
    try:
        return _Plain(BytesIO(data), encoding="utf-8").load()
    except _DAMAGED as error:
        raise UnreadableTrace(f"it is a damaged pickle ({error})") from error


class _Plain(pickle.Unpickler):
    """Python's own reader, which finds no class and no function."""

    def find_class(self, module: str, name: str) -> NoReturn:
        _refuse(f"`{module}.{name}`")

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002 - whatever it is
        _refuse("an object that is kept elsewhere")


def _refuse(what: str) -> NoReturn:
    shown = what.encode("unicode_escape").decode()
    raise UnreadableTrace(
        f"it is a pickle that would load {shown}, which a memory snapshot does not hold and which "
        "may run any code: give a file that `torch.cuda.memory._dump_snapshot` wrote"
    )


class _Scan:
    """Reads a pickle's operations without running them."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, _HEADER
        self.numbers = _FREE_NUMBERS
        self.texts: list[str] = []
        """The last texts, which name what an operation after them would load."""

    def run(self) -> None:
        while True:
            while (run := _RUN.match(self.data, self.at)) is not None:
                self.at = run.end()
            operation = self._byte()
            if operation == _STOP:
                return
            if operation in _COUNTED:
                self._counted(operation)
            elif operation == _KEEP:
                self._keep()
            else:
                self._refuse(operation)

    def _byte(self) -> int:
        if self.at >= len(self.data):
            self._truncated()
        return self.data[self.at]

    def _counted(self, operation: int) -> None:
        width = _COUNTED[operation]
        begin = self.at + 1 + width
        end = begin + int.from_bytes(self.data[self.at + 1 : begin], "little")
        if operation == _WHOLE and (
            end - begin > _WHOLE_BYTES or self.data[begin + 8 : end] > b"\0"
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

    def _refuse(self, operation: int) -> NoReturn:
        known = _KNOWN.get(operation)
        if known is None:
            raise UnreadableTrace(f"it is a damaged pickle (no operation {operation:#04x})")
        if known.name in _NAMING:
            _refuse(_named(known.name, self.data[self.at + 1 :][:_SHOWN], self.texts))
        if known.name in _CALLING:
            _refuse("an object")
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


def _named(operation: str, after: bytes, texts: list[str]) -> str:
    """What an operation would load: named by the lines after it, or by the texts before it."""
    if operation == "STACK_GLOBAL":
        return f"`{'.'.join(texts)}`"
    lines = after.split(b"\n")[:2]
    return f"`{'.'.join(line.decode('utf-8', 'backslashreplace') for line in lines)}`"
