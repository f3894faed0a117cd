"""A trace as speedscope reads it: one evented profile for each thread and stream.

Format: <https://www.speedscope.app/file-format-schema.json>, version 0.0.1. Times are nanoseconds.
What crosses others of its thread is in a further profile, for the events of one have to nest.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl

from selftime import names
from selftime._version import __version__
from selftime.arrays import Ints
from selftime.reports.exports.base import BATCH, Asked, Export, Told, ends_of, event_order
from selftime.reports.trace_file import new_file
from selftime.rewrite.threads import AddedThreads
from selftime.trace import Trace

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def write(trace: Trace, output: Path, asked: Asked) -> Told:
    """Write the trace.

    Raises:
        UsageError: `output` is what is read, or nothing that can be written to.
        SelftimeError: It cannot be written.
    """
    told = Told()
    slices = trace.slices
    ended = slices["duration"].is_not_null().to_numpy()
    start, end = slices["start"].to_numpy(), ends_of(slices)
    lane = AddedThreads(trace, ended, start, end).lane
    frames, code = _frames(trace)
    order = event_order(trace)
    order = order[ended[order % max(slices.height, 1)]]
    profiles = _profiles(trace, order, lane)
    head: dict[str, Any] = {
        "$schema": _SCHEMA,
        "exporter": f"selftime {__version__}",
        "name": Path(trace.source).name,
        "activeProfileIndex": _fullest(trace, profiles),
        "shared": {"frames": frames},
    }
    span = {"unit": "nanoseconds", "startValue": 0, "endValue": int(end.max(initial=0))}
    done = 0
    with new_file(output, trace.source) as put:
        put(msgspec.json.encode(head)[:-1] + b',\n"profiles": [')
        for number, (name, events) in enumerate(profiles):
            opening = {"type": "evented", "name": name, **span}
            put((b",\n" if number else b"\n") + msgspec.json.encode(opening)[:-1])
            put(b',"events":[')
            for low in range(0, events.size, BATCH):
                some = events[low : low + BATCH]
                put((b",\n" if low else b"\n") + _text(some, code, start, end))
                done += some.size
                asked.progress(done, order.size)
            put(b"]}")
        put(b"\n]}\n")
    told.size = put.size
    told.written = {"slices": int(ended.sum()), "profiles": len(profiles)}
    told.lacks("slices whose end is not known", int((~ended).sum()))
    told.lacks("samples of counters", trace.counters.height)
    told.lacks("allocations", trace.memory.height)
    told.lacks("marks", trace.instants.height)
    return told


SPEEDSCOPE: Final = Export(
    "speedscope", "speedscope: each thread and stream by time", ".speedscope.json", write
)


def _frames(trace: Trace) -> tuple[list[dict[str, Any]], Ints]:
    """The different names, with file and line where they tell them; that of each slice."""
    named = trace.slices["name"].cast(pl.String)
    distinct = named.unique(maintain_order=True)
    frames = []
    for text in distinct.to_list():
        known = names.frame(text)
        line = {} if known is None or known.line is None else {"line": known.line}
        place = {} if known is None else {"file": known.file, **line}
        frames.append({"name": text, **place})
    numbers = pl.Series(np.arange(distinct.len()))
    return frames, named.replace_strict(distinct, numbers, return_dtype=pl.Int64).to_numpy()


def _profiles(trace: Trace, order: Ints, lane: Ints) -> list[tuple[str, Ints]]:
    """What each thread, stream and lane beside one is called, and its events in order."""
    tracks = trace.tracks.unique("thread", keep="first", maintain_order=True)
    called = {
        thread: " ".join(part for part in (process, name or tid) if part)
        for thread, process, name, tid in tracks.select(
            "thread", "process_name", "name", "tid"
        ).iter_rows()
    }
    at = order % max(trace.slices.height, 1)
    thread = trace.tracks["thread"].gather(trace.slices["track"]).to_numpy().astype(np.int64)
    key = thread[at] * (int(lane.max(initial=0)) + 1) + lane[at]
    places = np.argsort(key, kind="stable")
    borders = np.flatnonzero(np.diff(key[places])) + 1
    found = []
    for those in np.split(places, borders) if places.size else []:
        first = at[those[0]]
        further = f" ({lane[first] + 1})" if lane[first] else ""
        found.append((called[int(thread[first])] + further, order[those]))
    return found


def _fullest(trace: Trace, profiles: list[tuple[str, Ints]]) -> int:
    """The profile with most events: the one to show first."""
    sizes = [events.size for _, events in profiles]
    return int(np.argmax(sizes)) if sizes and trace.slices.height else 0


def _text(events: Ints, code: Ints, start: Ints, end: Ints) -> bytes:
    """Events as JSON, with commas between them."""
    count = start.size
    at = events % count
    is_end = events >= count
    table = pl.DataFrame(
        {"end": is_end, "frame": code[at], "at": np.where(is_end, end[at], start[at])}
    )
    kind = (
        pl.when("end")
        .then(pl.lit('{"type":"C","frame":'))
        .otherwise(pl.lit('{"type":"O","frame":'))
    )
    text = pl.concat_str(kind, pl.col("frame"), pl.lit(',"at":'), pl.col("at"), pl.lit("}"))
    return ",\n".join(table.select(text).to_series().to_list()).encode()
