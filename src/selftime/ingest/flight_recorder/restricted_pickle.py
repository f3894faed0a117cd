"""Interprets pickles of containers, texts, numbers and None itself; no other value can come of one.

A pickle is a program for a stack machine. This machine has no operation that imports, calls or
builds an object, so that there is nothing to forbid: an operation that it lacks ends the reading.
Keys of dicts are texts or small numbers, so that no key is slow to hash. Protocols 2 to 5, as
`pickletools` of the standard library describes them; C++ writes protocol 2
(torch/csrc/jit/serialization/pickler.cpp).
"""

import pickletools
from collections.abc import Callable
from struct import unpack_from
from typing import Any, Final, NoReturn

from selftime.errors import UnreadableTrace

MAX_DEPTH: Final = 32
"""Largest number of containers within each other; a dump has six."""

_MAX_INTEGER_BYTES: Final = 8
_MAX_INTEGER_KEY: Final = 1 << 31
_OPERATION_NAMES: Final = {ord(op.code): op.name for op in pickletools.opcodes}
_STOP: Final = ord(".")
_MAX_SHOWN_CHARACTERS: Final = 80
_CODE_OPERATIONS: Final = frozenset(
    {"GLOBAL", "STACK_GLOBAL", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "REDUCE", "BUILD"}
    | {"EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID"}
)
"""Operations with which a pickle imports, calls or builds something, or asks for it elsewhere."""

_MARK: Final = object()


def read_restricted_pickle(data: bytes) -> Any:
    """Returns the value of a pickle that holds only containers, texts, bytes, numbers and None.

    Raises:
        UnreadableTrace: It holds anything else, is cut off or damaged, or is nested too deeply.
    """
    value = _StackMachine(data).run()
    _check_depth(value)
    return value


