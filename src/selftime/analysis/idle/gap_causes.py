"""Why a device had nothing to do: what kept the host from launching the work that ended each gap.

Up to the end of the launch the host is to blame: at each moment the thread that launched, with the
most specific of its activities; where it did nothing (autograd's thread before a backward pass has
begun), the main thread. After the launch the work was queued, and nothing on the host
matters. A wait of the host that the gap began in holds up everything for as long as it lasted: so
much earlier would the launch have been without it. The cause of a gap is what holds the largest
part of it; of equal parts the more specific. A gap in which work was launched that was not recorded
may have been none.
"""

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.analysis.health.recording import Recording
from selftime.analysis.idle.host_activity import ACTIVITIES, Host
from selftime.analysis.main_thread import main_thread
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.arrays import Ints
from selftime.intervals import Intervals, before, intersect, subtract, union
from selftime.nesting import NONE
from selftime.trace import Trace

CAUSES: Final = (*ACTIVITIES, "unknown", "other_stream", "queued", "unrecorded")
"""What an idle device can be waiting for, most specific first; `kernel_gap` is beside them."""

_CODE: Final = {cause: code for code, cause in enumerate(CAUSES)}
_PIECES: Final = {
    "gap": pl.Int64,
    "cause": pl.Int64,
    "length": pl.Int64,
    "when": pl.Int64,
    "thread": pl.Int64,
    "slice": pl.Int64,
}


