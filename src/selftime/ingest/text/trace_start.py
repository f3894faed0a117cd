"""Reads what the first bytes of a trace file tell of it: its device, rank and world size.

PyTorch's profiler writes them before the events, so that a list of many traces can show them
without reading the traces. Where they come later, or the file is damaged, they are unknown.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from selftime.ingest.text.format_detection import read_decompressed_start
from selftime.ingest.text.trace_header import (
    device_names_in_header,
    rank_in_header,
    world_size_in_header,
)

_EVENTS_KEY: Final = '"traceEvents"'
_KEYS_OF_HEADER: Final = ("deviceProperties", "distributedInfo")


@dataclass(frozen=True, slots=True)
class TraceStart:
    """What is known of a trace before its events are read; None where it is unknown."""

    device: str | None = None
    """The name of the device, or of all devices if they are of one kind."""
    rank: int | None = None
    world_size: int | None = None


def read_trace_start(path: Path) -> TraceStart:
    """Returns what the first bytes of a file, perhaps compressed, tell of the trace in it."""
    text = read_decompressed_start(path).decode("utf-8", "replace").partition(_EVENTS_KEY)[0]
    return trace_start_of_header({key: _value_of_key(text, key) for key in _KEYS_OF_HEADER})


def trace_start_of_header(metadata: Mapping[str, Any]) -> TraceStart:
    """Returns the same of a trace's header, where the trace has been read."""
    names = device_names_in_header(metadata)
    return TraceStart(
        device=names.pop() if len(names) == 1 else None,
        rank=rank_in_header(metadata),
        world_size=world_size_in_header(metadata),
    )


def _value_of_key(text: str, key: str) -> Any:
    """Returns the JSON value after the first such key in a text; None if it is not whole."""
    _, found, rest = text.partition(f'"{key}"')
    try:
        return json.JSONDecoder().raw_decode(rest.lstrip(" \t\r\n:"))[0] if found else None
    except (ValueError, RecursionError):
        return None
