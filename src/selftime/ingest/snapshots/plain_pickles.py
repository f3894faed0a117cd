"""Unpickles numbers, texts, lists, tuples and dicts, and refuses pickles that could run code.

A pickle is a program for a stack machine, and may call any function that it names. Here the program
is scanned before it runs: a pickle that names, calls or builds anything, or claims more bytes than
it has, is refused. What remains can only build plain values. Protocols 2 to 5, as `pickletools` of
the standard library describes them.
"""

import os
import pickle
import pickletools
import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Final, NoReturn

from selftime.errors import UnreadableTrace
from selftime.ingest.text.decompressed_text import DecompressedFile
from selftime.ingest.text.format_detection import is_pickle
from selftime.ingest.text.trace_text_stream import open_checking_for_changes
from selftime.progress import ProgressCallback

MAX_PICKLE_BYTES: Final = 4 << 30
"""Largest pickle that is read, in bytes; the unpickled values take several times as much memory."""


_FIRST_PICKLE_PROTOCOL, _LAST_PICKLE_PROTOCOL = 2, 5
"""The first and last pickle protocol that is supported."""
_PICKLE_HEADER_BYTES: Final = 2
_SCALAR_OPERATION_PATTERN: Final = (
    rb"(?:[N\x88\x89)]|K.|M..|J.{4}|G.{8}|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8}))"
)
"""Matches the opcode of one number, None, a boolean, or the empty tuple."""
_PLAIN_OPERATIONS_PATTERN: Final = re.compile(
    rb"(?:"
    + _SCALAR_OPERATION_PATTERN
    + rb"(?:(?:"
    + _SCALAR_OPERATION_PATTERN
    + rb"(?:"
    + _SCALAR_OPERATION_PATTERN
    + rb"\x87|\x86))|\x85)"
    rb"|\(" + _SCALAR_OPERATION_PATTERN + rb"{0,16}t"
    rb"|[()012Naesdu\]}\x88\x89\x94]|[Khq].|M..|[Jj].{4}|[G\x95].{8}"
    rb"|\x8a(?:\x05.{5}|\x06.{6}|\x07.{7}|\x08.{8})){1,4096}",
    re.DOTALL,
)
"""Matches a run of operations of fixed length that build or memoize plain values, and integers of
five to eight bytes. Tuples may hold only scalars.
"""
_NESTED_TUPLE_AND_SET_OPERATIONS: Final = frozenset(
    {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_SET", "FROZENSET"}
)
"""Names of pickle operations that build tuples or sets as dict keys; no snapshot has these."""
_LONG_INTEGER_OPCODE: Final = 0x8A
_MAX_LONG_INTEGER_BYTES: Final = 9
"""Largest number of bytes of an integer in a pickle; larger integers could be made to collide in a
hash table.
"""
_LENGTH_PREFIX_BYTES_BY_OPCODE: Final = {
    ord("X"): 4, 0x8C: 1, 0x8D: 8,  # text
    ord("C"): 1, ord("B"): 4, 0x8E: 8, 0x96: 8,  # bytes
    _LONG_INTEGER_OPCODE: 1,  # whole numbers
}  # fmt: skip
"""The size, in bytes, of the length prefix of each opcode that has one."""
_TEXT_OPCODES: Final = frozenset({ord("X"), 0x8C, 0x8D})
_MEMOIZE_OPCODE: Final = ord("r")
"""The opcode that stores a value under a four-byte index. Python allocates memory for all lower
indices too.
"""
_MAX_ONE_BYTE_MEMO_INDEX: Final = 255
"""Largest memo index that fits in one byte; such indices are always allowed."""
_STOP_OPCODE: Final = ord(".")
_OPCODE_INFO_BY_BYTE: Final = {ord(op.code): op for op in pickletools.opcodes}
_MAX_SHOWN_NAME_CHARACTERS: Final = 80
"""Largest number of characters of a name that a message shows."""
_IMPORT_OPERATIONS: Final = frozenset({"GLOBAL", "INST", "STACK_GLOBAL"})
_CALL_OPERATIONS: Final = frozenset(
    {"REDUCE", "BUILD", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"}
)
_UNPICKLING_ERRORS: Final = (
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


def join_snapshot_blocks(first_block: bytes, blocks: Iterator[bytes]) -> bytes:
    """Returns the joined blocks of a memory snapshot's pickle, at most `MAX_PICKLE_BYTES`.

    Raises:
        UnreadableTrace: They are more than `MAX_PICKLE_BYTES`.
    """
    parts, size = [first_block], len(first_block)
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > MAX_PICKLE_BYTES:
            raise UnreadableTrace(
                f"it is a memory snapshot of more than {MAX_PICKLE_BYTES >> 30} GiB: record fewer "
                "entries with `max_entries`"
            )
    return b"".join(parts)


def read_snapshot_values(
    path: str | os.PathLike[str], progress: ProgressCallback | None = None
) -> Any:
    """Returns the dict in a memory snapshot's file; None if the file is not a pickle.

    Raises:
        UnreadableTrace: The pickle holds anything but plain values, or is not a snapshot.
    """
    path_text = os.fspath(path)
    with open_checking_for_changes(path_text) as (file, size):
        blocks = DecompressedFile(file, size, progress).text_blocks()
        try:
            first = next(blocks, b"")
            if not is_pickle(first):
                return None
            found = read_plain_pickle(join_snapshot_blocks(first, blocks))
        except UnreadableTrace as error:
            raise UnreadableTrace(f"`{path_text}` cannot be read: {error}") from error
    if not isinstance(found, dict):
        raise UnreadableTrace(f"`{path_text}` is a pickle of something else than a snapshot")
    return found


def read_plain_pickle(pickle_bytes: bytes) -> Any:
    """Unpickles a value made of numbers, texts, lists, tuples and dicts; runs no code in it.

    Raises:
        UnreadableTrace: It holds anything but plain values, or is damaged or truncated.
    """
    if (
        len(pickle_bytes) < _PICKLE_HEADER_BYTES
        or not _FIRST_PICKLE_PROTOCOL <= pickle_bytes[1] <= _LAST_PICKLE_PROTOCOL
    ):
        raise UnreadableTrace("it is a pickle of a protocol other than 2 to 5")
    _PickleScanner(pickle_bytes).scan()
    try:
        return _PlainUnpickler(BytesIO(pickle_bytes), encoding="utf-8").load()
    except _UNPICKLING_ERRORS as error:
        raise UnreadableTrace(f"it is a damaged pickle ({error})") from error


class _PlainUnpickler(pickle.Unpickler):
    """An unpickler that refuses to load classes, functions and persistent objects."""

    def find_class(self, module: str, name: str) -> NoReturn:
        _raise_for_pickled_object(f"`{module}.{name}`")

    def persistent_load(self, pid: Any) -> NoReturn:  # noqa: ARG002 - whatever it is
        _raise_for_pickled_object("an object outside the pickle")


def _raise_for_pickled_object(description: str) -> NoReturn:
    shown = description.encode("unicode_escape").decode()
    raise UnreadableTrace(
        f"it is a pickle that would load {shown}, which a memory snapshot does not hold and which "
        "may run any code: give a file that `torch.cuda.memory._dump_snapshot` wrote"
    )


class _PickleScanner:
    """Checks that a pickle has only operations that build plain values, without running them."""

    def __init__(self, pickle_bytes: bytes) -> None:
        self.data, self.at = pickle_bytes, _PICKLE_HEADER_BYTES
        self.numbers = _MAX_ONE_BYTE_MEMO_INDEX
        self.texts: list[str] = []
        """The last two texts in the pickle; a following operation may load the object that they
        name.
        """

    def scan(self) -> None:
        while True:
            while (run := _PLAIN_OPERATIONS_PATTERN.match(self.data, self.at)) is not None:
                self.at = run.end()
            operation = self._opcode_at_position()
            if operation == _STOP_OPCODE:
                return
            if operation in _LENGTH_PREFIX_BYTES_BY_OPCODE:
                self._skip_length_prefixed_value(operation)
            elif operation == _MEMOIZE_OPCODE:
                self._check_memo_index_size()
            else:
                self._raise_for_refused_operation(operation)

    def _opcode_at_position(self) -> int:
        if self.at >= len(self.data):
            self._raise_truncated_pickle()
        return self.data[self.at]

    def _skip_length_prefixed_value(self, opcode: int) -> None:
        width = _LENGTH_PREFIX_BYTES_BY_OPCODE[opcode]
        begin = self.at + 1 + width
        end = begin + int.from_bytes(self.data[self.at + 1 : begin], "little")
        if opcode == _LONG_INTEGER_OPCODE and (
            end - begin > _MAX_LONG_INTEGER_BYTES or self.data[begin + 8 : end] > b"\0"
        ):
            raise UnreadableTrace(
                "it is a pickle with a number beyond 64 bits, which no memory snapshot holds: "
                "give a file that `torch.cuda.memory._dump_snapshot` wrote"
            )
        if end > len(self.data):
            self._raise_truncated_pickle()
        if opcode in _TEXT_OPCODES:
            text = self.data[begin : min(end, begin + _MAX_SHOWN_NAME_CHARACTERS)].decode(
                "utf-8", "backslashreplace"
            )
            self.texts = [*self.texts[-1:], text]
        self.at = end

    def _check_memo_index_size(self) -> None:
        end = self.at + 5
        if end > len(self.data):
            self._raise_truncated_pickle()
        number = int.from_bytes(self.data[self.at + 1 : end], "little")
        if number > self.numbers + 1:
            raise UnreadableTrace("it is a damaged pickle (its memo indices are not consecutive)")
        self.numbers = max(self.numbers, number)
        self.at = end

    def _raise_for_refused_operation(self, opcode: int) -> NoReturn:
        known = _OPCODE_INFO_BY_BYTE.get(opcode)
        if known is None:
            raise UnreadableTrace(f"it is a damaged pickle (no operation {opcode:#04x})")
        if known.name in _IMPORT_OPERATIONS:
            _raise_for_pickled_object(
                _name_of_loaded_object(
                    known.name, self.data[self.at + 1 :][:_MAX_SHOWN_NAME_CHARACTERS], self.texts
                )
            )
        if known.name in _CALL_OPERATIONS:
            _raise_for_pickled_object("an object")
        if known.name in _NESTED_TUPLE_AND_SET_OPERATIONS:
            raise UnreadableTrace(
                "it is a pickle with a set, or a tuple of more than numbers, which no memory "
                "snapshot holds: give a file that `torch.cuda.memory._dump_snapshot` wrote"
            )
        if known.arg is not None and known.arg.n >= 0 and self.at + known.arg.n >= len(self.data):
            self._raise_truncated_pickle()
        raise UnreadableTrace(f"it is a pickle with an operation that is not read ({known.name})")

    def _raise_truncated_pickle(self) -> NoReturn:
        raise UnreadableTrace(
            f"it is a pickle that ends too early, after {len(self.data):,} bytes: give a whole one"
        )


def _name_of_loaded_object(operation_name: str, bytes_after: bytes, last_texts: list[str]) -> str:
    """Returns the dotted name of the object that a pickle operation would import."""
    if operation_name == "STACK_GLOBAL":
        return f"`{'.'.join(last_texts)}`"
    lines = bytes_after.split(b"\n")[:2]
    return f"`{'.'.join(line.decode('utf-8', 'backslashreplace') for line in lines)}`"
