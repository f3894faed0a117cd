"""Exports a trace to Perfetto's own format without loss; times are integers in nanoseconds.

Format: perfetto.protos.Trace, as <https://perfetto.dev/docs/reference/trace-packet-proto> and
<https://perfetto.dev/docs/reference/synthetic-track-event> describe it. Names and texts are
written once and referred to by number. One sequence of packets holds one trace, with begin and end
events in order of time.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.array_types import Ints
from selftime.reports.export.chrome_args import SliceArguments
from selftime.reports.export.export_format import (
    SLICES_PER_BATCH,
    ExportOptions,
    ExportResult,
    SliceArrows,
    begin_and_end_event_order,
    slice_end_times,
    slice_names_with_overloads,
)
from selftime.reports.export.perfetto_fields import (
    TRACE_PACKET_FIELD,
    ClockField,
    ClockId,
    ClockSnapshotField,
    DebugAnnotationField,
    InternedDataField,
    SequenceFlags,
    TracePacketField,
    TrackEventField,
    TrackEventType,
)
from selftime.reports.export.perfetto_texts import InternedTexts
from selftime.reports.export.perfetto_tracks import PerfettoTracks, samples_by_counter
from selftime.reports.export.protobuf_encoding import (
    WIRE_FIXED64,
    WIRE_VARINT,
    EncodedRows,
    PaddedCells,
    encode_doubles,
    encode_field,
    encode_fixed64,
    encode_length_delimited,
    encode_tag,
    encode_varints,
    join_row_parts,
    merge_rows_by_message,
)
from selftime.reports.trace_file import open_file_writer
from selftime.trace import Trace

_BITS_OF_ARROW_NUMBER_IN_FLOW_ID: Final = 40
"""Number of low bits of a 64-bit flow id that hold the arrow's number; the rest is the trace's
number."""


def write(trace: Trace, output: Path, options: ExportOptions) -> ExportResult:
    """Writes a trace to a file in Perfetto's format.

    Raises:
        UsageError: `output` is the trace's own file, a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    with open_file_writer(output, trace.source) as file:
        sequence = PerfettoPacketSequence(trace, file)
        sequence.write(options)
    sequence.result.size = file.size
    return sequence.result


