"""A trace in Perfetto's own format: nothing is dropped, and times are integer nanoseconds.

Format: perfetto.protos.Trace, as <https://perfetto.dev/docs/reference/trace-packet-proto> and
<https://perfetto.dev/docs/reference/synthetic-track-event> describe it. Names and texts are
interned; a sequence of packets holds one trace. Slices are begins and ends in order of time.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.arrays import Ints
from selftime.reports.exports import wire as schema
from selftime.reports.exports.arrows import Arrows
from selftime.reports.exports.base import (
    BATCH,
    Asked,
    Export,
    Told,
    ends_of,
    event_order,
    full_names,
)
from selftime.reports.exports.chrome_args import Arguments
from selftime.reports.exports.perfetto_tracks import Tracks
from selftime.reports.exports.wire import (
    FIXED,
    VARINT,
    Cells,
    Rows,
    doubles,
    field,
    fixed,
    rows,
    spliced,
    tag,
    varints,
    wrapped,
)
from selftime.reports.trace_file import new_file
from selftime.trace import Trace

_NAMES: Final = 1000
"""Names that are interned in one packet."""
_ARROWS: Final = 40
"""Bits for the numbers of a trace's arrows, which no two traces of a file share."""


def write(trace: Trace, output: Path, asked: Asked) -> Told:
    """Write the trace.

    Raises:
        UsageError: `output` is what is read, or nothing that can be written to.
        SelftimeError: It cannot be written.
    """
    with new_file(output, trace.source) as put:
        sequence = Sequence(trace, put)
        sequence.write(asked)
    sequence.told.size = put.size
    return sequence.told


PERFETTO: Final = Export(
    "perfetto", "Perfetto: every slice shown, those that overlap too", ".pftrace", write
)


