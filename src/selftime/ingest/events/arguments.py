"""Parses the `args` of trace events into columns; special values stand for absent arguments.

A group of arguments is the set that events of one kind have; each becomes a table of the trace.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from selftime.ingest.events.event_types import NO_INT, NO_TEXT, EventArguments

NO_STRING_CODE: Final = 0xFFFF_FFFF
"""The value in a column of string codes that stands for an absent string."""

Array: TypeAlias = NDArray[Any]
Columns: TypeAlias = dict[str, Array]
ArgumentColumnKind = Literal["int", "unsigned", "float", "text", "triple"]


@dataclass(frozen=True, slots=True)
class ArgumentColumnSpec:
    """Declares one column read from events' `args`: its name, its type, and the key in `args`."""

    name: str
    kind: ArgumentColumnKind
    attribute: str
    """The attribute of `EventArguments` that holds the argument."""
    alternatives: tuple[str, ...] = ()
    """Other attributes that may hold the argument, tried in order if earlier ones are absent."""


_ATTRIBUTE_BY_COLUMN: Final = {
    "sequence": "sequence_number",
    "backend": "kernel_backend",
    "warps": "warp_count",
    "stages": "pipeline_stage_count",
    "registers": "registers_per_thread",
    "shared_memory": "shared_memory_bytes",
    "occupancy": "occupancy_percent",
    "graph": "graph_id",
    "graph_node": "graph_node_id",
    "kind": "copy_or_dispatch_kind",
    "group": "group_name",
    "source": "source_rank",
    "destination": "destination_rank",
    "recorded_by": "event_record_correlation",
    "allocated": "total_allocated_bytes",
    "reserved": "total_reserved_bytes",
}
"""The attribute of `EventArguments` for each column whose name differs from it."""


def _specs_of_int_columns(*names: str) -> tuple[ArgumentColumnSpec, ...]:
    return tuple(
        ArgumentColumnSpec(name, "int", _ATTRIBUTE_BY_COLUMN.get(name, name)) for name in names
    )


def _specs_of_text_columns(*names: str) -> tuple[ArgumentColumnSpec, ...]:
    return tuple(
        ArgumentColumnSpec(name, "text", _ATTRIBUTE_BY_COLUMN.get(name, name)) for name in names
    )


_EXTERNAL_ID_COLUMN: Final = ArgumentColumnSpec(
    "external_id", "int", "external_id", ("external_id_2021", "external_id_titled")
)
_COLLECTIVE_COLUMNS: Final = (
    *_specs_of_text_columns("collective", "dtype", "group", "group_description", "group_ranks"),
    *_specs_of_int_columns(
        "in_elements", "out_elements", "group_size", "rank", "source", "destination"
    ),
    ArgumentColumnSpec("group_sequence", "int", "group_sequence_number"),
)

ARGUMENT_COLUMNS_BY_GROUP: Final[dict[str, tuple[ArgumentColumnSpec, ...]]] = {
    "op": (
        _EXTERNAL_ID_COLUMN,
        *_specs_of_int_columns("sequence", "forward_thread"),
        ArgumentColumnSpec("input_shapes", "text", "input_shapes", ("input_shapes_2021",)),
        *_specs_of_text_columns("input_types", "input_strides", "concrete_inputs", "call_stack"),
    ),
    "compiled": (
        *_specs_of_text_columns(
            "backend", "kernel_file", "kernel_hash", "kernel_arguments", "grid"
        ),
        *_specs_of_int_columns("warps", "stages"),
    ),
    "call": (
        _EXTERNAL_ID_COLUMN,
        *_specs_of_int_columns("correlation"),
        ArgumentColumnSpec("bytes", "int", "bytes", ("size",)),
    ),
    "frame": _specs_of_int_columns("python_id", "python_parent", "module_id"),
    "device": (
        _EXTERNAL_ID_COLUMN,
        *_specs_of_int_columns(
            "correlation", "device", "stream", "registers", "shared_memory", "bytes"
        ),
        *_specs_of_int_columns("graph", "graph_node"),
        *(ArgumentColumnSpec(n, "triple", n) for n in ("grid", "block")),
        *(
            ArgumentColumnSpec(n, "float", _ATTRIBUTE_BY_COLUMN.get(n, n))
            for n in ("blocks_per_sm", "warps_per_sm", "occupancy")
        ),
        ArgumentColumnSpec("bandwidth", "float", "bandwidth_gb_per_s"),
        *_specs_of_text_columns("kind"),
    ),
    "collective": _COLLECTIVE_COLUMNS,
    "sync": (
        *_specs_of_text_columns("sync_kind"),
        *_specs_of_int_columns("device", "stream", "correlation", "waits_on_stream", "recorded_by"),
        ArgumentColumnSpec("event", "int", "awaited_event_id", ("event_id",)),
    ),
    "memory": (
        ArgumentColumnSpec("bytes", "int", "memory_bytes"),
        ArgumentColumnSpec("address", "unsigned", "address"),
        *_specs_of_int_columns("allocated", "reserved", "device_type"),
        ArgumentColumnSpec("device", "int", "device_id"),
    ),
}
"""The columns that are read from the `args` of each kind of event, such as operators."""


class DistinctValueCodes:
    """Assigns an integer code to each distinct value, in order of first appearance."""

    def __init__(self) -> None:
        self.code_by_value: dict[Any, int] = {}

    def __call__(self, values: Iterable[Any]) -> Array:
        codes, listed = self.code_by_value, list(values)
        for value in dict.fromkeys(listed):
            codes.setdefault(value, len(codes))
        return np.fromiter(map(codes.__getitem__, listed), np.uint32, len(listed))


