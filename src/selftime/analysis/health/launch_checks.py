"""Checks for launches without device work, and for device work without a launch."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.health.recording_under_check import (
    MAX_HARMLESS_FAULT_SHARE,
    HealthCheckResult,
    HealthVerdict,
    RecordingUnderCheck,
    counted_noun_text,
    example_slice_ids_text,
    verdict_on_faulty_share,
    worst_verdict,
)
from selftime.devices import HOST_DEVICE_TYPES
from selftime.nesting import MAX_ROUNDING_CROSSING_NS
from selftime.trace import Trace
from selftime.units import count_text, share_text, time_text

_MAX_NAMED_DEVICES: Final = 8

_FIGURES_AFFECTED_BY_LOST_WORK: Final = (
    "idle, overlap, kernels, device time of steps, operators and lines"
)
_MIN_LOST_LAUNCHES_OF_ONE_KIND: Final = 3
"""Smallest number of launches of one call name without device work that is not taken for chance."""
_MAX_PROBABILITY_OF_RANDOM_LOSS: Final = 1e-6
"""Probability of a loss by chance below which device work that an operator lacks is a defect of the
recording."""
_MAX_SHARE_OF_WORK_WITHOUT_LAUNCH: Final = 0.5
"""Largest share (0 to 1) of device work without a recorded launch in a good trace."""


def check_overlapping_work_on_streams(
    recording: RecordingUnderCheck,
) -> Iterator[HealthCheckResult]:
    """Checks for device work that begins before earlier work on its stream has ended.

    Branches of a graph may overlap, and so may launches whose attributes let them begin early
    (programmatic dependent launch); plain launches may not. Impossible durations are left out.
    """
    work = recording.ended_work.select("id", "track", "start", "end", "launch")
    if recording.work_with_impossible_duration.height:
        work = work.join(recording.work_with_impossible_duration, on="id", how="anti")
    reach = pl.col("end").cum_max().shift(1).over("track")
    own = work.sort("track", "start", "end", "id").with_columns(reach=reach)
    found = own.filter(pl.col("start") < pl.col("reach"))
    if not found.height:
        return
    launch = recording.trace.slices["name"].gather(found["launch"])
    unique = launch.drop_nulls().unique().cast(pl.String).to_list()
    free = [name for name in unique if names.may_overlap_previous_work(name)]
    legal = launch.cast(pl.String).is_in(free).fill_null(value=True)
    beyond = found["reach"] - found["start"] > MAX_ROUNDING_CROSSING_NS
    odd = found.filter(~legal & beyond)
    share = odd.height / recording.ended_work.height
    text = f"{count_text(found.height)} device slices begin before others of their stream end"
    if share > MAX_HARMLESS_FAULT_SHARE:
        text = (
            f"{text}; {share_text(share)} of all do although their launches do not allow it: "
            "their times are wrong"
        )
        affects = "sums of kernel times, launch delays"
        yield HealthCheckResult(
            "same_stream", "degraded", text, share, affects, example_slice_ids_text(odd["id"])
        )
        return
    told = (
        f", {count_text(odd.height)} of them although their launches do not allow it"
        if odd.height
        else ""
    )
    text = f"{text}{told}: busy time counts them once"
    yield HealthCheckResult("same_stream", "good", text, float(found.height))


def check_devices_without_recorded_work(
    recording: RecordingUnderCheck,
) -> Iterator[HealthCheckResult]:
    """Reports devices on which memory was allocated but no work was recorded."""
    memory = recording.trace.memory.filter(
        ~pl.col("device_type").is_in(HOST_DEVICE_TYPES) & (pl.col("device") >= 0)
    )
    used, seen = memory["device"].unique(), recording.ended_work["device"].drop_nulls().unique()
    if seen.len() and recording.lost_launches.height:
        yield from _check_described_devices_without_work(recording, seen, used)
    if not seen.len() or used.len() <= seen.len():
        return  # numbers may differ between runtimes: if the counts are equal, none is missing
    missing = used.filter(~used.is_in(seen.implode())).sort()
    told = ", ".join(map(str, missing.to_list()))
    text = f"memory was allocated on {used.len()} devices, but work recorded on {seen.len()} only"
    text = f"{text}: nothing was recorded of device {told}" if missing.len() else text
    affects = "utilisation, idle, overlap of these devices"
    yield HealthCheckResult("devices", "degraded", text, float(used.len() - seen.len()), affects)


def _check_described_devices_without_work(
    recording: RecordingUnderCheck, working: pl.Series, with_memory: pl.Series
) -> Iterator[HealthCheckResult]:
    """Checks for devices that the trace describes but for which no device work was recorded.

    A program may leave devices unused. But if a thread launched work and none of it was recorded,
    its device was used.
    """
    described = recording.trace.devices["index"].drop_nulls().unique().sort()
    missing = described.filter(~described.is_in(working.implode()))
    kept = recording.launches.filter(~pl.col("lost"))["track"].unique()
    bare = recording.lost_launches.filter(~pl.col("track").is_in(kept.implode()))[
        "track"
    ].n_unique()
    if (
        with_memory.len()
        or not bare
        or not missing.len()
        or not working.is_in(described.implode()).all()
    ):
        return  # memory records are better evidence of which devices are used
    told = ", ".join(map(str, missing.head(_MAX_NAMED_DEVICES).to_list()))
    text = (
        f"all launches of {counted_noun_text(bare, 'thread')} have no device work, and nothing was "
        f"recorded of device {told}, which the header describes"
    )
    affects = "utilisation, idle, overlap of these devices"
    yield HealthCheckResult("devices", "degraded", text, float(missing.len()), affects)


def check_launches_without_work(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports how many launches have no device work, by kind of launch."""
    every, lost = recording.launches, recording.lost_launches
    if not every.height:
        return
    if not recording.device_slices.height:
        text = (
            f"{count_text(every.height)} launches and no device work: the driver's tracing was not "
            "allowed, in use by another tool, or lost; nothing is known of the device"
        )
        yield HealthCheckResult("launches", "unusable", text, 1.0, "everything of the device")
        return
    share = lost.height / every.height
    text = f"{count_text(lost.height)} of {count_text(every.height)} launches have no device work"
    if not lost.height:
        yield HealthCheckResult("launches", "good", text, 0.0)
        return
    kinds = _lost_launches_by_call_name(every)
    verdict = worst_verdict(
        verdict_on_faulty_share(share), "degraded" if _is_launch_loss_systematic(kinds) else "good"
    )
    told = ", ".join(
        f"{name} {count_text(gone)} of {count_text(all_)}"
        for name, gone, all_, _ in kinds.rows()[:3]
    )
    text = f"{text} ({told}): {_place_of_lost_launches(recording)}"
    yield HealthCheckResult(
        "launches",
        verdict,
        text,
        share,
        _FIGURES_AFFECTED_BY_LOST_WORK,
        example_slice_ids_text(lost["id"]),
    )


