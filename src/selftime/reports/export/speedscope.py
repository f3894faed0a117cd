"""Exports a trace to speedscope: one profile of begin and end events per thread and stream.

Format: <https://www.speedscope.app/file-format-schema.json>, version 0.0.1. Times are nanoseconds.
Events of a profile must nest, so slices that overlap others are in additional profiles.
"""

from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl

from selftime import names
from selftime._version import __version__
from selftime.array_types import Ints
from selftime.reports.export.export_format import (
    SLICES_PER_BATCH,
    Export,
    ExportOptions,
    ExportResult,
    begin_and_end_event_order,
    slice_end_times,
)
from selftime.reports.trace_file import open_file_writer
from selftime.rewrite.added_threads import AddedThreads
from selftime.trace import Trace

_SPEEDSCOPE_SCHEMA_URL: Final = "https://www.speedscope.app/file-format-schema.json"
"""URL of the JSON schema of speedscope's file format."""


def write(trace: Trace, output: Path, options: ExportOptions) -> ExportResult:
    """Writes a trace to a file in speedscope's format.

    Raises:
        UsageError: `output` is the trace's own file, a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    result = ExportResult()
    slices = trace.slices
    has_end = slices["duration"].is_not_null().to_numpy()
    start, end = slices["start"].to_numpy(), slice_end_times(slices)
    lane = AddedThreads(trace, has_end, start, end).lane
    frames, frame_of_slice = _distinct_speedscope_frames(trace)
    order = begin_and_end_event_order(trace)
    order = order[has_end[order % max(slices.height, 1)]]
    profiles = _named_profiles_of_threads(trace, order, lane)
    head: dict[str, Any] = {
        "$schema": _SPEEDSCOPE_SCHEMA_URL,
        "exporter": f"selftime {__version__}",
        "name": Path(trace.source).name,
        "activeProfileIndex": _index_of_largest_profile(trace, profiles),
        "shared": {"frames": frames},
    }
    time_range = {"unit": "nanoseconds", "startValue": 0, "endValue": int(end.max(initial=0))}
    written_count = 0
    with open_file_writer(output, trace.source) as write_bytes:
        write_bytes(msgspec.json.encode(head)[:-1] + b',\n"profiles": [')
        for index, (name, events) in enumerate(profiles):
            opening = {"type": "evented", "name": name, **time_range}
            write_bytes((b",\n" if index else b"\n") + msgspec.json.encode(opening)[:-1])
            write_bytes(b',"events":[')
            for first in range(0, events.size, SLICES_PER_BATCH):
                batch = events[first : first + SLICES_PER_BATCH]
                write_bytes(
                    (b",\n" if first else b"\n")
                    + _speedscope_events_json(batch, frame_of_slice, start, end)
                )
                written_count += batch.size
                options.progress(written_count, order.size)
            write_bytes(b"]}")
        write_bytes(b"\n]}\n")
    result.size = write_bytes.size
    result.written = {"slices": int(has_end.sum()), "profiles": len(profiles)}
    result.record_left_out("slices whose end is not known", int((~has_end).sum()))
    result.record_left_out("samples of counters", trace.counters.height)
    result.record_left_out("allocations", trace.memory.height)
    result.record_left_out("marks", trace.instants.height)
    return result


SPEEDSCOPE: Final = Export(
    "speedscope", "speedscope: each thread and stream by time", ".speedscope.json", write
)


def _distinct_speedscope_frames(trace: Trace) -> tuple[list[dict[str, Any]], Ints]:
    """Returns distinct slice names as speedscope frames, and each slice's index in this list."""
    names_of_slices = trace.slices["name"].cast(pl.String)
    distinct = names_of_slices.unique(maintain_order=True)
    frames = []
    for text in distinct.to_list():
        frame = names.parse_frame(text)
        line = {} if frame is None or frame.line is None else {"line": frame.line}
        location = {} if frame is None else {"file": frame.file, **line}
        frames.append({"name": text, **location})
    indices = pl.Series(np.arange(distinct.len()))
    return frames, names_of_slices.replace_strict(
        distinct, indices, return_dtype=pl.Int64
    ).to_numpy()


def _named_profiles_of_threads(trace: Trace, order: Ints, lanes: Ints) -> list[tuple[str, Ints]]:
    """Returns (name, numbers of its events by time) of each profile: one per thread or stream."""
    tracks = trace.tracks.unique("thread", keep="first", maintain_order=True)
    thread_names = {
        thread: " ".join(part for part in (process, name or tid) if part)
        for thread, process, name, tid in tracks.select(
            "thread", "process_name", "name", "tid"
        ).iter_rows()
    }
    slice_ids = order % max(trace.slices.height, 1)
    thread = trace.tracks["thread"].gather(trace.slices["track"]).to_numpy().astype(np.int64)
    key = thread[slice_ids] * (int(lanes.max(initial=0)) + 1) + lanes[slice_ids]
    positions = np.argsort(key, kind="stable")
    borders = np.flatnonzero(np.diff(key[positions])) + 1
    profiles = []
    for profile_positions in np.split(positions, borders) if positions.size else []:
        first_slice = slice_ids[profile_positions[0]]
        lane_suffix = f" ({lanes[first_slice] + 1})" if lanes[first_slice] else ""
        profiles.append(
            (thread_names[int(thread[first_slice])] + lane_suffix, order[profile_positions])
        )
    return profiles


def _index_of_largest_profile(trace: Trace, profiles: list[tuple[str, Ints]]) -> int:
    """Returns the index of the profile with the most events, which speedscope shows first."""
    sizes = [events.size for _, events in profiles]
    return int(np.argmax(sizes)) if sizes and trace.slices.height else 0


def _speedscope_events_json(events: Ints, frame_of_slice: Ints, starts: Ints, ends: Ints) -> bytes:
    """Returns speedscope's events `O` (begin) and `C` (end) as JSON objects joined by commas."""
    count = starts.size
    slice_ids = events % count
    is_end = events >= count
    table = pl.DataFrame(
        {
            "end": is_end,
            "frame": frame_of_slice[slice_ids],
            "at": np.where(is_end, ends[slice_ids], starts[slice_ids]),
        }
    )
    kind = (
        pl.when("end")
        .then(pl.lit('{"type":"C","frame":'))
        .otherwise(pl.lit('{"type":"O","frame":'))
    )
    text = pl.concat_str(kind, pl.col("frame"), pl.lit(',"at":'), pl.col("at"), pl.lit("}"))
    return ",\n".join(table.select(text).to_series().to_list()).encode()
