"""What is sound JSON and yet not what was meant: fields that stand twice, paths read as escapes.

Nothing here costs more than a look where all is well.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from selftime.ingest.damage.faults import Fault
from selftime.ingest.damage.recover import ANOTHER, ELSEWHERE
from selftime.ingest.events.columns import ChunkColumns
from selftime.ingest.events.event import NO_INT, value_decoder

_JOINING: Final = ("correlation", "external_id", "sequence", "python_id", "python_parent")
"""Columns that say what belongs together within one process."""

_SURE: Final = 2
"""Changes of the process where text breaks off that are no accident: one damaged event may stand
between two processes of a merged trace."""

_SAMPLE: Final = 1 << 16
"""Bytes of a chunk that are searched for fields that stand twice: a writer that errs so errs in
every event, and to search all would cost a tenth of the reading."""
_TWICE: Final = re.compile(
    rb'"(ts|dur|name|cat|pid|tid)"\s*:[^{}]*"\1"\s*:'
    rb'|"(?:ts|dur)"\s*:[^{}]*\{[^{}]*\}[^{}]*"(?:ts|dur)"\s*:'
    rb'|"args"\s*:\s*\{[^{}]*\}[^{}]*"args"\s*:'
)
_RAW: Final = msgspec.json.Decoder(list[msgspec.Raw])
RESTORED: Final = "a path with escapes that were meant as text: restored"
_MERGED: Final = "`args` twice in one event: merged"
_LAST: Final = "a field twice in one event: the last is read"
_CONTROLS: Final = {"\n": r"\n", "\t": r"\t", "\r": r"\r", "\b": r"\b", "\f": r"\f"}
_RESTORED: Final = str.maketrans(_CONTROLS)
_PATH: Final = re.compile(
    r'(?:[A-Za-z]:[\\\n\t\r\b\f][^:;"<>|?*]*?|[\w .\\/~+\n\t\r\b\f-]+\.pyw?)'
    r"(?:\(\d+\): .*)?"
)
"""A path of Windows, or of a Python file, perhaps with the line and the function of a frame."""
_LONGEST_PATH: Final = 4096


def mixed_fault(faults: list[Fault]) -> Fault | None:
    """That several processes wrote to the file, if its damage shows it."""
    counted = Counter(fault.fault for fault in faults)
    traces = counted[ANOTHER] + 1
    if traces == 1 and counted[ELSEWHERE] < _SURE:
        return None
    who = f"{traces:,} ranks" if traces > 1 else "several ranks"
    return Fault(f"{who} wrote to one file at once: write one file per rank", ruin=True)


def unlink(chunks: list[ChunkColumns]) -> None:
    """Forget the numbers that would join events of different processes."""
    for chunk in chunks:
        for columns in chunk.groups.values():
            for name in _JOINING:
                if name in columns:
                    columns[name][:] = NO_INT


def has_fields_twice(text: bytes) -> bool:
    """Whether events of a chunk seem to have a field twice, of which JSON keeps one."""
    return _TWICE.search(text, 0, _SAMPLE) is not None


def objects_once(listed: bytes, told: Counter[str]) -> list[Any]:
    """The events of a sound list; of a field that stands twice the last value, of `args` both."""
    return [
        _once(bytes(raw), told) if _TWICE.search(raw) else value_decoder.decode(raw)
        for raw in _RAW.decode(listed)
    ]


def texts_once(listed: bytes, told: Counter[str]) -> list[bytes]:
    """Like `objects_once`, as JSON: events without such a field, and all numbers, as written."""
    return [
        msgspec.json.encode(_once(bytes(raw), told, _as_written))
        if _TWICE.search(raw)
        else bytes(raw)
        for raw in _RAW.decode(listed)
    ]


def _as_written(number: str) -> msgspec.Raw:
    return msgspec.Raw(number.encode())


def _once(text: bytes, told: Counter[str], number: Callable[[str], Any] = str) -> Any:
    def joined(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key == "args" and isinstance(found.get(key), dict) and isinstance(value, dict):
                told[_MERGED] += 1
                found[key] = {**found[key], **value}
                continue
            told[_LAST] += key in found
            found[key] = value
        return found

    return json.loads(text, object_pairs_hook=joined, parse_float=number)


def restore_paths(columns: ChunkColumns) -> None:
    r"""Write `\n` and `\t` in paths, which JSON reads as white space, as they were meant."""
    strings = columns.strings
    for place in _unprintable(strings):
        text = strings[place]
        meant = meant_as_path(text)
        if meant != text:
            strings[place] = meant
            columns.faults[RESTORED] += 1


def meant_as_path(text: str) -> str:
    """The text as it was meant, if it is a path in which escapes were read that are none."""
    is_path = (
        len(text) < _LONGEST_PATH
        and not set(text).isdisjoint(_CONTROLS)
        and _PATH.fullmatch(text) is not None
    )
    return text.translate(_RESTORED) if is_path else text


def _unprintable(strings: list[str]) -> Iterator[int]:
    return (place for place, text in enumerate(strings) if not text.isprintable())