def _lost_launches_by_call_name(launches: pl.DataFrame) -> pl.DataFrame:
    """Returns for each call name the count and share of launches without device work."""
    return (
        launches.group_by(pl.col("name").cast(pl.String))
        .agg(pl.col("lost").sum().alias("gone"), pl.len().alias("all"))
        .filter(pl.col("gone") > 0)
        .with_columns(share=pl.col("gone") / pl.col("all"))
        .sort("gone", "name", descending=[True, False])
    )


def _is_launch_loss_systematic(losses: pl.DataFrame) -> bool:
    """Returns whether more launches of one call name lack device work than chance explains."""
    return bool(
        (
            (losses["share"] > MAX_HARMLESS_FAULT_SHARE)
            & (losses["gone"] >= _MIN_LOST_LAUNCHES_OF_ONE_KIND)
        ).any()
    )


def _place_of_lost_launches(recording: RecordingUnderCheck) -> str:
    """Returns when, or on which threads, launches lack device work, as the end of a sentence."""
    every, lost = recording.launches, recording.lost_launches
    kept = every.filter(~pl.col("lost"))
    if not kept.height:
        return "none of the recorded work belongs to a launch"
    if lost["start"].max() < kept["start"].min():  # type: ignore[operator]  # integers
        return "all before the first recorded work: the device's tracing began late"
    if lost["start"].min() > kept["start"].max():  # type: ignore[operator]  # integers
        return "all after the last recorded work: the end of the recording is lost"
    if not kept["name"].is_in(lost["name"].unique().implode()).any():
        return "no other kind of launch lacks device work"
    own = lost["track"].unique()
    if not kept["track"].is_in(own.implode()).any():
        return f"all launches of {own.len()} of {every['track'].n_unique()} threads"
    return "throughout the recording: what these launches ran is unknown"