class PerfettoPacketSequence:
    """Writes one trace as a Perfetto packet sequence, with its own tracks and interned texts."""

    def __init__(
        self,
        trace: Trace,
        write_bytes: Callable[[bytes], None],
        *,
        sequence_id: int = 1,
        first_track: int = 1,
        process_prefix: str = "",
        to_file_times: Callable[[Ints], Ints] | None = None,
    ) -> None:
        self._trace, self._write_bytes, self._sequence_id = trace, write_bytes, sequence_id
        self._process_prefix = process_prefix
        self.tracks = PerfettoTracks(trace, first_number=first_track, process_prefix=process_prefix)
        origin = trace.origin or 0
        firsts = [trace.slices["start"].min(), trace.memory["time"].min()]
        first = min([0, *(time for time in firsts if isinstance(time, int))])
        self._to_file_times = to_file_times or (lambda times: times - first)
        self._file_origin = None if to_file_times is not None or not origin else origin + first
        self._texts = InternedTexts()
        self.result = ExportResult()

    def write(self, options: ExportOptions) -> None:
        """Writes the whole trace: first the descriptions of its tracks, then its events."""
        self._write_packets(self._state_reset_and_clock_packets())
        self._write_packets(self.tracks.track_packets())
        described_count = len(self.tracks.descriptors)
        counters = list(self._encode_counters())
        instants = self._encode_instant_events()
        self._write_packets(
            encode_field(TracePacketField.TRACK, descriptor)
            for descriptor in self.tracks.descriptors[described_count:]
        )
        for times, events in [*instants, *counters]:
            self._write_events(times, events)
        self._write_slices(options)

    def _state_reset_and_clock_packets(self) -> Iterator[bytes]:
        """Yields packets that clear the interned texts and date timestamp 0 in Unix time."""
        yield encode_field(TracePacketField.FLAGS, SequenceFlags.STATE_CLEARED)
        if self._file_origin is not None:
            clocks = (
                (ClockId.BOOTTIME, 0),
                (ClockId.REALTIME, self._file_origin),
            )
            readings = [
                encode_field(ClockField.CLOCK_ID, clock_id)
                + encode_field(ClockField.CLOCK_TIMESTAMP, time)
                for clock_id, time in clocks
            ]
            yield encode_field(
                TracePacketField.CLOCK_SNAPSHOT,
                b"".join(encode_field(ClockSnapshotField.CLOCK, reading) for reading in readings),
            )

    def _write_packets(self, packets: Iterator[bytes]) -> None:
        """Writes encoded packets, each with the id of this sequence."""
        sequence_field = encode_field(TracePacketField.SEQUENCE_ID, self._sequence_id)
        self._write_bytes(
            b"".join(
                encode_field(TRACE_PACKET_FIELD, sequence_field + packet) for packet in packets
            )
        )

    def _write_events(self, times: Ints, encoded_events: EncodedRows) -> None:
        """Writes a packet per event, with its time in ns, after packets that define new texts."""
        self._write_packets(self._texts.new_text_packets())
        event_count = times.size
        head = join_row_parts(
            event_count,
            encode_tag(TracePacketField.TIMESTAMP, WIRE_VARINT),
            encode_varints(times),
            encode_field(TracePacketField.SEQUENCE_ID, self._sequence_id)
            + encode_field(TracePacketField.FLAGS, SequenceFlags.NEEDS_STATE),
        )
        all_events = np.arange(event_count)
        packet = merge_rows_by_message(
            event_count,
            [
                (all_events, head),
                (all_events, encode_length_delimited(TracePacketField.TRACK_EVENT, encoded_events)),
            ],
        )
        self._write_bytes(encode_length_delimited(TRACE_PACKET_FIELD, packet).flat.tobytes())

    def _write_slices(self, options: ExportOptions) -> None:
        slices = self._trace.slices
        times = (
            self._to_file_times(slices["start"].to_numpy()),
            self._to_file_times(slice_end_times(slices)),
        )
        order = begin_and_end_event_order(self._trace)
        arguments, arrows = SliceArguments(self._trace), SliceArrows(self._trace)
        named_slices = pl.DataFrame(
            {"name": slice_names_with_overloads(self._trace), "category": slices["category"]}
        )
        slice_count = slices.height
        for first in range(0, order.size, SLICES_PER_BATCH):
            batch = order[first : first + SLICES_PER_BATCH]
            slice_ids = batch % max(slice_count, 1)
            begins = np.flatnonzero(batch < slice_count)
            is_end = batch >= slice_count
            event_times = np.where(is_end, times[1][slice_ids], times[0][slice_ids])
            event_types = np.where(is_end, TrackEventType.END, TrackEventType.BEGIN)
            parts = [
                (
                    np.arange(batch.size),
                    self._encode_types_and_tracks(event_types, self.tracks.of_slice[slice_ids]),
                )
            ]
            parts.append((begins, self._encode_names(named_slices[slice_ids[begins].tolist()])))
            parts += self._encode_flow_ids_of_arrow_ends(slice_ids[begins], begins, arrows)
            parts += self._encode_arguments(slice_ids[begins], begins, arguments)
            self._write_events(event_times, merge_rows_by_message(batch.size, parts))
            options.progress(first + batch.size, order.size)
        self.result.written["slices"] = slice_count
        self.result.written["arrows"] = arrows.count

    @staticmethod
    def _encode_types_and_tracks(event_types: Ints, tracks: Ints) -> EncodedRows:
        """Returns each event's encoded type (such as begin or end) and track number."""
        return join_row_parts(
            event_types.size,
            encode_tag(TrackEventField.TYPE, WIRE_VARINT),
            encode_varints(event_types),
            encode_tag(TrackEventField.TRACK_UUID, WIRE_VARINT),
            encode_varints(tracks),
        )

    def _encode_names(self, events: pl.DataFrame) -> EncodedRows:
        """Returns each event's encoded name and category, as numbers of interned texts."""
        return join_row_parts(
            events.height,
            encode_tag(TrackEventField.NAME_IID, WIRE_VARINT),
            encode_varints(self._texts.text_numbers(InternedDataField.NAME, events["name"])),
            encode_tag(TrackEventField.CATEGORY_IID, WIRE_VARINT),
            encode_varints(
                self._texts.text_numbers(InternedDataField.CATEGORY, events["category"])
            ),
        )

    def _encode_flow_ids_of_arrow_ends(
        self, slice_ids: Ints, events: Ints, arrows: SliceArrows
    ) -> Iterator[tuple[Ints, EncodedRows]]:
        """Yields (event indices, encoded flow ids) of arrows that begin or end at the events."""
        event_index = _EventIndexBySlice(slice_ids, events)
        for ends in arrows.arrow_endpoints(event_index.low, event_index.high):
            positions, owners = event_index.indices_of_events(ends["slice"].to_numpy())
            if positions.size:
                flow_field = TrackEventField.FLOW_END if ends["is_end"][0] else TrackEventField.FLOW
                flow_ids = ends["arrow"].to_numpy()[positions] + (
                    self._sequence_id << _BITS_OF_ARROW_NUMBER_IN_FLOW_ID
                )
                yield (
                    owners,
                    join_row_parts(
                        positions.size,
                        encode_tag(flow_field, WIRE_FIXED64),
                        encode_fixed64(flow_ids),
                    ),
                )

    def _encode_arguments(
        self, slice_ids: Ints, events: Ints, arguments: SliceArguments
    ) -> Iterator[tuple[Ints, EncodedRows]]:
        """Yields for each argument (indices of the events that have it, its encoded values)."""
        event_index = _EventIndexBySlice(slice_ids, events)
        for key, values, argument_slices in arguments.argument_values(
            event_index.low, event_index.high
        ):
            positions, owners = event_index.indices_of_events(
                argument_slices.to_numpy().astype(np.int64)
            )
            if positions.size:
                key_id = self._texts.text_number(InternedDataField.ANNOTATION, key)
                chosen_values = values.gather(positions)
                encoded_key = encode_field(DebugAnnotationField.NAME, key_id)
                if isinstance(chosen_values.dtype, pl.Array):
                    content = _encode_integer_list_arguments(encoded_key, chosen_values)
                else:
                    content = join_row_parts(
                        positions.size, encoded_key, *self._encode_argument_values(chosen_values)
                    )
                yield owners, encode_length_delimited(TrackEventField.ANNOTATION, content)

    def _encode_argument_values(self, values: pl.Series) -> "tuple[bytes, PaddedCells]":
        """Returns one argument's encoded field tag, and its encoded value for each slice."""
        if values.dtype.is_float():
            encoded = encode_doubles(values.to_numpy())
            return encode_tag(DebugAnnotationField.DOUBLE, WIRE_FIXED64), encoded
        if values.dtype.is_integer():
            encoded = encode_varints(values.to_numpy())
            return encode_tag(DebugAnnotationField.INT, WIRE_VARINT), encoded
        codes = self._texts.text_numbers(InternedDataField.TEXT, values)
        return encode_tag(DebugAnnotationField.TEXT, WIRE_VARINT), encode_varints(codes)

    def _encode_instant_events(self) -> list[tuple[Ints, EncodedRows]]:
        """Returns (times in ns, encoded events) of instant events and of failed allocations."""
        marks = self._trace.instants.select("time", "track", "name", "category")
        failed = self._trace.memory.filter("failed").select("time", "track")
        self.result.written["marks"] = marks.height + failed.height
        encoded = []
        for instants in (
            marks.with_columns(pl.col("name", "category").cast(pl.String)),
            failed.with_columns(name=pl.lit(names.OUT_OF_MEMORY_EVENT), category=pl.lit("memory")),
        ):
            if instants.height:
                track = self.tracks.of_track[instants["track"].to_numpy()]
                encoded_head = self._encode_types_and_tracks(
                    np.full(instants.height, TrackEventType.INSTANT), track
                )
                all_instants = np.arange(instants.height)
                events = merge_rows_by_message(
                    instants.height,
                    [(all_instants, encoded_head), (all_instants, self._encode_names(instants))],
                )
                encoded.append((self._to_file_times(instants["time"].to_numpy()), events))
        return encoded

    def _encode_counters(self) -> Iterator[tuple[Ints, EncodedRows]]:
        """Yields (times in ns, encoded values) of each counter, also of allocated memory."""
        sample_count = 0
        for process, name, unit, samples in samples_by_counter(self._trace):
            track = self.tracks.add_counter_track(process, self._process_prefix + name, unit)
            known_samples = samples.filter(pl.col("value").is_not_null())
            event_types = np.full(known_samples.height, TrackEventType.COUNTER)
            encoded_head = self._encode_types_and_tracks(
                event_types, np.full(known_samples.height, track)
            )
            values = known_samples["value"].to_numpy()
            value_field: tuple[bytes, PaddedCells] = (
                (encode_tag(TrackEventField.COUNTER_VALUE, WIRE_VARINT), encode_varints(values))
                if known_samples["value"].dtype.is_integer()
                else (
                    encode_tag(TrackEventField.DOUBLE_COUNTER_VALUE, WIRE_FIXED64),
                    encode_doubles(values),
                )
            )
            all_samples = np.arange(known_samples.height)
            parts = [
                (all_samples, encoded_head),
                (all_samples, join_row_parts(known_samples.height, *value_field)),
            ]
            sample_count += known_samples.height
            yield (
                self._to_file_times(known_samples["time"].to_numpy()),
                merge_rows_by_message(known_samples.height, parts),
            )
            self.result.record_left_out(
                "samples without a value", samples.height - known_samples.height
            )
        self.result.written["samples"] = sample_count


