"""Read the arguments of events into columns, with sentinels for absent values.

A group of arguments is the set that events of one kind have; each becomes a table of the trace.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from selftime.ingest.events.event import NO_INT, NO_TEXT, Args

NO_CODE: Final = 0xFFFF_FFFF
"""The code of an absent string."""

Array: TypeAlias = NDArray[Any]
Columns: TypeAlias = dict[str, Array]
Kind = Literal["int", "unsigned", "float", "text", "triple"]


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """One column of a group: its name, its kind, and the argument it is read from."""

    name: str
    kind: Kind
    attribute: str
    alternatives: tuple[str, ...] = ()
    """Alternative names of the argument, tried in order where the earlier ones are absent."""


def _ints(*pairs: str) -> tuple[ColumnSpec, ...]:
    return tuple(ColumnSpec(name, "int", name) for name in pairs)


def _texts(*pairs: str) -> tuple[ColumnSpec, ...]:
    return tuple(ColumnSpec(name, "text", name) for name in pairs)


_EXTERNAL: Final = ColumnSpec(
    "external_id", "int", "external_id", ("external_id_2021", "external_id_titled")
)
_COLLECTIVE: Final = (
    *_texts("collective", "dtype", "group", "group_description", "group_ranks"),
    *_ints("in_elements", "out_elements", "group_size", "rank", "source", "destination"),
    ColumnSpec("group_sequence", "int", "group_sequence"),
)

GROUPS: Final[dict[str, tuple[ColumnSpec, ...]]] = {
    "op": (
        _EXTERNAL,
        *_ints("sequence", "forward_thread"),
        ColumnSpec("input_shapes", "text", "input_shapes", ("input_shapes_2021",)),
        *_texts("input_types", "input_strides", "concrete_inputs", "call_stack"),
    ),
    "compiled": (
        *_texts("backend", "kernel_file", "kernel_hash", "kernel_arguments", "grid"),
        *_ints("warps", "stages"),
    ),
    "call": (_EXTERNAL, *_ints("correlation"), ColumnSpec("bytes", "int", "bytes", ("size",))),
    "frame": _ints("python_id", "python_parent", "module_id"),
    "device": (
        _EXTERNAL,
        *_ints("correlation", "device", "stream", "registers", "shared_memory", "bytes"),
        *_ints("graph", "graph_node"),
        *(ColumnSpec(n, "triple", n) for n in ("grid", "block")),
        *(ColumnSpec(n, "float", n) for n in ("blocks_per_sm", "warps_per_sm", "occupancy")),
        ColumnSpec("bandwidth", "float", "bandwidth"),
        *_texts("kind"),
    ),
    "collective": _COLLECTIVE,
    "sync": (
        *_texts("sync_kind"),
        *_ints("device", "stream", "correlation", "waits_on_stream", "recorded_by"),
        ColumnSpec("event", "int", "event", ("event_id",)),
    ),
    "memory": (
        ColumnSpec("bytes", "int", "memory_bytes"),
        ColumnSpec("address", "unsigned", "address"),
        *_ints("allocated", "reserved", "device_type"),
        ColumnSpec("device", "int", "device_id"),
    ),
}
"""The columns of each group of arguments, by group."""


class Codes:
    """Assigns each distinct value a number, in order of first appearance."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, values: Iterable[Any]) -> Array:
        of, listed = self.of, list(values)
        for value in dict.fromkeys(listed):
            of.setdefault(value, len(of))
        return np.fromiter(map(of.__getitem__, listed), np.uint32, len(listed))


_EXTRA_ARGUMENTS: Final = {
    "op": ("finished", "backend", "collective"),
    "device": ("finished", "collective"),
    **dict.fromkeys(("call", "frame", "sync", ""), ("finished",)),
    "label": ("labels", "name"),
}
"""Arguments read besides the columns of a group; the key `""` is for events without a group."""