def check_lost_work_at_recording_end(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports launches at the end of the recording whose device work was not recorded."""
    every = recording.launches
    kept = every.filter(~pl.col("lost"))
    if not kept.height:
        return
    last = int(kept["start"].max())  # type: ignore[arg-type]  # integers
    tail = every.filter(pl.col("start") > last)
    if tail.height < _MIN_LOST_LAUNCHES_OF_ONE_KIND:
        return
    share = tail.height / every.height
    after = int(tail["start"].max()) - last  # type: ignore[arg-type]  # integers
    text = (
        f"the last {count_text(tail.height)} launches, {time_text(after)}, have no device work:"
        " what the device did at the end was not recorded"
    )
    affects = "idle, utilisation, the last steps"
    verdict = worst_verdict("degraded", verdict_on_faulty_share(share))
    yield HealthCheckResult(
        "end", verdict, text, share, affects, example_slice_ids_text(tail["id"])
    )


def check_streams_that_lost_all_work(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports operators and streams of which no device work was recorded.

    Work that always goes to one stream, such as collectives, is lost with that stream. If launches
    were lost at random, it would hardly be all of one operator.
    """
    yield from _check_operators_that_lost_all_work(recording)
    notes = recording.trace.tracks.filter(pl.col("kind") == "device annotation")
    places = recording.trace.tracks.filter(pl.col("kind") == "device")
    bare = notes.join(places, on="thread", how="anti")
    if recording.device_slices.height and bare.height:
        told = ", ".join(
            f"{process} stream {tid}" for process, tid in bare.select("process", "tid").rows()
        )
        text = f"annotations without work on streams ({told}): their work was not recorded"
        yield HealthCheckResult(
            "streams", "degraded", text, float(bare.height), "overlap, idle, streams"
        )


def _check_operators_that_lost_all_work(
    recording: RecordingUnderCheck,
) -> Iterator[HealthCheckResult]:
    every = recording.launches.filter(pl.col("operator").is_not_null())
    if not recording.device_slices.height or not recording.lost_launches.height:
        return
    share = recording.lost_launches.height / recording.launches.height
    slices = recording.trace.slices["name"]
    every = every.with_columns(by=slices.gather(every["operator"]).cast(pl.String))
    by = every.group_by("by").agg(
        pl.col("lost").all().alias("gone"), pl.len().alias("all"), pl.col("id")
    )
    chance = pl.lit(share) ** pl.col("all")
    gone = by.filter(
        pl.col("gone")
        & (pl.col("all") >= _MIN_LOST_LAUNCHES_OF_ONE_KIND)
        & (chance <= _MAX_PROBABILITY_OF_RANDOM_LOSS)
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
    ids = example_slice_ids_text(gone["id"].explode())
    yield HealthCheckResult("streams", "degraded", text, float(count), affects, ids)


def check_work_without_launch(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports device work whose launching call is not in the recording.

    A stream works in order. So work before the first linked work was launched before the recording;
    work after it was launched during the recording, by calls that were not recorded.
    """
    device = recording.device_slices
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
    verdict: HealthVerdict = "degraded" if share > _MAX_SHARE_OF_WORK_WITHOUT_LAUNCH else "good"
    if elsewhere.height:
        count = count_text(elsewhere.height)
        text = f"{text}, {count} of them during it by calls that were not recorded"
        verdict = worst_verdict(
            verdict,
            "degraded" if elsewhere.height > MAX_HARMLESS_FAULT_SHARE * device.height else "good",
        )
    bare = unlinked.join(_work_without_correlation(recording.trace), on="id", how="semi")
    if bare.height:
        text = f"{text}; {count_text(bare.height)} without a correlation number to link them by"
    affects = "operators, lines, launches, steps" if unlinked.height else None
    ids = example_slice_ids_text(elsewhere["id"]) if elsewhere.height else None
    yield HealthCheckResult("links", verdict, text, share, affects, ids)


def _work_without_correlation(trace: Trace) -> pl.DataFrame:
    """Returns the device work that has no valid correlation number to find its launch by."""
    return trace.device_args.filter(~(pl.col("correlation") > 0).fill_null(value=False))