def _encode_integer_list_arguments(encoded_key: bytes, lists: pl.Series) -> EncodedRows:
    """Returns encoded arguments with lists of integers as values; `encoded_key` is their name."""
    all_rows = np.arange(lists.len())
    parts = [(all_rows, join_row_parts(lists.len(), encoded_key))]
    for column in np.atleast_2d(lists.to_numpy()).T:
        integers = join_row_parts(
            lists.len(), encode_tag(DebugAnnotationField.INT, WIRE_VARINT), encode_varints(column)
        )
        parts.append((all_rows, encode_length_delimited(DebugAnnotationField.ARRAY, integers)))
    return merge_rows_by_message(lists.len(), parts)


class _EventIndexBySlice:
    """Maps slice ids to the index of the slice's begin or end event in one batch of events."""

    def __init__(self, slice_ids: Ints, events: Ints) -> None:
        self.low = int(slice_ids.min()) if slice_ids.size else 0
        self.high = int(slice_ids.max()) + 1 if slice_ids.size else 0
        self._events = np.full(self.high - self.low, -1, np.int64)
        self._events[slice_ids - self.low] = events

    def indices_of_events(self, slice_ids: Ints) -> tuple[Ints, Ints]:
        """Returns (positions in `slice_ids` of those in the batch, indices of their events)."""
        events = self._events[slice_ids - self.low]
        positions = np.flatnonzero(events >= 0)
        return positions, events[positions]
