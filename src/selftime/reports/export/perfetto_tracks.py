"""Describes a trace's processes, threads, streams and counters as Perfetto tracks.

Slices that overlap others of their thread are on additional tracks, so that nothing is dropped.
Slices with an unknown end are on a track of their own, since no slice inside them could end.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime.array_types import Ints
from selftime.reports.export.export_format import slice_end_times
from selftime.reports.export.perfetto_fields import (
    CounterDescriptorField,
    ProcessDescriptorField,
    ThreadDescriptorField,
    TracePacketField,
    TrackDescriptorField,
)
from selftime.reports.export.protobuf_encoding import encode_field
from selftime.rewrite.added_threads import AddedThreads
from selftime.trace import Trace

_MIN_REJECTED_PROCESS_OR_THREAD_ID: Final = 1 << 31
"""Smallest process or thread id that Perfetto rejects."""
_PERFETTO_NUMBER_BY_COUNTER_UNIT: Final = {"bytes": CounterDescriptorField.BYTES}
"""Perfetto's numbers of the units of counters."""
_KINDS_OF_TRACKS_ON_DEVICE: Final = ("device", "device sync", "device annotation")
"""Kinds of tracks that show a stream of a device."""
_LABEL_OF_TRACK_FOR_UNENDED_SLICES: Final = "no end"
"""Name of the track, below a thread's own track, for slices whose end is unknown."""


class PerfettoTracks:
    """The Perfetto tracks that show a trace: their numbers and encoded descriptions.

    `process_prefix` is put before process names in a file with several ranks; such a file has no
    process ids, since ranks may share them.
    """

    def __init__(self, trace: Trace, *, first_number: int = 1, process_prefix: str = "") -> None:
        self._next_number = first_number
        self._process_prefix = process_prefix
        self.descriptors: list[bytes] = []
        self._processes: dict[str, int] = {}
        self._threads: dict[int, int] = {}
        self._names: dict[int, str] = {}
        """Name of each thread, by its number in the trace."""
        self._track_numbers: list[int] = []
        self._add_thread_tracks(trace)
        self.of_slice = self._track_numbers_of_slices(trace)
        """Number of the Perfetto track that shows the slice, one value per slice."""
        self.of_track = np.array(self._track_numbers, np.int64)
        """Number of the Perfetto track for instant events, one value per track of the trace."""

    @property
    def next_track_number(self) -> int:
        """The first track number that is not in use."""
        return self._next_number

    def add_counter_track(self, process: str | None, name: str, unit: str = "") -> int:
        """Adds a track for a counter of a process, and returns the track's number."""
        unit_field = (
            encode_field(CounterDescriptorField.UNIT, _PERFETTO_NUMBER_BY_COUNTER_UNIT[unit])
            if unit in _PERFETTO_NUMBER_BY_COUNTER_UNIT
            else b""
        )
        parent = None if process is None else self._processes.get(process)
        return self._add_track(name, parent, encode_field(TrackDescriptorField.COUNTER, unit_field))

    def _add_track(
        self, track_name: str, parent_track: int | None, extra_fields: bytes = b""
    ) -> int:
        """Adds a track below a parent track, and returns the new track's number."""
        number = self._next_number
        self._next_number += 1
        parent_field = (
            b"" if parent_track is None else encode_field(TrackDescriptorField.PARENT, parent_track)
        )
        name_field = encode_field(TrackDescriptorField.NAME, track_name) if track_name else b""
        merge_field = encode_field(
            TrackDescriptorField.SIBLING_MERGE_BEHAVIOR, TrackDescriptorField.NEVER_MERGE
        )
        self.descriptors.append(
            encode_field(TrackDescriptorField.UUID, number)
            + name_field
            + parent_field
            + merge_field
            + extra_fields
        )
        return number

    def _add_thread_tracks(self, trace: Trace) -> None:
        """Adds a track for each process, thread and stream of the trace."""
        device_tracks = trace.tracks.filter(
            pl.col("kind").cast(pl.String).is_in(_KINDS_OF_TRACKS_ON_DEVICE)
        )
        streams, devices = {*device_tracks["thread"]}, {*device_tracks["process"]}
        for row in trace.tracks.iter_rows(named=True):
            thread, is_stream = row["thread"], row["thread"] in streams
            process = self._track_number_of_process(row, is_device=row["process"] in devices)
            if thread not in self._threads:
                name = row["name"] or (f"stream {row['tid']}" if is_stream else row["tid"])
                self._names[thread] = name
                ids = self._process_and_thread_id(row["process"], row["tid"])
                descriptor = (
                    b"" if is_stream or ids is None else _encode_thread_descriptor(*ids, name)
                )
                self._threads[thread] = self._add_track(name, process, descriptor)
            self._track_numbers.append(self._threads[thread])

    def _track_number_of_process(self, row: dict[str, object], *, is_device: bool) -> int:
        """Returns the number of a process's Perfetto track; adds the track if it is missing."""
        key = str(row["process"])
        if key not in self._processes:
            pid = _parse_process_or_thread_id(key)
            default_name = f"GPU {key}" if is_device else key if pid is None else f"process {key}"
            name, descriptor = str(row["process_name"] or default_name), b""
            if not is_device and not self._process_prefix and pid is not None:
                fields = encode_field(ProcessDescriptorField.ID, pid) + encode_field(
                    ProcessDescriptorField.NAME, name
                )
                descriptor = encode_field(TrackDescriptorField.PROCESS, fields)
            self._processes[key] = self._add_track(self._process_prefix + name, None, descriptor)
        return self._processes[key]

    def _process_and_thread_id(self, process: str, tid: str) -> tuple[int, int] | None:
        """Returns (process id, thread id) as numbers; None if Perfetto rejects one of them."""
        pid, number = _parse_process_or_thread_id(process), _parse_process_or_thread_id(tid)
        return None if self._process_prefix or pid is None or number is None else (pid, number)

    def _track_numbers_of_slices(self, trace: Trace) -> Ints:
        """Returns each slice's track number; adds tracks for slices that overlap or have no end."""
        slices = trace.slices
        thread = trace.tracks["thread"].gather(slices["track"]).to_numpy().astype(np.int64)
        has_end = slices["duration"].is_not_null().to_numpy()
        start, end = slices["start"].to_numpy(), slice_end_times(slices)
        lane = AddedThreads(trace, has_end, start, end).lane
        lane[~has_end] = -1
        track_numbers = np.zeros(slices.height, np.int64)
        for number, track in self._threads.items():
            track_numbers[(thread == number) & (lane == 0)] = track
        extra_lanes = np.unique(np.stack([thread, lane], 1)[lane != 0], axis=0)
        for number, lane_number in extra_lanes.tolist():
            label = _LABEL_OF_TRACK_FOR_UNENDED_SLICES if lane_number < 0 else lane_number + 1
            name = f"{self._names[number]} ({label})"
            track_numbers[(thread == number) & (lane == lane_number)] = self._add_track(
                name, self._threads[number]
            )
        return track_numbers

    def track_packets(self) -> Iterator[bytes]:
        """Yields each track's description as an encoded packet."""
        for descriptor in self.descriptors:
            yield encode_field(TracePacketField.TRACK, descriptor)


