"""Work that overlaps on one stream, and devices of which nothing was recorded."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.health.checks import FEW, Check, examples, several
from selftime.analysis.health.recording import Recording
from selftime.devices import HOST_TYPES
from selftime.nesting import BLEED
from selftime.units import count_text, share_text

_SHOWN: Final = 8


def overlap(recording: Recording) -> Iterator[Check]:
    """Work that begins before earlier work of its stream has ended.

    Branches of a graph, and launches whose attributes let them begin early (programmatic dependent
    launch), may; what was launched plainly may not. Impossible durations are left out.
    """
    work = recording.work.select("id", "track", "start", "end", "launch")
    if recording.impossible.height:
        work = work.join(recording.impossible, on="id", how="anti")
    reach = pl.col("end").cum_max().shift(1).over("track")
    own = work.sort("track", "start", "end", "id").with_columns(reach=reach)
    found = own.filter(pl.col("start") < pl.col("reach"))
    if not found.height:
        return
    launch = recording.trace.slices["name"].gather(found["launch"])
    unique = launch.drop_nulls().unique().cast(pl.String).to_list()
    free = [name for name in unique if names.may_overlap(name)]
    legal = launch.cast(pl.String).is_in(free).fill_null(value=True)
    beyond = found["reach"] - found["start"] > BLEED
    odd = found.filter(~legal & beyond)
    share = odd.height / recording.work.height
    text = f"{count_text(found.height)} device slices begin before others of their stream end"
    if share > FEW:
        text = (
            f"{text}; {share_text(share)} of all do though they were launched plainly: "
            "their times are not right"
        )
        affects = "sums of kernel times, launch delays"
        yield Check("same_stream", "degraded", text, share, affects, examples(odd["id"]))
        return
    told = f", {count_text(odd.height)} of them launched plainly" if odd.height else ""
    text = f"{text}{told}: busy time counts them once"
    yield Check("same_stream", "good", text, float(found.height))


def devices(recording: Recording) -> Iterator[Check]:
    """Devices that memory was allocated on, and that have no work while others have."""
    memory = recording.trace.memory.filter(
        ~pl.col("device_type").is_in(HOST_TYPES) & (pl.col("device") >= 0)
    )
    used, seen = memory["device"].unique(), recording.work["device"].drop_nulls().unique()
    if seen.len() and recording.lost.height:
        yield from _described(recording, seen, used)
    if not seen.len() or used.len() <= seen.len():
        return  # numbers may be another runtime's: where as many are seen, none is missing
    missing = used.filter(~used.is_in(seen.implode())).sort()
    told = ", ".join(map(str, missing.to_list()))
    text = f"memory lies on {used.len()} devices, and work on {seen.len()} alone"
    text = f"{text}: nothing is recorded of device {told}" if missing.len() else text
    affects = "utilisation, idle, overlap of these devices"
    yield Check("devices", "degraded", text, float(used.len() - seen.len()), affects)


def _described(recording: Recording, seen: pl.Series, used: pl.Series) -> Iterator[Check]:
    """Devices that the header describes and that did no work, where a thread's launches are lost.

    A program may leave devices alone; one that launched from a thread and has no work of any of
    these launches did not.
    """
    described = recording.trace.devices["index"].drop_nulls().unique().sort()
    missing = described.filter(~described.is_in(seen.implode()))
    kept = recording.launches.filter(~pl.col("lost"))["track"].unique()
    bare = recording.lost.filter(~pl.col("track").is_in(kept.implode()))["track"].n_unique()
    if used.len() or not bare or not missing.len() or not seen.is_in(described.implode()).all():
        return  # where memory tells which devices are used, that is more
    told = ", ".join(map(str, missing.head(_SHOWN).to_list()))
    text = (
        f"all launches of {several(bare, 'thread')} have no device work, and nothing is recorded "
        f"of device {told}, which the header describes"
    )
    affects = "utilisation, idle, overlap of these devices"
    yield Check("devices", "degraded", text, float(missing.len()), affects)
