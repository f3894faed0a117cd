"""Samples of counters: the arguments of a counter event are its series."""

from collections.abc import Iterable
from typing import Any

from selftime.ingest.damage.loosen import loosen
from selftime.ingest.events.columns import NO_NAME, ChunkColumns, thread_key
from selftime.ingest.times.nanoseconds import instants


def add_counters(chunk: ChunkColumns, objects: Iterable[Any]) -> None:
    """Add the samples among a chunk's JSON objects to its columns."""
    places = {thread: place for place, thread in enumerate(chunk.threads)}
    for value in objects:
        if not isinstance(value, dict) or value.get("ph") != "C":
            continue
        event: Any = loosen([value])[0][0]
        [time] = instants([event.ts])[0].tolist()
        thread = thread_key(event)
        if thread not in places:
            places[thread] = len(chunk.threads)
            chunk.threads.append(thread)
        args = value.get("args")
        for series, sample in (args if isinstance(args, dict) else {}).items():
            number = _number(sample)
            chunk.counters.append(
                (time, places[thread], event.name or NO_NAME, str(series), number)
            )


def _number(value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]  # what is no number raises
    except (TypeError, ValueError, OverflowError):
        return float("nan")