class Sequence:
    """Writes the packets of one trace."""

    def __init__(
        self,
        trace: Trace,
        put: Callable[[bytes], None],
        *,
        number: int = 1,
        first_track: int = 1,
        prefix: str = "",
        clock: Callable[[Ints], Ints] | None = None,
    ) -> None:
        self._trace, self._put, self._number = trace, put, number
        self._prefix = prefix
        self.tracks = Tracks(trace, first=first_track, prefix=prefix)
        zero = trace.origin or 0
        firsts = [trace.slices["start"].min(), trace.memory["time"].min()]
        first = min([0, *(one for one in firsts if isinstance(one, int))])
        self._clock = clock or (lambda times: times - first)
        self._zero = None if clock is not None or not zero else zero + first
        self._interned = _Interned()
        self.told = Told()

    def write(self, asked: Asked) -> None:
        """Write all of it: what describes, then what happened."""
        self._packets(self._opening())
        self._packets(self.tracks.packets())
        described = len(self.tracks.descriptors)
        counters = list(self._counters())
        instants = self._instants()
        self._packets(field(schema.TRACK, one) for one in self.tracks.descriptors[described:])
        for times, events in [*instants, *counters]:
            self._events(times, events)
        self._slices(asked)

    def _opening(self) -> Iterator[bytes]:
        yield field(schema.FLAGS, schema.CLEARED)
        if self._zero is not None:
            known = ((schema.BOOTTIME, 0), (schema.REALTIME, self._zero))
            told = [field(schema.CLOCK_ID, one) + field(schema.CLOCK_TIME, at) for one, at in known]
            yield field(schema.CLOCK_SNAPSHOT, b"".join(field(schema.CLOCK, one) for one in told))

    def _packets(self, packets: Iterator[bytes]) -> None:
        own = field(schema.SEQUENCE_ID, self._number)
        self._put(b"".join(field(schema.PACKET, own + packet) for packet in packets))

    def _events(self, times: Ints, events: Rows) -> None:
        """Write events, each in a packet with its time; what they refer to is interned before."""
        self._packets(self._interned.packets())
        count = times.size
        head = rows(
            count,
            tag(schema.TIMESTAMP, VARINT),
            varints(times),
            field(schema.SEQUENCE_ID, self._number) + field(schema.FLAGS, schema.NEEDS_STATE),
        )
        every = np.arange(count)
        packet = spliced(count, [(every, head), (every, wrapped(schema.TRACK_EVENT, events))])
        self._put(wrapped(schema.PACKET, packet).flat.tobytes())

    def _slices(self, asked: Asked) -> None:
        slices = self._trace.slices
        times = self._clock(slices["start"].to_numpy()), self._clock(ends_of(slices))
        order = event_order(self._trace)
        arguments, arrows = Arguments(self._trace), Arrows(self._trace)
        named = pl.DataFrame({"name": full_names(self._trace), "category": slices["category"]})
        count = slices.height
        for low in range(0, order.size, BATCH):
            some = order[low : low + BATCH]
            at = some % max(count, 1)
            begins = np.flatnonzero(some < count)
            is_end = some >= count
            when = np.where(is_end, times[1][at], times[0][at])
            kind = np.where(is_end, schema.END, schema.BEGIN)
            parts = [(np.arange(some.size), self._heads(kind, self.tracks.of_slice[at]))]
            parts.append((begins, self._named(named[at[begins].tolist()])))
            parts += self._linked(at[begins], begins, arrows)
            parts += self._annotated(at[begins], begins, arguments)
            self._events(when, spliced(some.size, parts))
            asked.progress(low + some.size, order.size)
        self.told.written["slices"] = count
        self.told.written["arrows"] = arrows.count

    @staticmethod
    def _heads(kind: Ints, track: Ints) -> Rows:
        return rows(
            kind.size,
            tag(schema.TYPE, VARINT),
            varints(kind),
            tag(schema.TRACK_UUID, VARINT),
            varints(track),
        )

    def _named(self, events: pl.DataFrame) -> Rows:
        """Name and category of events."""
        return rows(
            events.height,
            tag(schema.NAME_IID, VARINT),
            varints(self._interned.codes(schema.INTERNED_NAME, events["name"])),
            tag(schema.CATEGORY_IID, VARINT),
            varints(self._interned.codes(schema.INTERNED_CATEGORY, events["category"])),
        )

    def _linked(self, slices: Ints, owner: Ints, arrows: Arrows) -> Iterator[tuple[Ints, Rows]]:
        """The arrows that begin and end at some slices."""
        place = _Places(slices, owner)
        for points in arrows.points(place.low, place.high):
            here, of = place.of(points["slice"].to_numpy())
            if here.size:
                number = schema.FLOW_END if points["is_end"][0] else schema.FLOW
                told = points["arrow"].to_numpy()[here] + (self._number << _ARROWS)
                yield of, rows(here.size, tag(number, FIXED), fixed(told))

    def _annotated(
        self, slices: Ints, owner: Ints, arguments: Arguments
    ) -> Iterator[tuple[Ints, Rows]]:
        """The arguments of some slices."""
        place = _Places(slices, owner)
        for key, values, ids in arguments.columns(place.low, place.high):
            here, of = place.of(ids.to_numpy().astype(np.int64))
            if here.size:
                name = self._interned.code(schema.INTERNED_ANNOTATION, key)
                told = values.gather(here)
                head = field(schema.ANNOTATION_NAME, name)
                if isinstance(told.dtype, pl.Array):
                    content = _listed(head, told)
                else:
                    content = rows(here.size, head, *self._value(told))
                yield of, wrapped(schema.ANNOTATION, content)

    def _value(self, values: pl.Series) -> "tuple[bytes, Cells]":
        if values.dtype.is_float():
            return tag(schema.ANNOTATION_DOUBLE, FIXED), doubles(values.to_numpy())
        if values.dtype.is_integer():
            return tag(schema.ANNOTATION_INT, VARINT), varints(values.to_numpy())
        codes = self._interned.codes(schema.INTERNED_TEXT, values)
        return tag(schema.ANNOTATION_TEXT, VARINT), varints(codes)

    def _instants(self) -> list[tuple[Ints, Rows]]:
        marks = self._trace.instants.select("time", "track", "name", "category")
        failed = self._trace.memory.filter("failed").select("time", "track")
        self.told.written["marks"] = marks.height + failed.height
        told = []
        for some in (
            marks.with_columns(pl.col("name", "category").cast(pl.String)),
            failed.with_columns(name=pl.lit(names.OUT_OF_MEMORY), category=pl.lit("memory")),
        ):
            if some.height:
                track = self.tracks.of_track[some["track"].to_numpy()]
                head = self._heads(np.full(some.height, schema.INSTANT), track)
                every = np.arange(some.height)
                events = spliced(some.height, [(every, head), (every, self._named(some))])
                told.append((self._clock(some["time"].to_numpy()), events))
        return told

    def _counters(self) -> Iterator[tuple[Ints, Rows]]:
        """The samples of counters, and what is allocated on each device."""
        count = 0
        for process, name, unit, samples in _sampled(self._trace):
            track = self.tracks.counter(process, self._prefix + name, unit)
            known = samples.filter(pl.col("value").is_not_null())
            kind = np.full(known.height, schema.COUNTER)
            head = self._heads(kind, np.full(known.height, track))
            value = known["value"].to_numpy()
            told: tuple[bytes, Cells] = (
                (tag(schema.COUNTER_VALUE, VARINT), varints(value))
                if known["value"].dtype.is_integer()
                else (tag(schema.DOUBLE_COUNTER_VALUE, FIXED), doubles(value))
            )
            every = np.arange(known.height)
            both = [(every, head), (every, rows(known.height, *told))]
            count += known.height
            yield self._clock(known["time"].to_numpy()), spliced(known.height, both)
            self.told.lacks("samples without a value", samples.height - known.height)
        self.told.written["samples"] = count


