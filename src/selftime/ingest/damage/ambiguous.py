"""Repair valid JSON that is not what its writer meant: duplicate fields, paths read as escapes.

The checks cost next to nothing on a file without such faults.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.recover import ANOTHER_TRACE, OTHER_PROCESS
from selftime.ingest.events.columns import ChunkColumns
from selftime.ingest.events.event import NO_INT, value_decoder

_JOINING: Final = ("correlation", "external_id", "sequence", "python_id", "python_parent")
"""Columns of ids that join events within one process."""

_SURE: Final = 2
"""Breaks with a change of process that prove several writers: one damaged event may stand by chance
between two processes of a merged trace."""

_SAMPLE: Final = 1 << 16
"""Bytes of a chunk that are searched for duplicate fields: a faulty writer duplicates them in every
event, and searching all text would take a tenth of the reading time."""
_TWICE: Final = re.compile(
    rb'"(ts|dur|name|cat|pid|tid)"\s*:[^{}]*"\1"\s*:'
    rb'|"(?:ts|dur)"\s*:[^{}]*\{[^{}]*\}[^{}]*"(?:ts|dur)"\s*:'
    rb'|"args"\s*:\s*\{[^{}]*\}[^{}]*"args"\s*:'
)
_RAW: Final = msgspec.json.Decoder(list[msgspec.Raw])
PATH_RESTORED: Final = "a path with escapes that were meant as text: restored"
_MERGED: Final = "`args` twice in one event: merged"
_LAST: Final = "a field twice in one event: the last is read"
_CONTROLS: Final = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\b": r"\b", "\f": r"\f"}
_RESTORED: Final = str.maketrans(_CONTROLS)
_PATH: Final = re.compile(
    r'(?:[A-Za-z]:[\\\n\t\r\b\f][^:;"<>|?*]*?|[\w .\\/~+\n\t\r\b\f-]+\.pyw?)'
    r"(?:\(\d+\): .*)?"
)
"""A Windows path or the path of a Python file, perhaps followed by a frame's line and function."""
_LONGEST_PATH: Final = 4096


def mixed_fault(faults: list[Fault]) -> Fault | None:
    """Returns the fault that several processes wrote to the file; None if nothing shows it."""
    counted = Counter(fault.fault for fault in faults)
    traces = counted[ANOTHER_TRACE] + 1
    if traces == 1 and counted[OTHER_PROCESS] < _SURE:
        return None
    who = f"{traces:,} ranks" if traces > 1 else "several ranks"
    return Fault(f"{who} wrote to one file at once: write one file per rank", ruin=True)


def erase_ids(chunks: list[ChunkColumns]) -> None:
    """Erase the ids that would join events of different processes."""
    for chunk in chunks:
        for columns in chunk.groups.values():
            for name in _JOINING:
                if name in columns:
                    columns[name][:] = NO_INT


def has_duplicate_fields(text: bytes) -> bool:
    """Returns whether events of a chunk seem to have a duplicate field."""
    return _TWICE.search(text, 0, _SAMPLE) is not None


def objects_without_duplicates(listed: bytes, repairs: Counter[str]) -> list[Any]:
    """Returns the events of a valid list; of a duplicate field the last value, of `args` both."""
    return [
        _merge_duplicates(bytes(raw), repairs) if _TWICE.search(raw) else value_decoder.decode(raw)
        for raw in _RAW.decode(listed)
    ]


def texts_without_duplicates(listed: bytes, repairs: Counter[str]) -> list[bytes]:
    """Like `objects_without_duplicates`, as JSON; all else stays as written."""
    return [
        msgspec.json.encode(_merge_duplicates(bytes(raw), repairs, _as_written))
        if _TWICE.search(raw)
        else bytes(raw)
        for raw in _RAW.decode(listed)
    ]


def _as_written(number: str) -> msgspec.Raw:
    return msgspec.Raw(number.encode())


def _merge_duplicates(
    text: bytes, repairs: Counter[str], number: Callable[[str], Any] = str
) -> Any:
    def joined(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key == "args" and isinstance(found.get(key), dict) and isinstance(value, dict):
                repairs[_MERGED] += 1
                found[key] = {**found[key], **value}
                continue
            repairs[_LAST] += key in found
            found[key] = value
        return found

    return json.loads(text, object_pairs_hook=joined, parse_float=number)


def restore_paths(columns: ChunkColumns) -> None:
    r"""Restore `\n` and `\t` in Windows paths, which JSON has read as white space."""
    strings = columns.strings
    for place in _places_of_unprintable(strings):
        text = strings[place]
        meant = restored_path(text)
        if meant != text:
            strings[place] = meant
            columns.faults[PATH_RESTORED] += 1


def restored_path(text: str) -> str:
    """Returns the text with backslashes restored if it is a path whose escapes are none."""
    is_path = (
        len(text) < _LONGEST_PATH
        and not set(text).isdisjoint(_CONTROLS)
        and _PATH.fullmatch(text) is not None
    )
    return text.translate(_RESTORED) if is_path else text


def _places_of_unprintable(strings: list[str]) -> Iterator[int]:
    return (place for place, text in enumerate(strings) if not text.isprintable())