_ARGUMENTS_WITHOUT_COLUMN_BY_GROUP: Final = {
    "op": ("is_finished", "kernel_backend", "collective"),
    "device": ("is_finished", "collective"),
    **dict.fromkeys(("call", "frame", "sync", ""), ("is_finished",)),
    "label": ("labels", "name"),
}
"""Arguments of each kind of event that are read but do not become a column; `""` is for events of
no kind.
"""


def _arguments_decoder(group: str) -> msgspec.json.Decoder[list[Any]]:
    """Returns a JSON decoder that reads the arguments of one kind of event, such as operators."""
    declared = {known.name: known for known in msgspec.structs.fields(EventArguments)}
    wanted = [
        a
        for spec in ARGUMENT_COLUMNS_BY_GROUP.get(group, ())
        for a in (spec.attribute, *spec.alternatives)
    ]
    fields = [
        (
            name,
            declared[name].type,
            msgspec.field(name=declared[name].encode_name, default=declared[name].default),
        )
        for name in dict.fromkeys((*wanted, *_ARGUMENTS_WITHOUT_COLUMN_BY_GROUP.get(group, ())))
    ]
    some = msgspec.defstruct(f"ArgsOf{group.title()}", fields, gc=False)
    return msgspec.json.Decoder(list[some | None])  # type: ignore[valid-type]  # made just now


_ARGUMENTS_DECODER_BY_GROUP: Final = {
    group: _arguments_decoder(group)
    for group in (*ARGUMENT_COLUMNS_BY_GROUP, *_ARGUMENTS_WITHOUT_COLUMN_BY_GROUP)
}
_EMPTY_ARGUMENTS_BY_GROUP: Final = {
    group: reader.decode(b"[{}]")[0] for group, reader in _ARGUMENTS_DECODER_BY_GROUP.items()
}


def parse_arguments(group: str, argument_texts: Sequence[msgspec.Raw]) -> tuple[list[Any], int]:
    """Returns the parsed `args` of events of one kind, and how many of those `args` were null.

    Raises:
        msgspec.ValidationError: An entry is not an object, or a value has the wrong type.
    """
    args = _ARGUMENTS_DECODER_BY_GROUP[group].decode(b"[%b]" % b",".join(argument_texts))
    nulls = args.count(None)
    if nulls:
        args = [_EMPTY_ARGUMENTS_BY_GROUP[group] if found is None else found for found in args]
    return args, nulls


def argument_columns(
    group: str, args: list[Any], rows: Array, string_codes: DistinctValueCodes
) -> Columns:
    """Returns the columns declared for one kind of event, from the events' parsed arguments."""
    columns: Columns = {"row": rows}
    for spec in ARGUMENT_COLUMNS_BY_GROUP[group]:
        column = _argument_column(
            spec.kind, list(map(attrgetter(spec.attribute), args)), string_codes
        )
        for other in spec.alternatives:
            lacking = np.flatnonzero(column == _ABSENT_VALUE_BY_COLUMN_KIND[spec.kind])
            if not lacking.size:
                break
            name = attrgetter(other)
            column[lacking] = _argument_column(
                spec.kind, [name(args[at]) for at in lacking.tolist()], string_codes
            )
        columns[spec.name] = column
    return columns


_ABSENT_VALUE_BY_COLUMN_KIND: Final[dict[str, int]] = {"int": NO_INT, "text": NO_STRING_CODE}
"""Maps a column type to the value that stands for an absent argument."""


def _argument_column(
    kind: ArgumentColumnKind, values: list[Any], string_codes: DistinctValueCodes
) -> Array:
    match kind:
        case "int":
            return _int_argument_column(values)
        case "unsigned":
            return np.array(
                [v if isinstance(v, int) and 0 <= v < 2**64 else 0 for v in values], "u8"
            )
        case "float":
            return np.array(values, np.float64)
        case "text":
            return _string_code_column(values, string_codes)
        case "triple":
            texts = DistinctValueCodes()
            codes = texts(map(bytes, values))
            return np.array(
                [_parse_json_list_of_three_ints(text) for text in texts.code_by_value], np.int32
            ).reshape(-1, 3)[codes]


def indices_of_present_values(values: list[Any]) -> list[int]:
    """Returns the indices of the elements in a list of argument values that are not absent."""
    if values.count(NO_TEXT) == len(values):  # compared by identity: no text is compared
        return []
    return [at for at, value in enumerate(values) if value is not NO_TEXT]


def _string_code_column(values: list[Any], string_codes: DistinctValueCodes) -> Array:
    codes = np.full(len(values), NO_STRING_CODE, np.uint32)
    present = indices_of_present_values(values)
    if present:
        codes[present] = string_codes([bytes(values[at]) for at in present])
    return codes


def _int_argument_column(values: list[Any]) -> Array:
    try:
        return np.fromiter(values, np.int64, len(values))
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(_int_or_sentinel, values), np.int64, len(values))


def _int_or_sentinel(value: object) -> int:
    """Returns a value as an integer, also from text such as `stream 7 (sync)`; else `NO_INT`."""
    if isinstance(value, str):
        try:
            value = int(value.removeprefix("stream ").removesuffix(" (sync)"))
        except ValueError:
            return NO_INT
    if not isinstance(value, int) or not -(2**63) <= value < 2**64:
        return NO_INT
    return value if value < 2**63 else value - 2**64


def _parse_json_list_of_three_ints(json_text: bytes) -> tuple[int, int, int]:
    try:
        return _THREE_INTS_DECODER.decode(json_text)
    except msgspec.DecodeError:
        return (-1, -1, -1)


_THREE_INTS_DECODER: Final = msgspec.json.Decoder(tuple[int, int, int])
