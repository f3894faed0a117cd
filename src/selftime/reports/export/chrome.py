"""Exports a trace to the Chrome trace-event format in Kineto's layout, which selftime can read.

Format: "Trace Event Format", JSON Object Format. Times are decimal microseconds without rounding,
from the begin of the day, as the key `baseTimeNanoseconds` says: so viewers can hold them exactly.
Slices that overlap others of their thread are moved to additional threads; reading undoes this.
The exported file has the same slices and links when read again, and so gives the same views.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import polars as pl

from selftime import names
from selftime.reports.export.chrome_args import (
    SliceArguments,
    decimal_microseconds_expression,
    encode_json_strings,
    join_json_members,
    json_member_expression,
)
from selftime.reports.export.export_format import (
    Export,
    ExportOptions,
    ExportResult,
    SliceArrows,
    slice_batches,
    slice_end_times,
    slice_names_with_overloads,
)
from selftime.reports.trace_file import JsonTraceWriter, open_file_writer
from selftime.rewrite.added_threads import AddedThreads, number_if_integer
from selftime.rewrite.event_times import (
    ADDED_BASE_TIME_JSON,
    ADDED_BASE_TIME_KEY,
    BASE_TIME_KEY,
    base_time_of_written_file,
)
from selftime.trace import Trace

_JSON_EVENT_SEPARATOR: Final = ",\n  "
_TOP_LEVEL_KEYS_NOT_FROM_METADATA: Final = ("traceEvents", "selftime_tracks")
"""Top-level JSON keys that the export generates; all other keys come from the trace's metadata."""
_SORT_INDEX_BY_TRACK_KIND: Final = {
    "host": 0,
    "python": 0,
    "other": 1,
    "device": 5_000_000,
    "profiler": 0x20000000,
}
"""Sort index that Kineto gives a process, by the kind of its tracks; the first matching kind
decides."""
_TEXT_OF_UNKNOWN_PROCESS_OR_THREAD_ID: Final = "?"
"""Text that stands for an unknown process or thread id in the trace's table of tracks."""


