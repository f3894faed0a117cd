"""Launches without device work, and device work without a launch."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.health.checks import FEW, Check, Verdict, examples, graded, several, worst
from selftime.analysis.health.recording import Recording
from selftime.devices import HOST_TYPES
from selftime.nesting import ROUNDING_NS
from selftime.trace import Trace
from selftime.units import count_text, share_text, time_text

_SHOWN: Final = 8

_FIGURES: Final = "idle, overlap, kernels, device time of steps, operators and lines"
_CHANCE: Final = 3
"""So many launches that are lost together, where few are lost, are not lost by chance."""
_HARDLY_BY_CHANCE: Final = 1e-6
"""One in a million: a trace has some hundred operators, and few traces are read a day."""
_MUCH_BEFORE: Final = 0.5
"""Device work launched before the recording, beyond this share, leaves little to explain."""


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
    beyond = found["reach"] - found["start"] > ROUNDING_NS
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


def launches(recording: Recording) -> Iterator[Check]:
    """How many launches have no device work, by kind of launch."""
    every, lost = recording.launches, recording.lost
    if not every.height:
        return
    if not recording.device.height:
        text = (
            f"{count_text(every.height)} launches and no device work: the driver's tracing was not "
            "allowed, in use by another tool, or lost; nothing is known of the device"
        )
        yield Check("launches", "unusable", text, 1.0, "everything of the device")
        return
    share = lost.height / every.height
    text = f"{count_text(lost.height)} of {count_text(every.height)} launches have no device work"
    if not lost.height:
        yield Check("launches", "good", text, 0.0)
        return
    kinds = _by_kind(every)
    verdict = worst(graded(share), "degraded" if _is_much(kinds) else "good")
    told = ", ".join(f"{name} {gone:,} of {all_:,}" for name, gone, all_, _ in kinds.rows()[:3])
    text = f"{text} ({told}): {_where(recording)}"
    yield Check("launches", verdict, text, share, _FIGURES, examples(lost["id"]))


def _by_kind(every: pl.DataFrame) -> pl.DataFrame:
    """Lost launches by the name of the call: name, lost, all, share; those that lost most first."""
    return (
        every.group_by(pl.col("name").cast(pl.String))
        .agg(pl.col("lost").sum().alias("gone"), pl.len().alias("all"))
        .filter(pl.col("gone") > 0)
        .with_columns(share=pl.col("gone") / pl.col("all"))
        .sort("gone", "name", descending=[True, False])
    )


def _is_much(kinds: pl.DataFrame) -> bool:
    """Whether of one kind of launch so many are lost that it is not by chance."""
    return bool(((kinds["share"] > FEW) & (kinds["gone"] >= _CHANCE)).any())


def _where(recording: Recording) -> str:
    """Where the lost launches lie, as the end of a sentence."""
    every, lost = recording.launches, recording.lost
    kept = every.filter(~pl.col("lost"))
    if not kept.height:
        return "none of the work that was recorded belongs to a launch"
    if lost["start"].max() < kept["start"].min():  # type: ignore[operator]  # integers
        return "all before the first work that was recorded: the device's tracing began late"
    if lost["start"].min() > kept["start"].max():  # type: ignore[operator]  # integers
        return "all after the last work that was recorded: its end is lost"
    if not kept["name"].is_in(lost["name"].unique().implode()).any():
        return "no other kind of launch lost any"
    own = lost["track"].unique()
    if not kept["track"].is_in(own.implode()).any():
        return f"all those of {own.len()} of {every['track'].n_unique()} threads"
    return "here and there, so that what they ran is not known"


def lost_end(recording: Recording) -> Iterator[Check]:
    """Launches at the end of the recording of which none has device work."""
    every = recording.launches
    kept = every.filter(~pl.col("lost"))
    if not kept.height:
        return
    last = int(kept["start"].max())  # type: ignore[arg-type]  # integers
    tail = every.filter(pl.col("start") > last)
    if tail.height < _CHANCE:
        return
    share = tail.height / every.height
    after = int(tail["start"].max()) - last  # type: ignore[arg-type]  # integers
    text = (
        f"the last {count_text(tail.height)} launches, {time_text(after)}, have no device work: "
        "what the device did at the end is not recorded"
    )
    affects = "idle, utilisation, the last steps"
    verdict = worst("degraded", graded(share))
    yield Check("end", verdict, text, share, affects, examples(tail["id"]))


def lost_streams(recording: Recording) -> Iterator[Check]:
    """Operators of whose launches none has device work, and streams known by marks alone.

    What always goes to one stream, such as collectives, is lost with it. Were launches lost at
    random, hardly all of one operator would be.
    """
    yield from _lost_operators(recording)
    notes = recording.trace.tracks.filter(pl.col("kind") == "device annotation")
    places = recording.trace.tracks.filter(pl.col("kind") == "device")
    bare = notes.join(places, on="thread", how="anti")
    if recording.device.height and bare.height:
        told = ", ".join(
            f"{process} stream {tid}" for process, tid in bare.select("process", "tid").rows()
        )
        text = f"marks lie on streams that have no work ({told}): their work is not recorded"
        yield Check("streams", "degraded", text, float(bare.height), "overlap, idle, streams")


def _lost_operators(recording: Recording) -> Iterator[Check]:
    every = recording.launches.filter(pl.col("operator").is_not_null())
    if not recording.device.height or not recording.lost.height:
        return
    share = recording.lost.height / recording.launches.height
    slices = recording.trace.slices["name"]
    every = every.with_columns(by=slices.gather(every["operator"]).cast(pl.String))
    by = every.group_by("by").agg(
        pl.col("lost").all().alias("gone"), pl.len().alias("all"), pl.col("id")
    )
    chance = pl.lit(share) ** pl.col("all")
    gone = by.filter(
        pl.col("gone") & (pl.col("all") >= _CHANCE) & (chance <= _HARDLY_BY_CHANCE)
    ).sort("all", "by", descending=[True, False])
    if not gone.height or gone.height == by.height:
        return
    count = int(gone["all"].sum())
    most = ", ".join(f"`{name}`" for name in gone["by"].head(3))
    text = (
        f"none of the {count_text(count)} launches by {most} has device work: "
        "a stream or a kind of work was not recorded"
    )
    affects = "the time of these operators, overlap, communication"
    ids = examples(gone["id"].explode())
    yield Check("streams", "degraded", text, float(count), affects, ids)


def links(recording: Recording) -> Iterator[Check]:
    """Device work whose launch is not in the recording: from before it, or from elsewhere.

    A stream works in order: what lies before the first linked work was launched before; what comes
    after it was launched during the recording, by what was not recorded.
    """
    device = recording.device
    if not device.height:
        return
    unlinked = device.filter(pl.col("launch").is_null())
    share = unlinked.height / device.height
    first = (
        device.filter(pl.col("launch").is_not_null())
        .group_by("track")
        .agg(pl.col("start").min().alias("first"))
    )
    told = unlinked.join(first, on="track", how="left", maintain_order="left")
    bound = pl.coalesce("first", pl.lit(first["first"].max(), pl.Int64))
    elsewhere = told.filter(pl.col("start") > bound) if first.height else unlinked
    text = f"{share_text(share)} of device slices were launched before the recording or elsewhere"
    verdict: Verdict = "degraded" if share > _MUCH_BEFORE else "good"
    if elsewhere.height:
        text = f"{text}, {count_text(elsewhere.height)} of them during it by what was not recorded"
        verdict = worst(verdict, "degraded" if elsewhere.height > FEW * device.height else "good")
    bare = unlinked.join(_without_correlation(recording.trace), on="id", how="semi")
    if bare.height:
        text = f"{text}; {count_text(bare.height)} without a correlation to be linked by"
    affects = "operators, lines, launches, steps" if unlinked.height else None
    ids = examples(elsewhere["id"]) if elsewhere.height else None
    yield Check("links", verdict, text, share, affects, ids)


def _without_correlation(trace: Trace) -> pl.DataFrame:
    """The device work that carries no number, or none that is one, by which a call is found."""
    return trace.device_args.filter(~(pl.col("correlation") > 0).fill_null(value=False))
