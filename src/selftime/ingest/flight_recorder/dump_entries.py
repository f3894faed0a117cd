"""Turns the values of a Flight Recorder's dump into the calls and groups that it tells.

Keys are those of torch/csrc/distributed/c10d/FlightRecorder.hpp; before version 2 calls of all
kinds had one number, `seq_id`. Nothing is assumed: an entry whose values have the wrong type is
counted as unread, and the others hold. The JSON form has 0 for an unknown instant, and no stacks.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from selftime import names
from selftime.errors import UnreadableTrace
from selftime.flight_recorder import Call, CallState, Dump, Group, Place, Sizes
from selftime.names.recorded_collectives import RECEIVE, SEND, parse_recorded_name

_MAX_ENTRIES: Final = 1_000_000
"""Largest number of entries of a dump that are read; a ring buffer holds some thousands."""
_MAX_TENSORS: Final = 20_000_000
"""Largest number of tensors in all entries of a dump."""
_MAX_DIMENSIONS: Final = 64
_MAX_FRAMES: Final = 512
_MAX_CHARACTERS: Final = 400
"""Largest number of characters of a name that are kept."""
_MAX_INSTANT_NS: Final = 1 << 62
_MAX_RANK: Final = 10**9
_BACKENDS_WITHOUT_EVENTS: Final = frozenset({"gloo"})
"""Backends that never tell that a call completed, only that it is retired: completed or failed."""
_ORIGINS_BY_PREFERENCE: Final = ("user", "library")


def dump_of_values(values: Mapping[Any, Any], rank: int, source: str) -> Dump:
    """Returns the dump of a rank, from the values that its file holds.

    Raises:
        UnreadableTrace: It has more entries, or tensors in them, than a dump can have.
    """
    entries = values.get("entries")
    entries = entries if isinstance(entries, list | tuple) else []
    if len(entries) > _MAX_ENTRIES:
        raise UnreadableTrace(f"it has more than {_MAX_ENTRIES:,} entries, which no dump has")
    reader = _EntryReader()
    found = [reader.call(entry) for entry in entries]
    records = [_number(entry.get("record_id")) for entry in entries if isinstance(entry, dict)]
    groups = dict(groups_of_values(values))
    for entry in entries:
        name, description = _group_of_entry(entry if isinstance(entry, dict) else {})
        if name is not None and name not in groups:
            groups[name] = Group(name, description)
    return Dump(
        rank=rank,
        calls=tuple(call for call in found if call is not None),
        groups=MappingProxyType(groups),
        version=str(values.get("version", ""))[:_MAX_CHARACTERS],
        lost_calls=bool(records) and min((r or 0 for r in records), default=0) > 0,
        unread_entries=found.count(None),
        source=source,
    )


def groups_of_values(values: Mapping[Any, Any]) -> Iterator[tuple[str, Group]]:
    """Yields each group that a dump's `pg_config` describes with its ranks, by its name.

    Gloo writes one without a name and ranks, which tells nothing.
    """
    config = values.get("pg_config")
    for key, told in config.items() if isinstance(config, dict) else ():
        ranks = _ranks(told.get("ranks")) if isinstance(told, dict) else ()
        if ranks:
            name, description = _text(told.get("name")) or str(key), _text(told.get("desc")) or ""
            yield name[:_MAX_CHARACTERS], Group(name, _plain_description(description), ranks)


def _ranks(told: Any) -> tuple[int, ...]:
    """Returns the ranks of a group; dumps write their list as a text."""
    if isinstance(told, str):
        try:
            told = msgspec.json.decode(told.replace("(", "[").replace(")", "]"))
        except (msgspec.DecodeError, RecursionError):
            return ()
    if not isinstance(told, list | tuple):
        return ()
    ranks = [rank for rank in map(_number, told) if rank is not None and rank < _MAX_RANK]
    return tuple(sorted(set(ranks))) if len(ranks) == len(told) else ()


def _group_of_entry(entry: Mapping[Any, Any]) -> tuple[str | None, str]:
    """Returns name and description of an entry's group; before version 2 there is a number only."""
    told = entry.get("process_group")
    if isinstance(told, list | tuple) and len(told) == 2 and isinstance(told[0], str):
        return told[0][:_MAX_CHARACTERS], _plain_description(_text(told[1]) or "")
    number = _number(entry.get("pg_id"))
    return (None if number is None else str(number)), ""


def _plain_description(description: str) -> str:
    return "" if description == "undefined" else description


