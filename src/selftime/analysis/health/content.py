"""What a file holds: whether it is a recording of PyTorch at all, whole, and understood."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.health.checks import FEW, Check, Verdict, examples
from selftime.analysis.health.recording import Recording
from selftime.analysis.requirements import NEEDS, Need
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.devices import DEVICE_TYPES, HOST_TYPES
from selftime.units import bytes_text, count_text

_OPTIONS: Final[dict[Need, str]] = {
    "shapes": "input shapes (`record_shapes=True`)",
    "stacks": "Python stacks (`with_stack=True`)",
    "memory": "memory (`profile_memory=True`)",
}
"""What PyTorch's profiler records only if it is told to, and how."""
_TRACED: Final = (1, 6, 12, 19)
"""Types of devices whose work the profiler can record: CUDA, HIP, XPU, MTIA."""
_SNAPSHOT: Final = "snapshot"


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


def content(recording: Recording) -> Iterator[Check]:
    """How much there is, and what of it is of a kind that is not known."""
    work = recording.host.height + recording.device.height
    memory = recording.trace.memory.height
    if memory and not recording.operators.height and not recording.device.height:
        yield _memory_alone(recording, memory)
        return
    if not work:
        yield _foreign(recording)
        return
    yield Check("content", "good", f"{count_text(work)} slices on host and device", float(work))
    other = slices_on(recording.trace, "other")
    other = other.filter(
        ~pl.col("category").cast(pl.String).str.starts_with(names.ASYNCHRONOUS.strip())
    )
    if other.height:
        share = other.height / recording.trace.slices.height
        found = other["category"].cast(pl.String).unique().sort()[:5]
        kinds = ", ".join(f"`{category}`" if category else "none given" for category in found)
        verdict: Verdict = "degraded" if share > FEW else "good"
        text = f"{count_text(other.height)} slices of unknown category ({kinds}) are in no total"
        yield Check("categories", verdict, text, share, "totals, kernels")


def _memory_alone(recording: Recording, records: int) -> Check:
    if recording.trace.tracks["process"].eq(_SNAPSHOT).any():
        return _snapshot(recording)
    text = f"{count_text(records)} memory records and no operator or kernel: memory views alone"
    return Check("content", "degraded", text, float(records), "everything but memory views")


def _snapshot(recording: Recording) -> Check:
    """What an allocator's snapshot holds, and how much of it is from before its history."""
    memory = recording.trace.memory
    earlier = memory.filter(pl.col("time") < 0).height
    told = memory.filter((pl.col("time") >= 0) & (pl.col("bytes") != 0)).height
    affects = "everything but memory views"
    if not told:
        text = (
            f"a snapshot of an allocator, recorded without history: {count_text(earlier)} blocks "
            "in use, and not when they were allocated"
        )
        return Check("content", "degraded", text, float(earlier), f"memory over time, {affects}")
    text = f"{count_text(told)} memory records of an allocator's snapshot"
    if not earlier:
        return Check("content", "good", text, float(told), affects)
    text = (
        f"{text}; {count_text(earlier)} blocks in use are older: its history is partial, as it "
        "began late or was longer than `max_entries`"
    )
    return Check("content", "degraded", text, float(told), f"when these were allocated, {affects}")


def _foreign(recording: Recording) -> Check:
    """Nothing that PyTorch's profiler writes; who wrote it, if that is known."""
    trace = recording.trace
    processes = trace.tracks["process_name"].drop_nulls().unique().to_list()
    categories = trace.events["category"].unique().to_list()
    other = names.foreign_recorder([*trace.metadata, *categories, *processes])
    text = "no operator, runtime call or kernel: this is not a trace of PyTorch's profiler"
    if other is not None:
        text = f"{text} but of {other}"
    text = f"{text}; limited view: its timeline and its slices, and no advice"
    return Check("content", "unusable", text, 0.0, "everything but the timeline")


def unrecorded(recording: Recording) -> Iterator[Check]:
    """What is not in the recording because nobody asked for it, and how to ask."""
    if not recording.operators.height:
        return
    trace = recording.trace
    missing = [told for need, told in _OPTIONS.items() if not NEEDS[need].present(trace)]
    if missing:
        text = f"not recorded: {', '.join(missing)}"
        affects = "figures by shape, line, module or allocation"
        yield Check("options", "good", text, float(len(missing)), affects)
    if recording.device.height or recording.launches.height:
        return
    used = trace.memory.filter(~pl.col("device_type").is_in(HOST_TYPES))["device_type"]
    if not used.drop_nulls().len():
        text = "no device activity was recorded: only the host is known"
        yield Check("device", "good", text, 0.0, "everything of a device")
        return
    kinds = sorted(used.drop_nulls().unique().to_list())
    told = ", ".join(DEVICE_TYPES.get(kind, f"device type {kind}") for kind in kinds)
    text = f"memory lies on a device ({told}), and no device activity was recorded"
    if not set(kinds) & set(_TRACED):
        text = f"{text}: this backend records no device activity"
    else:
        text = f"{text}: give the device's `ProfilerActivity` too"
    yield Check("device", "degraded", text, 0.0, "everything of a device")


def file(recording: Recording) -> Iterator[Check]:
    """What was wrong with the file's text."""
    told = recording.trace.repairs
    notes, repairs = told.filter(told["note"]), told.filter(~told["note"])
    if not repairs.height:
        text = "; ".join(["the file is whole", *notes["fault"]])
        yield Check("file", "good", text, 0.0)
        return
    lost = int(repairs["events_lost"].sum())
    rows = repairs.select("fault", "count", "offset").head(5).rows()
    faults = "; ".join(f"{fault} ({_times(count, offset)})" for fault, count, offset in rows)
    text = f"{faults}; {count_text(lost)} events lost"
    if repairs["ruin"].any():
        text = f"{'; '.join(repairs.filter('ruin')['fault'])}: {text}"
        yield Check("file", "unusable", text, float(lost), "everything")
    else:
        yield Check("file", "degraded", text, float(lost), "what the lost events told")


def _times(count: int, offset: int | None) -> str:
    """How often, and where first in the decompressed text."""
    return count_text(count) + ("" if offset is None else f", first at byte {offset:,}")


def operators(recording: Recording) -> Iterator[Check]:
    """Device work alone says what ran, and not what for."""
    if recording.device.height and not recording.operators.height:
        text = "no operator was recorded: what launched the device's work is not known"
        yield Check("operators", "degraded", text, 0.0, "operators, lines, modules, shapes")