def gaps_with_causes(trace: Trace, gaps: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """The gaps with their causes.

    Added columns: cause; what (the name of the slice that the host was in), file, line, function,
    how (of that slice); launched (ns, when the call that ended the gap began), all null if unknown.
    """
    host = Host(trace)
    told = _launches(trace, gaps, host)
    main = main_thread(trace)
    pieces = [pl.DataFrame(schema=_PIECES)]
    keys = ["device", "stream", "thread"]
    for (*_, thread), own in told.with_row_index("gap").group_by(keys, maintain_order=True):
        chain = [t for t in dict.fromkeys((thread, main)) if t is not None]
        pieces += _on_host(own, host, [int(t) for t in chain])
    pieces.append(_queued(trace, told, work))
    chosen = _largest(pl.concat(pieces), told.height)
    return _with_sites(trace, told, host, _but_for_losses(trace, told, chosen))


def _but_for_losses(trace: Trace, told: pl.DataFrame, chosen: pl.DataFrame) -> pl.DataFrame:
    """The causes, but for gaps in which work was launched that is not in the recording."""
    lost = np.sort(Recording(trace).lost["start"].to_numpy())
    if not lost.size:
        return chosen
    first = np.searchsorted(lost, told["start"].to_numpy(), side="left")
    doubted = np.searchsorted(lost, told["end"].to_numpy(), side="left") > first
    cause = np.where(doubted, _CODE["unrecorded"], chosen["cause"].to_numpy())
    return chosen.with_columns(cause=pl.Series(cause))


def _launches(trace: Trace, gaps: pl.DataFrame, host: Host) -> pl.DataFrame:
    """Gaps with launched, thread, and until: where the host's part of the gap ends."""
    slices = trace.slices
    launch = slices["launch"].gather(gaps["after"])
    call = launch.cast(pl.Int64).fill_null(NONE).to_numpy()
    known = call != NONE
    end, start = gaps["end"].to_numpy(), gaps["start"].to_numpy()
    until, thread = end.copy(), np.zeros(call.size, np.int64)
    until[known] = np.clip(host.end[call[known]], start[known], end[known])
    thread[known] = host.thread[call[known]]
    return gaps.with_columns(
        launched=slices["start"].gather(launch),
        until=until,
        thread=pl.Series(thread).set(pl.Series(~known), None),
    )


def _on_host(own: pl.DataFrame, host: Host, chain: list[int]) -> list[pl.DataFrame]:
    """Pieces of the host's part of gaps that are in order and apart, each with its activity."""
    start, until = own["start"].to_numpy(), own["until"].to_numpy()
    left = union(start, until)
    found = []
    python = [(thread, "python") for thread in chain]
    order = [(thread, activity) for thread in chain for activity in ACTIVITIES[:-1]] + python
    for thread, activity in order:
        times = host.times(thread, activity)
        if activity == "sync":
            held, pieces = _held_up(own, host, thread)
            found.append(_pieces(own, intersect(left, held), activity, thread, pieces))
            left = subtract(left, held)
        taken = _intersect(left, times)
        if taken.starts.size:
            found.append(_pieces(own, taken, activity, thread))
            left = subtract(left, taken)
    found.append(_pieces(own, left, "unknown", chain[0] if chain else NONE))
    return found


def _intersect(these: Intervals, those: Intervals) -> Intervals:
    """The time in both sets; the smaller is gone through."""
    return intersect(*sorted((these, those), key=lambda one: one.starts.size))


def _held_up(own: pl.DataFrame, host: Host, thread: int) -> tuple[Intervals, Ints]:
    """For gaps that began within a wait: as long from there as the wait lasted; and its slice."""
    start, until = own["start"].to_numpy(), own["until"].to_numpy()
    code = np.full(start.size, _CODE["sync"])
    at = host.doing(thread, code, start)
    waited = np.where(at == NONE, 0, host.end[at] - host.start[at])
    end = np.minimum(until, start + waited)
    real = end > start
    return Intervals(start[real], end[real]), at


def _pieces(
    own: pl.DataFrame, times: Intervals, cause: str, thread: int, slices: Ints | None = None
) -> pl.DataFrame:
    at = np.searchsorted(own["start"].to_numpy(), times.starts, side="right") - 1
    length = times.ends - times.starts
    columns = {
        "gap": own["gap"].to_numpy()[at],
        "cause": np.full(at.size, _CODE[cause]),
        "length": length,
        "when": times.starts + length // 2,
        "thread": np.full(at.size, thread),
        "slice": np.full(at.size, NONE) if slices is None else slices[at],
    }
    return pl.DataFrame(columns, schema=_PIECES)


def _queued(trace: Trace, told: pl.DataFrame, work: pl.DataFrame) -> pl.DataFrame:
    """The part of each gap in which the work that ended it was launched already.

    It waited for another stream if its own was made to wait for an event since its last work, and
    that other stream was busy for most of the time.
    """
    gaps = told.with_row_index("gap").filter(pl.col("end") > pl.col("until"))
    length = (gaps["end"] - gaps["until"]).to_numpy()
    elsewhere = _busy_elsewhere(gaps, work) * 2 > length
    waits = _waits_between(trace, gaps, work)
    cause = np.where(elsewhere & waits, _CODE["other_stream"], _CODE["queued"])
    columns = {
        "gap": gaps["gap"],
        "cause": cause,
        "length": length,
        "when": gaps["until"],
        "thread": np.full(length.size, NONE),
        "slice": np.full(length.size, NONE),
    }
    return pl.DataFrame(columns).select(pl.col(n).cast(kind) for n, kind in _PIECES.items())


def _busy_elsewhere(gaps: pl.DataFrame, work: pl.DataFrame) -> Ints:
    """How long other streams, of any device, worked while the work that ends a gap was queued."""
    busy = np.zeros(gaps.height, np.int64)
    numbered = gaps.with_row_index("at")
    for (device, stream), own in numbered.group_by("device", "stream"):
        same = pl.col("device").eq_missing(pl.lit(device))
        if stream is not None:
            same &= pl.col("stream").eq_missing(pl.lit(stream))
        others = covered_time(work.filter(~same))
        low, high = own["until"].to_numpy(), own["end"].to_numpy()
        busy[own["at"].to_numpy()] = before(others, high) - before(others, low)
    return busy


def _waits_between(trace: Trace, gaps: pl.DataFrame, work: pl.DataFrame) -> NDArray[np.bool_]:
    """Whether the thread made a stream wait for an event, after the last launch to the stream."""
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


def _largest(pieces: pl.DataFrame, count: int) -> pl.DataFrame:
    """For each gap, in order: the cause with the largest part, and the longest piece of it."""
    parts = pieces.sort("length", descending=True).group_by("gap", "cause", maintain_order=True)
    largest = (
        parts.agg(pl.col("length").sum(), pl.col("when", "thread", "slice").first())
        .sort("length", "cause", descending=[True, False])
        .unique("gap", keep="first", maintain_order=True)
    )
    every = pl.DataFrame({"gap": np.arange(count)})
    return every.join(largest, on="gap", how="left", maintain_order="left")


def _with_sites(trace: Trace, told: pl.DataFrame, host: Host, chosen: pl.DataFrame) -> pl.DataFrame:
    """Add the cause in words, the slice that shows it, and its line."""
    code, when = chosen["cause"].to_numpy(), chosen["when"].to_numpy()
    thread, shown = chosen["thread"].to_numpy(), chosen["slice"].to_numpy().copy()
    frame = np.full(shown.size, NONE, np.int64)
    for number in np.unique(thread[thread != NONE]).tolist():
        mine = np.flatnonzero((thread == number) & (code < len(ACTIVITIES)))
        frame[mine] = host.frame(number, when[mine])
        mine = mine[shown[mine] == NONE]
        shown[mine] = host.doing(number, code[mine], when[mine])
    what, around = _ids(shown), _ids(frame)
    lines = sites(trace, what)
    if around.null_count() < around.len():
        untold, framed = lines["file"].is_null(), sites(trace, around)
        lines = lines.with_columns(framed[name].zip_with(untold, lines[name]) for name in SITE)
    return told.with_columns(
        *(lines[name] for name in SITE),
        cause=pl.Series([CAUSES[c] for c in code.tolist()], dtype=pl.String),
        what=trace.slices["name"].gather(what),
    )


def _ids(slices: Ints) -> pl.Series:
    """Slices as ids; null for none."""
    shown = pl.Series(slices, dtype=pl.Int64)
    return shown.set(shown == NONE, None).cast(pl.UInt32)
