"""The arguments of events as columns: which are read, and what stands for those not given.

A group of arguments is what events of one kind have; each becomes a table of the trace.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from selftime.ingest.events.event import NO_INT, NO_TEXT, Args, Event

__all__ = ["GROUPS", "NO_CODE", "Array", "Codes", "Columns", "Spec", "group_columns"]

NO_CODE: Final = 0xFFFF_FFFF
"""Stands for a string that the trace does not give."""

Array: TypeAlias = NDArray[Any]
Columns: TypeAlias = dict[str, Array]
Kind = Literal["int", "unsigned", "float", "text", "triple"]


@dataclass(frozen=True, slots=True)
class Spec:
    """One column of a group: its name, the argument it is read from, and how."""

    name: str
    kind: Kind
    attribute: str
    instead: tuple[str, ...] = ()
    """The argument's other names, read where those before are absent."""


def _ints(*pairs: str) -> tuple[Spec, ...]:
    return tuple(Spec(name, "int", name) for name in pairs)


def _texts(*pairs: str) -> tuple[Spec, ...]:
    return tuple(Spec(name, "text", name) for name in pairs)


_EXTERNAL: Final = Spec(
    "external_id", "int", "external_id", ("external_id_2021", "external_id_titled")
)
_COLLECTIVE: Final = (
    *_texts("collective", "dtype", "group", "group_description", "group_ranks"),
    *_ints("in_elements", "out_elements", "group_size", "rank", "source", "destination"),
    Spec("group_sequence", "int", "group_sequence"),
)

GROUPS: Final[dict[str, tuple[Spec, ...]]] = {
    "op": (
        _EXTERNAL,
        *_ints("sequence", "forward_thread"),
        Spec("input_shapes", "text", "input_shapes", ("input_shapes_2021",)),
        *_texts("input_types", "input_strides", "concrete_inputs", "call_stack"),
    ),
    "compiled": (
        *_texts("backend", "kernel_file", "kernel_hash", "kernel_arguments", "grid"),
        *_ints("warps", "stages"),
    ),
    "call": (_EXTERNAL, *_ints("correlation"), Spec("bytes", "int", "bytes", ("size",))),
    "frame": _ints("python_id", "python_parent", "module_id"),
    "device": (
        _EXTERNAL,
        *_ints("correlation", "device", "stream", "registers", "shared_memory", "bytes"),
        *_ints("graph", "graph_node"),
        *(Spec(n, "triple", n) for n in ("grid", "block")),
        *(Spec(n, "float", n) for n in ("blocks_per_sm", "warps_per_sm", "occupancy")),
        Spec("bandwidth", "float", "bandwidth"),
        *_texts("kind"),
    ),
    "collective": _COLLECTIVE,
    "sync": (
        *_texts("sync_kind"),
        *_ints("device", "stream", "correlation", "waits_on_stream", "recorded_by"),
        Spec("event", "int", "event", ("event_id",)),
    ),
    "memory": (
        Spec("bytes", "int", "memory_bytes"),
        Spec("address", "unsigned", "address"),
        *_ints("allocated", "reserved", "device_type"),
        Spec("device", "int", "device_id"),
    ),
}
"""The columns of each group of arguments, by group."""


class Codes:
    """Numbers for values, in order of their first appearance."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, values: Iterable[Any]) -> Array:
        of = self.of
        return np.array([of.setdefault(value, len(of)) for value in values], np.uint32)


_NO_ARGS: Final = Args()


def group_columns(
    specs: tuple[Spec, ...], events: list[Event], rows: list[int], strings: Codes
) -> Columns:
    args: list[Args] = [events[row].args or _NO_ARGS for row in rows]
    columns: Columns = {"row": np.array(rows, np.int64)}
    for spec in specs:
        values = list(map(attrgetter(spec.attribute), args))
        absent = NO_TEXT if spec.kind == "text" else NO_INT
        for other in spec.instead:
            if absent not in values:
                break
            others = map(attrgetter(other), args)
            values = [o if v is absent or v == absent else v for v, o in zip(values, others)]  # noqa: B905 - as long
        columns[spec.name] = _column(spec.kind, values, strings)
    return columns


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
            of = strings.of
            return np.array(
                [NO_CODE if v is NO_TEXT else of.setdefault(bytes(v), len(of)) for v in values],
                np.uint32,
            )
        case "triple":
            known: dict[bytes, tuple[int, int, int]] = {}
            return np.array([_triple(v, known) for v in values], np.int32).reshape(-1, 3)


def _int_column(values: list[Any]) -> Array:
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(_int, values), np.int64, len(values))


def _int(value: object) -> int:
    """An integer written as text, null, or beyond 63 bits (an unsigned -1); `stream 7 (sync)`."""
    if isinstance(value, str):
        try:
            value = int(value.removeprefix("stream ").removesuffix(" (sync)"))
        except ValueError:
            return NO_INT
    if not isinstance(value, int) or not -(2**63) <= value < 2**64:
        return NO_INT
    return value if value < 2**63 else value - 2**64


def _triple(value: msgspec.Raw, known: dict[bytes, tuple[int, int, int]]) -> tuple[int, int, int]:
    text = bytes(value)
    if text not in known:
        try:
            x, y, z = msgspec.json.decode(text, type=tuple[int, int, int])
            known[text] = (x, y, z)
        except msgspec.DecodeError:
            known[text] = (-1, -1, -1)
    return known[text]