def _parse_process_or_thread_id(text: str) -> int | None:
    """Returns a process or thread id as a number; None if Perfetto rejects it, as 0."""
    is_number = (
        text.isascii()
        and text.isdecimal()
        and len(text) <= len(str(_MIN_REJECTED_PROCESS_OR_THREAD_ID))
    )
    return int(text) if is_number and 0 < int(text) < _MIN_REJECTED_PROCESS_OR_THREAD_ID else None


def _encode_thread_descriptor(pid: int, tid: int, name: str) -> bytes:
    """Returns the encoded description of a thread: process id, thread id and name."""
    fields = (
        encode_field(ThreadDescriptorField.PROCESS_ID, pid)
        + encode_field(ThreadDescriptorField.ID, tid)
        + encode_field(ThreadDescriptorField.NAME, name)
    )
    return encode_field(TrackDescriptorField.THREAD, fields)


_DEVICE_NAME_BY_TORCH_DEVICE_TYPE: Final = {
    0: "CPU",
    1: "GPU",
    6: "GPU",
    12: "XPU",
    13: "MPS",
    19: "MTIA",
}
"""Names of devices by PyTorch's number of the device type, which memory events have."""


def samples_by_counter(trace: Trace) -> Iterator[tuple[str | None, str, str, pl.DataFrame]]:
    """Yields (process, name, unit, table of times and values) of each counter."""
    key = ["track", "name", "series"]
    for (track, name, series), samples in trace.counters.group_by(key, maintain_order=True):
        counter = str(name) if name == series else f"{name} {series}"
        yield trace.tracks["process"][int(str(track))], counter, "", samples.select("time", "value")
    for (kind, device), events in trace.memory.group_by(
        ["device_type", "device"], maintain_order=True
    ):
        device_name = _DEVICE_NAME_BY_TORCH_DEVICE_TYPE.get(kind, f"device type {kind}")
        memory_name = device_name if kind == 0 else f"{device_name} {device}"
        process = trace.tracks["process"][events["track"][0]]
        for column in ("allocated", "reserved"):
            samples = events.select("time", value=column).drop_nulls()
            if samples.height:
                yield process, f"{memory_name} memory {column}", "bytes", samples
