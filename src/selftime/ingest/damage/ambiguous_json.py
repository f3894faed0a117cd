"""Repairs JSON that is valid but wrong: duplicate fields, unescaped Windows paths.

The checks cost next to nothing on a file without such faults.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from selftime.ingest.damage.event_recovery import ANOTHER_TRACE_FAULT, OTHER_PROCESS_FAULT
from selftime.ingest.damage.file_faults import FileFault
from selftime.ingest.events.columns import ChunkEventColumns
from selftime.ingest.events.event_types import NO_INT, value_decoder

_ID_COLUMNS_UNIQUE_WITHIN_PROCESS: Final = (
    "correlation",
    "external_id",
    "sequence",
    "python_id",
    "python_parent",
)
"""Columns with ids that link events, and are unique only within one process."""

_MIN_PID_CHANGES_OF_SEVERAL_WRITERS: Final = 2
"""Smallest number of process id changes beside damaged text that proves that several processes
wrote the file.
"""

_BYTES_SEARCHED_FOR_DUPLICATE_FIELDS: Final = 1 << 16
"""Number of bytes of each chunk that are searched for duplicate fields. A faulty writer duplicates
fields in every event, so these suffice.
"""
_DUPLICATE_EVENT_FIELD: Final = re.compile(
    rb'"(ts|dur|name|cat|pid|tid)"\s*:[^{}]*"\1"\s*:'
    rb'|"(?:ts|dur)"\s*:[^{}]*\{[^{}]*\}[^{}]*"(?:ts|dur)"\s*:'
    rb'|"args"\s*:\s*\{[^{}]*\}[^{}]*"args"\s*:'
)
_RAW_LIST_DECODER: Final = msgspec.json.Decoder(list[msgspec.Raw])
PATH_RESTORED_FAULT: Final = "a path with escapes that were meant as text: restored"
_DUPLICATE_ARGS_FAULT: Final = "`args` twice in one event: merged"
_DUPLICATE_FIELD_FAULT: Final = "a field twice in one event: the last value is used"
_ESCAPE_BY_CONTROL_CHARACTER: Final = {
    "\n": r"\n",
    "\t": r"\t",
    "\r": r"\r",
    "\b": r"\b",
    "\f": r"\f",
}
_CONTROL_CHARACTER_TRANSLATION: Final = str.maketrans(_ESCAPE_BY_CONTROL_CHARACTER)
_WINDOWS_OR_PYTHON_PATH: Final = re.compile(
    r'(?:[A-Za-z]:[\\\n\t\r\b\f][^:;"<>|?*]*?|[\w .\\/~+\n\t\r\b\f-]+\.pyw?)'
    r"(?:\(\d+\): .*)?"
)
"""A Windows path or the path of a Python file, optionally with a frame's line and function."""
_MAX_PATH_BYTES: Final = 4096


def several_writers_fault(faults: list[FileFault]) -> FileFault | None:
    """Returns a fault if `faults` show that several processes wrote the file at once, else None."""
    counted = Counter(fault.fault for fault in faults)
    traces = counted[ANOTHER_TRACE_FAULT] + 1
    if traces == 1 and counted[OTHER_PROCESS_FAULT] < _MIN_PID_CHANGES_OF_SEVERAL_WRITERS:
        return None
    who = f"{traces:,} ranks" if traces > 1 else "several ranks"
    return FileFault(
        f"{who} wrote to one file at once: write one file per rank", invalidates_trace=True
    )


def erase_ids_within_processes(chunks: list[ChunkEventColumns]) -> None:
    """Sets ids that are unique only within one process, such as correlation ids, to null."""
    for chunk in chunks:
        for columns in chunk.columns_by_group.values():
            for column in _ID_COLUMNS_UNIQUE_WITHIN_PROCESS:
                if column in columns:
                    columns[column][:] = NO_INT


def seems_to_have_duplicate_fields(chunk_text: bytes) -> bool:
    """Returns whether an event near the start of a chunk seems to have the same field twice."""
    return (
        _DUPLICATE_EVENT_FIELD.search(chunk_text, 0, _BYTES_SEARCHED_FOR_DUPLICATE_FIELDS)
        is not None
    )


def objects_without_duplicate_fields(events_json: bytes, repair_counts: Counter[str]) -> list[Any]:
    """Parses a JSON list of events; keeps a duplicate field's last value, but merges its `args`."""
    return [
        _parse_event_merging_duplicate_fields(bytes(raw), repair_counts)
        if _DUPLICATE_EVENT_FIELD.search(raw)
        else value_decoder.decode(raw)
        for raw in _RAW_LIST_DECODER.decode(events_json)
    ]


def texts_without_duplicate_fields(events_json: bytes, repair_counts: Counter[str]) -> list[bytes]:
    """Returns the JSON of each event in a list, unchanged unless it has duplicate fields."""
    return [
        msgspec.json.encode(
            _parse_event_merging_duplicate_fields(bytes(raw), repair_counts, _raw_json_number)
        )
        if _DUPLICATE_EVENT_FIELD.search(raw)
        else bytes(raw)
        for raw in _RAW_LIST_DECODER.decode(events_json)
    ]


def _raw_json_number(number: str) -> msgspec.Raw:
    return msgspec.Raw(number.encode())


def _parse_event_merging_duplicate_fields(
    event_json: bytes, repair_counts: Counter[str], parse_float: Callable[[str], Any] = str
) -> Any:
    def merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for key, value in pairs:
            if key == "args" and isinstance(fields.get(key), dict) and isinstance(value, dict):
                repair_counts[_DUPLICATE_ARGS_FAULT] += 1
                fields[key] = {**fields[key], **value}
                continue
            repair_counts[_DUPLICATE_FIELD_FAULT] += key in fields
            fields[key] = value
        return fields

    return json.loads(event_json, object_pairs_hook=merged, parse_float=parse_float)


def restore_windows_paths(columns: ChunkEventColumns) -> None:
    r"""Restores backslashes in Windows paths in which JSON's `\n`, `\t` etc. hid them, in place."""
    strings = columns.strings
    for place in _indices_of_unprintable_strings(strings):
        text = strings[place]
        meant = with_windows_path_restored(text)
        if meant != text:
            strings[place] = meant
            columns.fault_counts[PATH_RESTORED_FAULT] += 1


def with_windows_path_restored(text: str) -> str:
    """Returns a text; in a path, control characters become a backslash and a letter."""
    is_path = (
        len(text) < _MAX_PATH_BYTES
        and not set(text).isdisjoint(_ESCAPE_BY_CONTROL_CHARACTER)
        and _WINDOWS_OR_PYTHON_PATH.fullmatch(text) is not None
    )
    return text.translate(_CONTROL_CHARACTER_TRANSLATION) if is_path else text


def _indices_of_unprintable_strings(strings: list[str]) -> Iterator[int]:
    return (place for place, text in enumerate(strings) if not text.isprintable())
