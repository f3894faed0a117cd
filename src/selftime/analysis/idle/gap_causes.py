"""Finds why a device was idle: what delayed the launch of the work that ended each idle gap.

Until the end of the launch the host is the cause: at each moment the most specific activity of the
thread that launched; where that thread did nothing (autograd's before a backward pass has begun),
of the main thread. After the launch the work was queued, and nothing on the host matters. If the
gap began within a wait of the host, the wait accounts for as much of the gap as the wait lasted,
because the launch would have been earlier by that time. The cause of a gap is the activity with the
largest part of it; of equal parts the more specific. A gap in which unrecorded work was launched
may not be a gap.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.health.recording_under_check import RecordingUnderCheck
from selftime.analysis.idle.host_activity import HOST_ACTIVITIES, HostActivityBySlice
from selftime.analysis.main_thread import main_thread
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.source_sites import SOURCE_SITE_COLUMNS, source_sites_of_slices
from selftime.array_types import Ints
from selftime.intervals import Intervals, covered_time_before, intersect, subtract, union
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

IDLE_GAP_CAUSES: Final = (*HOST_ACTIVITIES, "unknown", "other_stream", "queued", "unrecorded")
"""Why a device can be idle, from the most specific cause; `kernel_gap` is not among them."""

_CODE_OF_IDLE_GAP_CAUSE: Final = {cause: code for code, cause in enumerate(IDLE_GAP_CAUSES)}
_GAP_PIECES_SCHEMA: Final = {
    "gap": pl.Int64,
    "cause": pl.Int64,
    "length": pl.Int64,
    "when": pl.Int64,
    "thread": pl.Int64,
    "slice": pl.Int64,
}


def gaps_with_causes(trace: Trace, gaps: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """Returns the idle gaps in device work, each with its cause and the responsible source line.

    Added columns: cause; what (the name of the slice that the host was in), file, line, function,
    how (of that slice); launched (ns, when the call that ended the gap began), all null if unknown.
    """
    host = HostActivityBySlice(trace)
    told = _gaps_with_ending_launches(trace, gaps, host)
    main = main_thread(trace)
    pieces = [pl.DataFrame(schema=_GAP_PIECES_SCHEMA)]
    keys = ["device", "stream", "thread"]
    for (*_, thread), own in told.with_row_index("gap").group_by(keys, maintain_order=True):
        chain = [t for t in dict.fromkeys((thread, main)) if t is not None]
        pieces += _gap_pieces_before_launch(own, host, [int(t) for t in chain])
    pieces.append(_gap_pieces_after_launch(trace, told, work))
    chosen = _main_causes_of_gaps(pl.concat(pieces), told.height)
    return _gaps_with_causes_and_source_lines(
        trace, told, host, _causes_with_unrecorded_work(trace, told, chosen)
    )


def _causes_with_unrecorded_work(
    trace: Trace, gaps: pl.DataFrame, causes: pl.DataFrame
) -> pl.DataFrame:
    """Sets the cause to `unrecorded` for idle gaps with a launch whose device work is missing."""
    lost = np.sort(RecordingUnderCheck(trace).lost_launches["start"].to_numpy())
    if not lost.size:
        return causes
    first = np.searchsorted(lost, gaps["start"].to_numpy(), side="left")
    doubted = np.searchsorted(lost, gaps["end"].to_numpy(), side="left") > first
    cause = np.where(doubted, _CODE_OF_IDLE_GAP_CAUSE["unrecorded"], causes["cause"].to_numpy())
    return causes.with_columns(cause=pl.Series(cause))


def _gaps_with_ending_launches(
    trace: Trace, gaps: pl.DataFrame, host: HostActivityBySlice
) -> pl.DataFrame:
    """Adds begin, end (`until`) and thread of the call that launched the work ending each gap."""
    slices = trace.slices
    launch = slices["launch"].gather(gaps["after"])
    call = launch.cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    known = call != NO_SLICE
    end, start = gaps["end"].to_numpy(), gaps["start"].to_numpy()
    until, thread = end.copy(), np.zeros(call.size, np.int64)
    until[known] = np.clip(host.end[call[known]], start[known], end[known])
    thread[known] = host.thread[call[known]]
    return gaps.with_columns(
        launched=slices["start"].gather(launch),
        until=until,
        thread=pl.Series(thread).set(pl.Series(~known), None),
    )


def _gap_pieces_before_launch(
    gaps: pl.DataFrame, host: HostActivityBySlice, threads: list[int]
) -> list[pl.DataFrame]:
    """Returns the intervals of idle gaps before their ending launch, by what the host then did."""
    start, until = gaps["start"].to_numpy(), gaps["until"].to_numpy()
    left = union(start, until)
    found = []
    python = [(thread, "python") for thread in threads]
    order = [(thread, activity) for thread in threads for activity in HOST_ACTIVITIES[:-1]] + python
    for thread, activity in order:
        times = host.times_in_activity(thread, activity)
        if activity == "sync":
            held, pieces = _gap_parts_delayed_by_host_wait(gaps, host, thread)
            found.append(
                _gap_pieces_with_cause(gaps, intersect(left, held), activity, thread, pieces)
            )
            left = subtract(left, held)
        taken = _intersect_intervals(left, times)
        if taken.starts.size:
            found.append(_gap_pieces_with_cause(gaps, taken, activity, thread))
            left = subtract(left, taken)
    found.append(_gap_pieces_with_cause(gaps, left, "unknown", threads[0] if threads else NO_SLICE))
    return found


def _intersect_intervals(intervals: Intervals, other_intervals: Intervals) -> Intervals:
    """Returns the intersection of two sets of intervals; loops over the smaller set."""
    return intersect(*sorted((intervals, other_intervals), key=lambda one: one.starts.size))


def _gap_parts_delayed_by_host_wait(
    gaps: pl.DataFrame, host: HostActivityBySlice, thread: int
) -> tuple[Intervals, Ints]:
    """Returns the intervals of idle gaps that host waits caused, and the wait of each interval."""
    start, until = gaps["start"].to_numpy(), gaps["until"].to_numpy()
    code = np.full(start.size, _CODE_OF_IDLE_GAP_CAUSE["sync"])
    at = host.innermost_slices_of_activity(thread, code, start)
    waited = np.where(at == NO_SLICE, 0, host.end[at] - host.start[at])
    end = np.minimum(until, start + waited)
    real = end > start
    return Intervals(start[real], end[real]), at


def _gap_pieces_with_cause(
    gaps: pl.DataFrame, times: Intervals, cause: str, thread: int, slices: Ints | None = None
) -> pl.DataFrame:
    at = np.searchsorted(gaps["start"].to_numpy(), times.starts, side="right") - 1
    length = times.ends - times.starts
    columns = {
        "gap": gaps["gap"].to_numpy()[at],
        "cause": np.full(at.size, _CODE_OF_IDLE_GAP_CAUSE[cause]),
        "length": length,
        "when": times.starts + length // 2,
        "thread": np.full(at.size, thread),
        "slice": np.full(at.size, NO_SLICE) if slices is None else slices[at],
    }
    return pl.DataFrame(columns, schema=_GAP_PIECES_SCHEMA)


def _gap_pieces_after_launch(
    trace: Trace, gaps_with_launches: pl.DataFrame, work: pl.DataFrame
) -> pl.DataFrame:
    """Returns the part of each idle gap that follows the launch of the work that ended the gap.

    The work waited for another stream if its own stream had to wait for an event since its last
    work, and other streams were busy for most of the time.
    """
    gaps = gaps_with_launches.with_row_index("gap").filter(pl.col("end") > pl.col("until"))
    length = (gaps["end"] - gaps["until"]).to_numpy()
    elsewhere = _busy_time_of_other_streams(gaps, work) * 2 > length
    waits = _has_stream_wait_before_launch(trace, gaps, work)
    cause = np.where(
        elsewhere & waits,
        _CODE_OF_IDLE_GAP_CAUSE["other_stream"],
        _CODE_OF_IDLE_GAP_CAUSE["queued"],
    )
    columns = {
        "gap": gaps["gap"],
        "cause": cause,
        "length": length,
        "when": gaps["until"],
        "thread": np.full(length.size, NO_SLICE),
        "slice": np.full(length.size, NO_SLICE),
    }
    return pl.DataFrame(columns).select(
        pl.col(n).cast(kind) for n, kind in _GAP_PIECES_SCHEMA.items()
    )


def _busy_time_of_other_streams(gaps: pl.DataFrame, work: pl.DataFrame) -> Ints:
    """Returns how long (ns) other streams worked while the work that ended each gap was queued."""
    busy = np.zeros(gaps.height, np.int64)
    numbered = gaps.with_row_index("at")
    for (device, stream), own in numbered.group_by("device", "stream"):
        same = pl.col("device").eq_missing(pl.lit(device))
        if stream is not None:
            same &= pl.col("stream").eq_missing(pl.lit(stream))
        others = covered_time(work.filter(~same))
        low, high = own["until"].to_numpy(), own["end"].to_numpy()
        busy[own["at"].to_numpy()] = covered_time_before(others, high) - covered_time_before(
            others, low
        )
    return busy


def _has_stream_wait_before_launch(
    trace: Trace, gaps: pl.DataFrame, work: pl.DataFrame
) -> NDArray[np.bool_]:
    """Flags idle gaps before whose ending launch a call made the stream wait for an event."""
    found = np.zeros(gaps.height, bool)
    calls = filter_by_name(slices_on(trace, "host"), names.is_stream_wait).sort("start")
    if not calls.height:
        return found
    queue = work.filter(pl.col("launched").is_not_null()).sort("device", "stream", "launched")
    last = queue.select("id", last=pl.col("launched").shift(1).over("device", "stream"))
    asked = gaps.select("after", "launched", "thread").join(
        last, left_on="after", right_on="id", how="left", maintain_order="left"
    )
    thread = trace.tracks["thread"].gather(calls["track"]).cast(pl.Int64)
    for (number,), own in asked.with_row_index("at").group_by("thread"):
        mine = calls.filter(thread == number)["start"].to_numpy()
        upto = np.searchsorted(mine, own["launched"].fill_null(0).to_numpy())
        since = np.searchsorted(mine, own["last"].fill_null(0).to_numpy())
        found[own["at"].to_numpy()] = upto > since
    return found


def _main_causes_of_gaps(pieces: pl.DataFrame, gap_count: int) -> pl.DataFrame:
    """Returns each idle gap's cause with the most time, and the longest interval of that cause."""
    parts = pieces.sort("length", descending=True).group_by("gap", "cause", maintain_order=True)
    largest = (
        parts.agg(pl.col("length").sum(), pl.col("when", "thread", "slice").first())
        .sort("length", "cause", descending=[True, False])
        .unique("gap", keep="first", maintain_order=True)
    )
    every = pl.DataFrame({"gap": np.arange(gap_count)})
    return every.join(largest, on="gap", how="left", maintain_order="left")