class _EntryReader:
    """Reads entries; what several of them share, such as a stack, is read once."""

    def __init__(self) -> None:
        self._places: dict[int, Place | None] = {}
        self._sizes: dict[int, Sizes] = {}
        self._origins: dict[str, str] = {}
        self._tensors = 0

    def call(self, entry: Any) -> Call | None:
        """Returns the call that an entry tells; None if it lacks its group, number or name."""
        if not isinstance(entry, dict):
            return None
        group, _ = _group_of_entry(entry)
        name, is_p2p = _text(entry.get("profiling_name")), entry.get("is_p2p") is True
        sequence = _sequence(entry, is_point_to_point=is_p2p)
        if group is None or name is None or sequence is None:
            return None
        named = parse_recorded_name(name)
        inputs, outputs = (self._shapes(entry.get(key)) for key in ("input_sizes", "output_sizes"))
        return Call(
            group=group,
            sequence=sequence,
            operation=named.operation,
            state=_state(entry, named.backend),
            is_point_to_point=is_p2p or named.operation in {SEND, RECEIVE},
            backend=named.backend,
            source=named.source,
            destination=named.destination,
            input_sizes=inputs,
            output_sizes=outputs,
            input_dtypes=_dtypes(entry.get("input_dtypes")),
            output_dtypes=_dtypes(entry.get("output_dtypes")),
            created_ns=_instant(entry.get("time_created_ns")),
            started_ns=_instant(entry.get("time_discovered_started_ns")),
            completed_ns=_instant(entry.get("time_discovered_completed_ns")),
            timeout_ns=_timeout(entry.get("timeout_ms")),
            place=self._place(entry.get("frames")),
        )

    def _shapes(self, told: Any) -> Sizes:
        if not isinstance(told, list | tuple):
            return ()
        self._tensors += len(told)
        if self._tensors > _MAX_TENSORS:
            raise UnreadableTrace(f"its entries have more than {_MAX_TENSORS:,} tensors")
        known = self._sizes.get(id(told))
        if known is None:
            shapes = [s if isinstance(s, list | tuple) else [s] for s in told]
            known = tuple(
                tuple(n for n in map(_number, s[:_MAX_DIMENSIONS]) if n is not None) for s in shapes
            )
            self._sizes[id(told)] = known
        return known

    def _place(self, frames: Any) -> Place | None:
        """Returns the innermost line of the user's code on a stack, else that of a library."""
        if not isinstance(frames, list | tuple):
            return None
        if id(frames) not in self._places:
            places = [p for p in map(_place_of_frame, frames[:_MAX_FRAMES]) if p is not None]
            origins = [self._origin(place.file) for place in places]
            wanted = next((o for o in _ORIGINS_BY_PREFERENCE if o in origins), None)
            at = 0 if wanted is None else origins.index(wanted)
            self._places[id(frames)] = places[at] if places else None
        return self._places[id(frames)]

    def _origin(self, file: str) -> str:
        if file not in self._origins:
            frame = names.parse_frame(f"{file}(1): f")
            self._origins[file] = "system" if frame is None else frame.origin
        return self._origins[file]


def _place_of_frame(frame: Any) -> Place | None:
    if not isinstance(frame, dict):
        return None
    file, line = _text(frame.get("filename")), _number(frame.get("line"))
    if file is None or not line or file == "??":  # C++ frames have no line
        return None
    function = _text(frame.get("name"))
    return Place(
        file[:_MAX_CHARACTERS], line, None if function is None else function[:_MAX_CHARACTERS]
    )


def _sequence(entry: Mapping[Any, Any], *, is_point_to_point: bool) -> int | None:
    key = "p2p_seq_id" if is_point_to_point else "collective_seq_id"
    return _number(entry.get(key, entry.get("seq_id")))


def _state(entry: Mapping[Any, Any], backend: str) -> CallState:
    told, is_retired = entry.get("state"), entry.get("retired") is True
    if told == "completed" or _instant(entry.get("time_discovered_completed_ns")) is not None:
        return CallState.completed
    if is_retired:
        return CallState.ended if backend in _BACKENDS_WITHOUT_EVENTS else CallState.timed_out
    return CallState.started if told == "started" else CallState.scheduled


def _dtypes(told: Any) -> tuple[str, ...]:
    if isinstance(told, str):
        return (told[:_MAX_CHARACTERS],) if told else ()
    if not isinstance(told, list | tuple):
        return ()
    return tuple(sorted({dtype[:_MAX_CHARACTERS] for dtype in told if isinstance(dtype, str)}))


def _instant(told: Any) -> int | None:
    number = _number(told)
    return number if number and number < _MAX_INSTANT_NS else None


def _timeout(milliseconds: Any) -> int | None:
    number = _number(milliseconds)
    return number * 1_000_000 if number and number < _MAX_INSTANT_NS // 1_000_000 else None


def _number(told: Any) -> int | None:
    """Returns a number from 0; the JSON form has some of them as texts."""
    if isinstance(told, str) and told.isascii() and told.isdigit() and len(told) < 20:
        return int(told)
    return told if type(told) is int and told >= 0 else None


def _text(told: Any) -> str | None:
    return told if isinstance(told, str) and told else None
