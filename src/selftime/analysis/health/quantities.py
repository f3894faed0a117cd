"""Figures that cannot be, or that are nought where they should not be."""

from collections.abc import Iterator

import polars as pl

from selftime import names
from selftime.analysis.health.checks import Check, Verdict, examples
from selftime.analysis.health.recording import Recording
from selftime.analysis.slice_filters import filter_by_name
from selftime.devices import DEVICE_TYPES, HOST_TYPES
from selftime.units import bytes_text, count_text


def memory(recording: Recording) -> Iterator[Check]:
    """Whether more is allocated than a device has, or less than nothing."""
    told = recording.trace.memory.filter(~pl.col("device_type").is_in(HOST_TYPES))
    most = told.group_by("device_type", "device").agg(
        most=pl.max_horizontal(pl.col("allocated").max(), pl.col("reserved").max()),
        least=pl.min_horizontal(pl.col("allocated").min(), pl.col("reserved").min()),
        beyond=(pl.col("allocated") - pl.col("reserved")).max(),
    )
    described = recording.trace.devices.select("index", "memory")
    for kind, device, held, least, beyond in most.sort("device_type", "device").rows():
        sizes = described.filter(pl.col("index") == device)["memory"]
        if described.height == 1:
            sizes = described["memory"]
        size = sizes[0] if sizes.len() else None
        name = f"{DEVICE_TYPES.get(kind, 'device')} {device}"
        if size and held is not None and held > size:
            text = f"{bytes_text(held)} allocated on {name}, which has {bytes_text(size)}"
            yield Check("memory", "degraded", text, held / size, "memory views")
        if beyond is not None and beyond > 0:
            text = (
                f"on {name} {bytes_text(beyond)} more are allocated than its allocator has "
                "reserved: its totals are not right"
            )
            yield Check("memory", "degraded", text, float(beyond), "memory views")
        if least is not None and least < 0:
            text = f"{bytes_text(least)} allocated on {name}: its totals are not right"
            yield Check("memory", "degraded", text, float(least), "memory views")


def communication(recording: Recording) -> Iterator[Check]:
    """Whether collectives were issued, or kernels look like them, and none is known as one."""
    work = recording.work
    kernels = work.filter(pl.col("kind").is_in(["kernel", "communication"]))
    if not kernels.height:
        return
    known = kernels.filter(pl.col("kind") == "communication").height
    alike = filter_by_name(kernels.filter(pl.col("kind") == "kernel"), names.looks_like_collective)
    if alike.height:
        most = ", ".join(f"`{name}`" for name in alike["name"].unique().cast(pl.String).sort()[:3])
        text = f"{count_text(known)} kernels are known as collectives; these look like some: {most}"
        verdict: Verdict = "good" if known else "degraded"
        affects = "communication, overlap, ranks"
        yield Check("collectives", verdict, text, float(known), affects, examples(alike["id"]))
        return
    issued = _issued(recording)
    if issued.height and not known:
        text = f"{count_text(issued.height)} collectives were issued, and no kernel is known as one"
        affects = "communication, overlap, ranks"
        yield Check("collectives", "degraded", text, 0.0, affects, examples(issued["id"]))


def _issued(recording: Recording) -> pl.DataFrame:
    """Collectives that the host issued to a device; within a group of one rank nothing runs."""
    calls = filter_by_name(recording.host, names.issues_device_collective)
    sizes = recording.trace.collective_args["group_size"].drop_nulls()
    return calls.clear() if sizes.len() and not (sizes > 1).any() else calls