def _gaps_with_causes_and_source_lines(
    trace: Trace, gaps: pl.DataFrame, host: HostActivityBySlice, causes: pl.DataFrame
) -> pl.DataFrame:
    """Returns idle gaps with their cause, and the name and line of the slice that shows it."""
    code, when = causes["cause"].to_numpy(), causes["when"].to_numpy()
    thread, shown = causes["thread"].to_numpy(), causes["slice"].to_numpy().copy()
    frame = np.full(shown.size, NO_SLICE, np.int64)
    for number in np.unique(thread[thread != NO_SLICE]).tolist():
        mine = np.flatnonzero((thread == number) & (code < len(HOST_ACTIVITIES)))
        frame[mine] = host.innermost_frames_at(number, when[mine])
        mine = mine[shown[mine] == NO_SLICE]
        shown[mine] = host.innermost_slices_of_activity(number, code[mine], when[mine])
    what, around = _slice_ids_or_null(shown), _slice_ids_or_null(frame)
    lines = source_sites_of_slices(trace, what)
    if around.null_count() < around.len():
        untold, framed = lines["file"].is_null(), source_sites_of_slices(trace, around)
        lines = lines.with_columns(
            framed[name].zip_with(untold, lines[name]) for name in SOURCE_SITE_COLUMNS
        )
    return gaps.with_columns(
        *(lines[name] for name in SOURCE_SITE_COLUMNS),
        cause=pl.Series([IDLE_GAP_CAUSES[c] for c in code.tolist()], dtype=pl.String),
        what=trace.slices["name"].gather(what),
    )


def _slice_ids_or_null(slice_indexes: Ints) -> pl.Series:
    """Returns slice indexes as a series of ids, with null in place of -1."""
    shown = pl.Series(slice_indexes, dtype=pl.Int64)
    return shown.set(shown == NO_SLICE, None).cast(pl.UInt32)
