"""Exports a trace to speedscope: one profile of begin and end events per thread and stream.

Format: <https://www.speedscope.app/file-format-schema.json>, version 0.0.1. Times are nanoseconds.
Events of a profile must nest, so slices that overlap others are in additional profiles.
"""

from collections.abc import Callable, Iterator
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
from selftime.reports.export.job_clocks import ToFileTimes, clocks_of_job
from selftime.reports.trace_file import open_file_writer
from selftime.rewrite.added_threads import AddedThreads
from selftime.trace import Job, Trace

_SPEEDSCOPE_SCHEMA_URL: Final = "https://www.speedscope.app/file-format-schema.json"
"""URL of the JSON schema of speedscope's file format."""


def write(trace: Trace, output: Path, options: ExportOptions) -> ExportResult:
    """Writes a trace to a file in speedscope's format.

    Raises:
        UsageError: `output` is the trace's own file, a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    frames = _SharedFrames()
    return _write_profiles([_TraceProfiles(trace, frames)], frames, output, options)


def write_job(job: Job, output: Path, options: ExportOptions) -> ExportResult:
    """Writes all traces of a job to one file, on one clock: the profiles of one rank after another.

    Raises:
        UsageError: `output` is a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    frames, clocks = _SharedFrames(), clocks_of_job(job)
    profiles = [
        _TraceProfiles(
            trace,
            frames,
            label_prefix=f"{job.members[path].label}: ",
            to_file_times=clocks.to_file_times_by_path[path],
        )
        for path, trace in job.traces.items()
    ]
    result = _write_profiles(profiles, frames, output, options)
    result.written["traces"] = len(job)
    clocks.record_unaligned(result)
    return result


class _SharedFrames:
    """The distinct names of slices, as speedscope's frames, which all profiles of a file share."""

    def __init__(self) -> None:
        self.frames: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}

    def frame_numbers(self, slice_names: pl.Series) -> Ints:
        """Returns the number of each name's frame; a new name gets the next number."""
        texts = slice_names.cast(pl.String)
        distinct = texts.unique(maintain_order=True)
        numbers = pl.Series([self._number(text) for text in distinct.to_list()], dtype=pl.Int64)
        return texts.replace_strict(distinct, numbers, return_dtype=pl.Int64).to_numpy()

    def _number(self, text: str) -> int:
        number = self._numbers.setdefault(text, len(self.frames))
        if number == len(self.frames):
            frame = names.parse_frame(text)
            line = {} if frame is None or frame.line is None else {"line": frame.line}
            self.frames.append(
                {"name": text, **({} if frame is None else {"file": frame.file, **line})}
            )
        return number


class _TraceProfiles:
    """The profiles of one trace: of each thread and stream its begin and end events by time."""

    def __init__(
        self,
        trace: Trace,
        frames: _SharedFrames,
        *,
        label_prefix: str = "",
        to_file_times: ToFileTimes | None = None,
    ) -> None:
        slices = trace.slices
        self.trace, self._label_prefix = trace, label_prefix
        self.has_end = slices["duration"].is_not_null().to_numpy()
        start, end = slices["start"].to_numpy(), slice_end_times(slices)
        lanes = AddedThreads(trace, self.has_end, start, end).lane
        self._frame_of_slice = frames.frame_numbers(slices["name"])
        order = begin_and_end_event_order(trace)
        order = order[self.has_end[order % max(slices.height, 1)]]
        self.event_count = int(order.size)
        self.profiles = _named_profiles_of_threads(trace, order, lanes)
        moved = to_file_times or (lambda times: times)
        self._start, self._end = moved(start), moved(end)

    @property
    def last_time(self) -> int:
        """The end of the last slice, in ns."""
        return int(self._end.max(initial=0))

    def write(
        self, write_bytes: Callable[[bytes], None], last_time: int, *, is_first: bool
    ) -> Iterator[int]:
        """Writes the profiles; yields the number of events after each part that was written."""
        time_range = {"unit": "nanoseconds", "startValue": 0, "endValue": last_time}
        for index, (name, events) in enumerate(self.profiles):
            opening = {"type": "evented", "name": self._label_prefix + name, **time_range}
            separator = b"\n" if is_first and not index else b",\n"
            write_bytes(separator + msgspec.json.encode(opening)[:-1] + b',"events":[')
            for first in range(0, events.size, SLICES_PER_BATCH):
                batch = events[first : first + SLICES_PER_BATCH]
                text = _speedscope_events_json(batch, self._frame_of_slice, self._start, self._end)
                write_bytes((b",\n" if first else b"\n") + text)
                yield int(batch.size)
            write_bytes(b"]}")


def _write_profiles(
    traces: list[_TraceProfiles], frames: _SharedFrames, output: Path, options: ExportOptions
) -> ExportResult:
    """Writes a file with the profiles of one or more traces; returns what was written."""
    result = ExportResult()
    sizes = [events.size for one in traces for _, events in one.profiles]
    first_source = traces[0].trace.source if traces else ""
    head: dict[str, Any] = {
        "$schema": _SPEEDSCOPE_SCHEMA_URL,
        "exporter": f"selftime {__version__}",
        "name": Path(first_source).name if len(traces) == 1 else output.name,
        "activeProfileIndex": int(np.argmax(sizes)) if any(sizes) else 0,
        "shared": {"frames": frames.frames},
    }
    last_time = max((one.last_time for one in traces), default=0)
    written, total = 0, sum(one.event_count for one in traces)
    with open_file_writer(output, first_source) as write_bytes:
        write_bytes(msgspec.json.encode(head)[:-1] + b',\n"profiles": [')
        is_first = True
        for one in traces:
            for count in one.write(write_bytes, last_time, is_first=is_first):
                written += count
                options.progress(written, total)
            is_first = is_first and not one.profiles
        write_bytes(b"\n]}\n")
    result.size = write_bytes.size
    result.written = {"slices": total // 2, "profiles": len(sizes)}
    for what, count in (
        ("slices whose end is not known", sum(int((~one.has_end).sum()) for one in traces)),
        ("samples of counters", sum(one.trace.counters.height for one in traces)),
        ("allocations", sum(one.trace.memory.height for one in traces)),
        ("marks", sum(one.trace.instants.height for one in traces)),
    ):
        result.record_left_out(what, count)
    return result


SPEEDSCOPE: Final = Export(
    "speedscope",
    "speedscope: each thread and stream by time",
    ".speedscope.json",
    write,
    write_job=write_job,
)


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