def write(trace: Trace, output: Path, options: ExportOptions) -> ExportResult:
    """Writes a trace to a file in the trace-event format, as Kineto does.

    Raises:
        UsageError: `output` is the trace's own file, a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    result = ExportResult()
    with open_file_writer(output, trace.source) as write_bytes:
        file = JsonTraceWriter(write_bytes)
        time_offset = _write_base_time(trace, file)
        for key, value in trace.metadata.items():
            if key not in _TOP_LEVEL_KEYS_NOT_FROM_METADATA:
                file.receive_key(key, _encode_as_json(value))
        added_threads = AddedThreads(
            trace,
            np.ones(trace.slices.height, bool),
            trace.slices["start"].to_numpy(),
            slice_end_times(trace.slices),
            for_json=True,
        )
        _write_process_and_thread_names(trace, file, added_threads)
        result.written["slices"] = trace.slices.height
        result.written["arrows"] = _write_slices_and_arrows(
            trace, file, added_threads, (time_offset, options)
        )
        result.written["allocations"] = _write_allocation_events(trace, file, time_offset)
        result.written["marks"] = _write_instant_events(trace, file, time_offset)
        result.written["samples"] = _write_counter_events(trace, file, time_offset)
        file.write_end()
    result.size = write_bytes.size
    result.record_left_out("stacks of allocations", trace.memory["call_stack"].drop_nulls().len())
    return result


CHROME: Final = Export(
    "chrome", "Perfetto, chrome://tracing, TensorBoard and selftime itself", ".json.gz", write
)


def _write_base_time(trace: Trace, file: JsonTraceWriter) -> int:
    """Writes the time from which the file counts; returns the ns to add to a time of the trace.

    A repeated key is ignored, so that what is written here stands for the trace's own.
    """
    if trace.origin is None:
        return 0
    base = base_time_of_written_file(trace.origin)
    if not isinstance(trace.metadata.get(BASE_TIME_KEY), int):
        file.receive_key(ADDED_BASE_TIME_KEY, ADDED_BASE_TIME_JSON)
    file.receive_key(BASE_TIME_KEY, b"%d" % base)
    return trace.origin - base


def _encode_as_json(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=str)


def _write_json_events(file: JsonTraceWriter, events: pl.Series) -> int:
    """Writes events given as JSON texts, and returns their number."""
    if events.len():
        file.receive_events(_JSON_EVENT_SEPARATOR.join(events.to_list()).encode(), events.len())
    return events.len()


def _write_process_and_thread_names(
    trace: Trace, file: JsonTraceWriter, added_threads: AddedThreads
) -> None:
    """Writes the names and the sort order of processes and threads."""
    events = []
    for (pid, tid), kinds, tracks in _ids_kinds_and_tracks_by_thread(trace):
        label_keys = {
            "pid": number_if_integer(pid),
            "tid": number_if_integer(tid),
            "ts": 0,
            "ph": "M",
        }
        first_track = tracks.row(0, named=True)
        if first_track["process_name"] is not None:
            process = {**label_keys, "tid": 0, "args": {"name": first_track["process_name"]}}
            events.append({"name": "process_name", **process})
        order = next(
            (index for kind, index in _SORT_INDEX_BY_TRACK_KIND.items() if kind in kinds),
            _SORT_INDEX_BY_TRACK_KIND["device"],
        )
        device = 0 if first_track["device"] is None else first_track["device"]
        sort = {**label_keys, "tid": 0, "args": {"sort_index": order + device}}
        events.append({"name": "process_sort_index", **sort})
        if first_track["name"] is not None:
            label = {"name": "thread_name", **label_keys, "args": {"name": first_track["name"]}}
            added_threads.note_thread_label((pid, tid), "thread_name", _encode_as_json(label))
            events.append(label)
    texts = [_encode_as_json(event) for event in events]
    texts = [*dict.fromkeys(texts), *added_threads.thread_label_events()]
    file.receive_events(_JSON_EVENT_SEPARATOR.encode().join(texts), len(texts))
    file.receive_key("selftime_tracks", added_threads.added_tracks_json())


def _ids_kinds_and_tracks_by_thread(
    trace: Trace,
) -> Iterator[tuple[tuple[str, str], set[str], pl.DataFrame]]:
    """Yields for each thread ((process id, thread id), kinds of its tracks, its tracks)."""
    ordered = trace.tracks.sort("thread", pl.col("device").is_null(), "id", maintain_order=True)
    for _, tracks in ordered.group_by("thread", maintain_order=True):
        yield (tracks["process"][0], tracks["tid"][0]), {*tracks["kind"]}, tracks


def _pid_and_tid_json_of_tracks(trace: Trace) -> pl.DataFrame:
    """Returns each track's process id and thread id as JSON text `"pid":...,"tid":...`."""
    process, thread = (
        pl.Series(
            [_process_or_thread_id_as_json(text) for text in trace.tracks[name]], dtype=pl.String
        )
        for name in ("process", "tid")
    )
    table = pl.DataFrame({"process": process, "tid": thread})
    return table.select(
        where=join_json_members(
            [
                json_member_expression("pid", pl.col("process")),
                json_member_expression("tid", pl.col("tid")),
            ]
        ),
        process=json_member_expression("pid", pl.col("process")),
    )


def _process_or_thread_id_as_json(text: str) -> str | None:
    """Returns a process or thread id as JSON; None if it is unknown."""
    if text == _TEXT_OF_UNKNOWN_PROCESS_OR_THREAD_ID:
        return None
    if text == f"'{_TEXT_OF_UNKNOWN_PROCESS_OR_THREAD_ID}'":
        text = _TEXT_OF_UNKNOWN_PROCESS_OR_THREAD_ID
    return msgspec.json.encode(number_if_integer(text)).decode()