class _StackMachine:
    """Runs a pickle's operations on a stack of plain values."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        data, operations = self.data, _OPERATIONS
        try:
            while (code := data[self.at]) != _STOP:
                self.at += 1
                operation = operations.get(code)
                if operation is None:
                    self._refuse(code)
                operation(self)
            [value] = self.pop(len(self.stack))
        except (IndexError, KeyError, TypeError, ValueError, AttributeError) as error:
            if self.at >= len(data):
                raise UnreadableTrace(
                    f"it is a pickle that ends too early, after {len(data):,} bytes; copy it again "
                    "if it was copied before it was whole"
                ) from error
            raise UnreadableTrace(f"it is a pickle that is damaged at byte {self.at:,}") from error
        return value

    def _refuse(self, code: int) -> NoReturn:
        name = _OPERATION_NAMES.get(code)
        if name is None:
            raise ValueError(code)
        if name in _CODE_OPERATIONS:
            raise UnreadableTrace(
                f"it is a pickle that would load or call {self._named_object(name)}, which no dump "
                "holds and which may run any code: nothing of it was run"
            )
        raise UnreadableTrace(f"it is a pickle with an operation that no dump has ({name})")

    def _named_object(self, name: str) -> str:
        """Returns the dotted name of what a refused operation asks for, as far as it is told."""
        words: list[str] = []
        if name in {"GLOBAL", "INST"}:
            lines = self.data[self.at :][: 2 * _MAX_SHOWN_CHARACTERS].split(b"\n")[:2]
            words = [line.decode("utf-8", "backslashreplace") for line in lines]
        elif name == "STACK_GLOBAL":
            words = [word for word in self.stack[-2:] if isinstance(word, str)]
        shown = ".".join(words)[:_MAX_SHOWN_CHARACTERS].encode("unicode_escape").decode()
        return f"`{shown}`" if words else "an object"

    def take(self, size: int) -> bytes:
        """Returns the next bytes, of which there must be `size`."""
        begin, self.at = self.at, self.at + size
        if self.at > len(self.data):
            raise IndexError(size)
        return self.data[begin : self.at]

    def number(self, size: int) -> int:
        """Returns the next bytes as a number from 0."""
        return int.from_bytes(self.take(size), "little")

    def since_mark(self) -> list[Any]:
        """Removes from the stack what is above its last mark, and the mark."""
        stack, at = self.stack, len(self.stack) - 1
        while stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise IndexError(at)
        values = stack[at + 1 :]
        del stack[at:]
        return values

    def fill_dict(self, pairs: list[Any]) -> None:
        """Puts keys and values in turn into the dict on top of the stack."""
        filled, keys = self.stack[-1], pairs[::2]
        if type(filled) is not dict or len(pairs) % 2:
            raise TypeError
        for key in keys:
            if type(key) is not str and not (type(key) is int and 0 <= key < _MAX_INTEGER_KEY):
                raise TypeError(key)
        filled.update(zip(keys, pairs[1::2], strict=True))

    def fill_list(self, values: list[Any]) -> None:
        """Appends values to the list on top of the stack."""
        if type(self.stack[-1]) is not list or any(value is _MARK for value in values):
            raise TypeError
        self.stack[-1] += values

    def pop(self, count: int) -> list[Any]:
        """Removes values from the top of the stack."""
        values = self.stack[-count:]
        if len(values) < count or any(value is _MARK for value in values):
            raise IndexError(count)
        del self.stack[-count:]
        return values


def _check_depth(value: Any) -> None:
    """Raises if containers are nested more deeply than `MAX_DEPTH`; each is looked at once."""
    level, seen = [value], {id(value)}
    for _ in range(MAX_DEPTH):
        inner = []
        for container in level:
            for child in _children(container):
                if isinstance(child, list | tuple | dict) and id(child) not in seen:
                    seen.add(id(child))
                    inner.append(child)
        level = inner
        if not level:
            return
    raise UnreadableTrace(
        f"it is a pickle of more than {MAX_DEPTH} containers within each other, which no dump has"
    )


def _children(container: Any) -> Any:
    if isinstance(container, dict):
        return container.values()
    return container if isinstance(container, list | tuple) else ()


_Operation = Callable[[_StackMachine], None]


def _constant(value: Any) -> _Operation:
    return lambda machine: machine.stack.append(value)


def _whole_number(size: int, *, is_signed: bool = False) -> _Operation:
    return lambda machine: machine.stack.append(
        int.from_bytes(machine.take(size), "little", signed=is_signed)
    )


def _long_number(machine: _StackMachine) -> None:
    size = machine.number(1)
    if size > _MAX_INTEGER_BYTES:
        raise ValueError(size)
    machine.stack.append(int.from_bytes(machine.take(size), "little", signed=True))


def _real_number(machine: _StackMachine) -> None:
    machine.stack.append(unpack_from(">d", machine.take(8))[0])


def _text(size: int) -> _Operation:
    return lambda machine: machine.stack.append(
        machine.take(machine.number(size)).decode("utf-8", "backslashreplace")
    )


def _bytes(size: int) -> _Operation:
    return lambda machine: machine.stack.append(machine.take(machine.number(size)))


def _get(size: int) -> _Operation:
    return lambda machine: machine.stack.append(machine.memo[machine.number(size)])


def _put(size: int) -> _Operation:
    def put(machine: _StackMachine) -> None:
        machine.memo[machine.number(size)] = _topmost(machine)

    return put


def _memoize(machine: _StackMachine) -> None:
    machine.memo[len(machine.memo)] = _topmost(machine)


def _topmost(machine: _StackMachine) -> Any:
    if machine.stack[-1] is _MARK:
        raise IndexError
    return machine.stack[-1]


def _tuple(count: int) -> _Operation:
    return lambda machine: machine.stack.append(tuple(machine.pop(count)))


def _dict_of_marked(machine: _StackMachine) -> None:
    pairs = machine.since_mark()
    machine.stack.append({})
    machine.fill_dict(pairs)


def _pop(machine: _StackMachine) -> None:
    del machine.stack[-1]


_OPERATIONS: Final[dict[int, _Operation]] = {
    0x80: lambda machine: _check_protocol(machine.number(1)),
    0x95: lambda machine: _check_frame(machine, machine.number(8)),
    ord("("): _constant(_MARK),
    ord("0"): _pop,
    ord("1"): lambda machine: machine.since_mark().clear(),
    ord("N"): _constant(None),
    0x88: _constant(True),
    0x89: _constant(False),
    ord("J"): _whole_number(4, is_signed=True),
    ord("K"): _whole_number(1),
    ord("M"): _whole_number(2),
    0x8A: _long_number,
    ord("G"): _real_number,
    ord("X"): _text(4),
    0x8C: _text(1),
    0x8D: _text(8),
    ord("B"): _bytes(4),
    ord("C"): _bytes(1),
    0x8E: _bytes(8),
    ord("]"): lambda machine: machine.stack.append([]),
    ord("a"): lambda machine: machine.fill_list(machine.pop(1)),
    ord("e"): lambda machine: machine.fill_list(machine.since_mark()),
    ord("l"): lambda machine: machine.stack.append(machine.since_mark()),
    ord(")"): _constant(()),
    ord("t"): lambda machine: machine.stack.append(tuple(machine.since_mark())),
    0x85: _tuple(1),
    0x86: _tuple(2),
    0x87: _tuple(3),
    ord("}"): lambda machine: machine.stack.append({}),
    ord("d"): _dict_of_marked,
    ord("s"): lambda machine: machine.fill_dict(machine.pop(2)),
    ord("u"): lambda machine: machine.fill_dict(machine.since_mark()),
    ord("h"): _get(1),
    ord("j"): _get(4),
    ord("q"): _put(1),
    ord("r"): _put(4),
    0x94: _memoize,
}
"""What the machine does for each operation; there is no other."""


def _check_protocol(number: int) -> None:
    if not 2 <= number <= 5:
        raise UnreadableTrace("it is a pickle of a protocol other than 2 to 5")


def _check_frame(machine: _StackMachine, size: int) -> None:
    if machine.at + size > len(machine.data):
        machine.at = len(machine.data)
        raise IndexError(size)