def _reader(group: str) -> msgspec.json.Decoder[list[Any]]:
    """Returns a decoder of arguments into objects with the attributes that the group has."""
    declared = {known.name: known for known in msgspec.structs.fields(Args)}
    wanted = [a for spec in GROUPS.get(group, ()) for a in (spec.attribute, *spec.alternatives)]
    fields = [
        (
            name,
            declared[name].type,
            msgspec.field(name=declared[name].encode_name, default=declared[name].default),
        )
        for name in dict.fromkeys((*wanted, *_EXTRA_ARGUMENTS.get(group, ())))
    ]
    some = msgspec.defstruct(f"ArgsOf{group.title()}", fields, gc=False)
    return msgspec.json.Decoder(list[some | None])  # type: ignore[valid-type]  # made just now


_READERS: Final = {group: _reader(group) for group in (*GROUPS, *_EXTRA_ARGUMENTS)}
_EMPTY_ARGS: Final = {group: reader.decode(b"[{}]")[0] for group, reader in _READERS.items()}


def read_args(group: str, texts: Sequence[msgspec.Raw]) -> tuple[list[Any], int]:
    """Returns the parsed arguments of a group's events, and how many of them were null.

    Raises:
        msgspec.ValidationError: An entry is not an object, or a value has the wrong type.
    """
    args = _READERS[group].decode(b"[%b]" % b",".join(texts))
    nulls = args.count(None)
    if nulls:
        args = [_EMPTY_ARGS[group] if found is None else found for found in args]
    return args, nulls


def group_columns(group: str, args: list[Any], rows: Array, strings: Codes) -> Columns:
    """Returns the columns of a group from its events' arguments and their slice rows."""
    columns: Columns = {"row": rows}
    for spec in GROUPS[group]:
        column = _column(spec.kind, list(map(attrgetter(spec.attribute), args)), strings)
        for other in spec.alternatives:
            lacking = np.flatnonzero(column == _ABSENT[spec.kind])
            if not lacking.size:
                break
            name = attrgetter(other)
            column[lacking] = _column(
                spec.kind, [name(args[at]) for at in lacking.tolist()], strings
            )
        columns[spec.name] = column
    return columns


_ABSENT: Final[dict[str, int]] = {"int": NO_INT, "text": NO_CODE}
"""The sentinel of each kind for an absent value, where alternative names are then tried."""


def _column(kind: Kind, values: list[Any], strings: Codes) -> Array:
    match kind:
        case "int":
            return _int_column(values)
        case "unsigned":
            return np.array(
                [v if isinstance(v, int) and 0 <= v < 2**64 else 0 for v in values], "u8"
            )
        case "float":
            return np.array(values, np.float64)
        case "text":
            return _text_column(values, strings)
        case "triple":
            texts = Codes()
            codes = texts(map(bytes, values))
            return np.array([_triple(text) for text in texts.of], np.int32).reshape(-1, 3)[codes]


def indices_of_present(values: list[Any]) -> list[int]:
    """Returns the indices of the arguments that are present."""
    if values.count(NO_TEXT) == len(values):  # compared by identity: no text is compared
        return []
    return [at for at, value in enumerate(values) if value is not NO_TEXT]


def _text_column(values: list[Any], strings: Codes) -> Array:
    codes = np.full(len(values), NO_CODE, np.uint32)
    present = indices_of_present(values)
    if present:
        codes[present] = strings([bytes(values[at]) for at in present])
    return codes


def _int_column(values: list[Any]) -> Array:
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(_int, values), np.int64, len(values))


def _int(value: object) -> int:
    """Returns an integer written as text (also `stream 7 (sync)`) or unsigned; else `NO_INT`."""
    if isinstance(value, str):
        try:
            value = int(value.removeprefix("stream ").removesuffix(" (sync)"))
        except ValueError:
            return NO_INT
    if not isinstance(value, int) or not -(2**63) <= value < 2**64:
        return NO_INT
    return value if value < 2**63 else value - 2**64


def _triple(text: bytes) -> tuple[int, int, int]:
    try:
        return _TRIPLE.decode(text)
    except msgspec.DecodeError:
        return (-1, -1, -1)


_TRIPLE: Final = msgspec.json.Decoder(tuple[int, int, int])