def _write_slices_and_arrows(
    trace: Trace,
    file: JsonTraceWriter,
    added_threads: AddedThreads,
    offset_and_options: tuple[int, ExportOptions],
) -> int:
    """Writes all slices and the flow arrows between them; returns the number of arrows."""
    time_offset, options = offset_and_options
    track_ids, arguments = _pid_and_tid_json_of_tracks(trace), SliceArguments(trace)
    arrows, arrow_count = SliceArrows(trace), 0
    names = slice_names_with_overloads(trace)
    for first, end in slice_batches(trace.slices.height):
        batch = trace.slices.slice(first, end - first)
        table = pl.DataFrame(
            {
                "name": encode_json_strings(names.slice(first, end - first)),
                "category": encode_json_strings(batch["category"]),
                "where": _pid_and_tid_json_of_slices(batch, track_ids, added_threads, first),
                "ts": batch["start"] + time_offset,
                "dur": batch["duration"],
                "args": arguments.arguments_as_json(first, end),
            }
        )
        _write_json_events(file, table.select(_slice_json_expression()).to_series())
        arrow_ends = pl.concat(list(arrows.arrow_endpoints(first, end)))
        end_slices = table.select("where", "ts")[(arrow_ends["slice"] - first).to_list()]
        arrow_count += int(arrow_ends["is_end"].sum())
        _write_json_events(
            file,
            pl.concat([arrow_ends, end_slices], how="horizontal")
            .select(_arrow_end_json_expression())
            .to_series(),
        )
        options.progress(end, trace.slices.height)
    return arrow_count


def _pid_and_tid_json_of_slices(
    slices: pl.DataFrame, track_ids: pl.DataFrame, added_threads: AddedThreads, first_slice: int
) -> pl.Series:
    """Returns `"pid":...,"tid":...` for slices; partly overlapping slices get different threads."""
    id_members = track_ids["where"].gather(slices["track"])
    moved = np.flatnonzero(added_threads.lane[first_slice : first_slice + slices.height])
    if not moved.size:
        return id_members
    process = track_ids["process"].gather(slices["track"].gather(moved))
    threads = pl.Series(
        [f'"tid":{added_threads.added_thread_number(first_slice + at)}' for at in moved.tolist()]
    )
    moved_ids = pl.DataFrame({"process": process, "tid": threads})
    return id_members.scatter(
        moved, moved_ids.select(join_json_members([pl.col("process"), pl.col("tid")])).to_series()
    )


def _slice_json_expression() -> pl.Expr:
    """Returns a Polars expression for the JSON event of a slice."""
    parts = [
        json_member_expression("name", pl.col("name")),
        json_member_expression("cat", pl.col("category")),
        pl.col("where"),
        json_member_expression("ts", decimal_microseconds_expression(pl.col("ts"))),
        json_member_expression("dur", decimal_microseconds_expression(pl.col("dur"))),
        pl.concat_str(pl.lit('"args":{'), pl.col("args"), pl.lit("}")),
    ]
    return pl.concat_str(pl.lit('{"ph":"X",'), join_json_members(parts), pl.lit("}"))


def _arrow_end_json_expression() -> pl.Expr:
    """Returns a Polars expression for the JSON event at either end of a flow arrow."""
    kind = pl.when("is_end").then(pl.lit('{"ph":"f","bp":"e",')).otherwise(pl.lit('{"ph":"s",'))
    parts = [
        json_member_expression("cat", pl.concat_str(pl.lit('"'), pl.col("kind"), pl.lit('"'))),
        json_member_expression("name", pl.concat_str(pl.lit('"'), pl.col("kind"), pl.lit('"'))),
        json_member_expression("id", pl.col("arrow").cast(pl.String)),
        pl.col("where"),
        json_member_expression("ts", decimal_microseconds_expression(pl.col("ts"))),
    ]
    return pl.concat_str(kind, join_json_members(parts), pl.lit("}"))


_ALLOCATION_ARGUMENT_NAMES: Final = (
    ("address", "Addr"),
    ("bytes", "Bytes"),
    ("allocated", "Total Allocated"),
    ("reserved", "Total Reserved"),
    ("device_type", "Device Type"),
    ("device", "Device Id"),
)
"""Pairs of a column of the trace's memory table and Kineto's name of this argument."""