def _listed(head: bytes, values: pl.Series) -> Rows:
    """Lists of integers behind what each begins with."""
    every = np.arange(values.len())
    parts = [(every, rows(values.len(), head))]
    for column in np.atleast_2d(values.to_numpy()).T:
        one = rows(values.len(), tag(schema.ANNOTATION_INT, VARINT), varints(column))
        parts.append((every, wrapped(schema.ANNOTATION_LISTED, one)))
    return spliced(values.len(), parts)


_DEVICE_TYPES: Final = {0: "CPU", 1: "GPU", 6: "GPU", 12: "XPU", 13: "MPS", 19: "MTIA"}
"""As PyTorch numbers them."""


def _sampled(trace: Trace) -> Iterator[tuple[str | None, str, str, pl.DataFrame]]:
    """Process, name, unit and samples of each counter; these by time. Columns: time, value."""
    key = ["track", "name", "series"]
    for (track, name, series), samples in trace.counters.group_by(key, maintain_order=True):
        told = str(name) if name == series else f"{name} {series}"
        yield trace.tracks["process"][int(str(track))], told, "", samples.select("time", "value")
    for (kind, device), found in trace.memory.group_by(
        ["device_type", "device"], maintain_order=True
    ):
        place = _DEVICE_TYPES.get(kind, f"device type {kind}")
        where = place if kind == 0 else f"{place} {device}"
        process = trace.tracks["process"][found["track"][0]]
        for column in ("allocated", "reserved"):
            samples = found.select("time", value=column).drop_nulls()
            if samples.height:
                yield process, f"{where} memory {column}", "bytes", samples


class _Places:
    """Where slices are among the events that are written together."""

    def __init__(self, slices: Ints, owner: Ints) -> None:
        self.low = int(slices.min()) if slices.size else 0
        self.high = int(slices.max()) + 1 if slices.size else 0
        self._owner = np.full(self.high - self.low, -1, np.int64)
        self._owner[slices - self.low] = owner

    def of(self, asked: Ints) -> tuple[Ints, Ints]:
        """Which of some slices are there, and the events that they are."""
        owner = self._owner[asked - self.low]
        here = np.flatnonzero(owner >= 0)
        return here, owner[here]


class _Interned:
    """Texts that events refer to by number, of each kind from 1."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, int]] = {}
        self._new: list[tuple[int, int, str]] = []

    def code(self, kind: int, text: str) -> int:
        """The number of a text."""
        known = self._known.setdefault(kind, {})
        if text not in known:
            known[text] = len(known) + 1
            self._new.append((kind, known[text], text))
        return known[text]

    def codes(self, kind: int, texts: pl.Series) -> Ints:
        """The numbers of texts, each different one looked up once."""
        distinct = texts.cast(pl.String).unique(maintain_order=True)
        told = [self.code(kind, text) for text in distinct.to_list()]
        new = pl.Series(told, dtype=pl.Int64)
        return texts.cast(pl.String).replace_strict(distinct, new).to_numpy()

    def packets(self) -> Iterator[bytes]:
        """What is new since the last time, as fields of packets."""
        for low in range(0, len(self._new), _NAMES):
            told = [
                field(kind, field(1, number) + field(2, text))
                for kind, number, text in self._new[low : low + _NAMES]
            ]
            yield field(schema.FLAGS, schema.NEEDS_STATE) + field(schema.INTERNED, b"".join(told))
        self._new.clear()