def _write_allocation_events(trace: Trace, file: JsonTraceWriter, time_offset: int) -> int:
    """Writes allocations and frees as instant events, and returns their number."""
    memory = trace.memory
    track_ids = _pid_and_tid_json_of_tracks(trace)
    for first, end in slice_batches(memory.height):
        batch = memory.slice(first, end - first)
        args = join_json_members(
            [
                json_member_expression(key, pl.col(column).cast(pl.String))
                for column, key in _ALLOCATION_ARGUMENT_NAMES
            ]
        )
        name = (
            pl.when("failed")
            .then(pl.lit(names.OUT_OF_MEMORY_EVENT))
            .otherwise(pl.lit(names.ALLOCATION_EVENT))
        )
        parts = [
            pl.concat_str(pl.lit('"name":"'), name, pl.lit('"')),
            pl.col("where"),
            json_member_expression(
                "ts", decimal_microseconds_expression(pl.col("time") + time_offset)
            ),
            pl.concat_str(pl.lit('"args":{'), args, pl.lit("}")),
        ]
        head = pl.lit('{"ph":"i","s":"t","cat":"cpu_instant_event",')
        events = batch.with_columns(where=track_ids["where"].gather(batch["track"]))
        _write_json_events(
            file,
            events.select(pl.concat_str(head, join_json_members(parts), pl.lit("}"))).to_series(),
        )
    return memory.height


def _write_instant_events(trace: Trace, file: JsonTraceWriter, time_offset: int) -> int:
    """Writes the trace's instant events, and returns their number."""
    instants = trace.instants
    events = instants.with_columns(
        encode_json_strings(instants["name"]).alias("name"),
        encode_json_strings(instants["category"]).alias("category"),
        _pid_and_tid_json_of_tracks(trace)["where"].gather(instants["track"]).alias("where"),
    )
    parts = [
        json_member_expression("name", pl.col("name")),
        json_member_expression("cat", pl.col("category")),
        pl.col("where"),
        json_member_expression("ts", decimal_microseconds_expression(pl.col("time") + time_offset)),
    ]
    text = pl.concat_str(pl.lit('{"ph":"i","s":"t",'), join_json_members(parts), pl.lit("}"))
    return _write_json_events(file, events.select(text).to_series())


def _write_counter_events(trace: Trace, file: JsonTraceWriter, time_offset: int) -> int:
    """Writes the values of counters, an event per counter and time; returns the number of values.

    A series that is repeated at the same time gets a further event.
    """
    samples = trace.counters
    key = ["time", "track", "name"]
    value = pl.col("value")
    value_json = (
        pl.when(value.is_finite())
        .then(value.cast(pl.String))
        .otherwise(
            pl.when(value.is_null())
            .then(pl.lit("null"))
            .otherwise(pl.concat_str(pl.lit('"'), value.cast(pl.String), pl.lit('"')))
        )
    )
    series = samples.with_columns(
        encode_json_strings(samples["series"]).alias("series"),
        encode_json_strings(samples["name"]).alias("name"),
        again=pl.int_range(pl.len()).over(*key, "series") if samples.height else pl.lit(0),
    ).with_columns(sample=pl.concat_str(pl.col("series"), pl.lit(":"), value_json))
    grouped = series.group_by([*key, "again"], maintain_order=True).agg(
        pl.col("sample").str.join(",")
    )
    parts = [
        json_member_expression("name", pl.col("name")),
        pl.col("where"),
        json_member_expression("ts", decimal_microseconds_expression(pl.col("time") + time_offset)),
        pl.concat_str(pl.lit('"args":{'), pl.col("sample"), pl.lit("}")),
    ]
    events = grouped.with_columns(
        where=_pid_and_tid_json_of_tracks(trace)["where"].gather(grouped["track"])
    )
    _write_json_events(file, events.select(_counter_json_expression(parts)).to_series())
    return samples.height


def _counter_json_expression(members: list[pl.Expr]) -> pl.Expr:
    """Returns a Polars expression for the JSON event of a counter with the given members."""
    return pl.concat_str(pl.lit('{"ph":"C",'), join_json_members(members), pl.lit("}"))
