"""Checks whether a file is a complete recording by PyTorch with known kinds of events."""

from collections.abc import Iterator
from typing import Final

import polars as pl

from selftime import names
from selftime.analysis.device.device_work import is_device_unrecorded
from selftime.analysis.health.recording_under_check import (
    MAX_HARMLESS_FAULT_SHARE,
    HealthCheckResult,
    HealthVerdict,
    RecordingUnderCheck,
    example_slice_ids_text,
)
from selftime.analysis.recording_requirements import REQUIREMENT_BY_NEED, RecordingNeed
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.devices import DEVICE_TYPE_NAMES, HOST_DEVICE_TYPES
from selftime.units import bytes_text, count_text

_PROFILER_OPTION_BY_NEED: Final[dict[RecordingNeed, str]] = {
    "shapes": "input shapes (`record_shapes=True`)",
    "stacks": "Python stacks (`with_stack=True`)",
    "memory": "memory (`profile_memory=True`)",
}
"""Maps data that PyTorch's profiler records only on request to the option that requests it."""
_NUMBERS_OF_RECORDABLE_DEVICE_TYPES: Final = (1, 6, 12, 19)
"""Numbers of the torch device types whose work the profiler can record: CUDA, HIP, XPU, MTIA."""
_PROCESS_NAME_OF_MEMORY_SNAPSHOT: Final = "snapshot"


def check_plausible_memory_totals(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Checks that totals of allocated memory are at least 0 and at most the device's memory."""
    told = recording.trace.memory.filter(~pl.col("device_type").is_in(HOST_DEVICE_TYPES))
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
        name = f"{DEVICE_TYPE_NAMES.get(kind, 'device')} {device}"
        if size and held is not None and held > size:
            text = f"{bytes_text(held)} allocated on {name}, which has {bytes_text(size)}"
            yield HealthCheckResult("memory", "degraded", text, held / size, "memory views")
        if beyond is not None and beyond > 0:
            text = f"{bytes_text(beyond)} more allocated on {name} than its allocator reserved"
            text = f"{text}: the recorded totals are wrong"
            yield HealthCheckResult("memory", "degraded", text, float(beyond), "memory views")
        if least is not None and least < 0:
            text = f"{bytes_text(least)} allocated on {name}: the recorded totals are wrong"
            yield HealthCheckResult("memory", "degraded", text, float(least), "memory views")


def check_collectives_recognised(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Checks that the trace has kernels of collectives where the host issued collectives."""
    work = recording.ended_work
    kernels = work.filter(pl.col("kind").is_in(["kernel", "communication"]))
    if not kernels.height:
        return
    known = kernels.filter(pl.col("kind") == "communication").height
    alike = filter_by_name(kernels.filter(pl.col("kind") == "kernel"), names.looks_like_collective)
    if alike.height:
        most = ", ".join(f"`{name}`" for name in alike["name"].unique().cast(pl.String).sort()[:3])
        known_text = f"{count_text(known)} kernels are recognised as collectives"
        text = f"{known_text}; other kernels have similar names: {most}"
        verdict: HealthVerdict = "good" if known else "degraded"
        affects = "communication, overlap, ranks"
        yield HealthCheckResult(
            "collectives", verdict, text, float(known), affects, example_slice_ids_text(alike["id"])
        )
        return
    issued = _collectives_issued_to_devices(recording)
    if issued.height and not known:
        count = count_text(issued.height)
        text = f"{count} collectives were issued, and no kernel is recognised as one"
        affects = "communication, overlap, ranks"
        yield HealthCheckResult(
            "collectives", "degraded", text, 0.0, affects, example_slice_ids_text(issued["id"])
        )


def _collectives_issued_to_devices(recording: RecordingUnderCheck) -> pl.DataFrame:
    """Returns collectives that the host issued to a device, except in groups of one rank."""
    calls = filter_by_name(recording.host_slices, names.issues_device_collective)
    sizes = recording.trace.collective_args["group_size"].drop_nulls()
    return calls.clear() if sizes.len() and not (sizes > 1).any() else calls


def check_slice_categories(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports the number of slices, and how many of them have an unknown category."""
    work = recording.host_slices.height + recording.device_slices.height
    memory = recording.trace.memory.height
    if memory and not recording.operator_starts.height and not recording.device_slices.height:
        yield _memory_only_check(recording, memory)
        return
    if not work:
        yield _no_work_check(recording)
        return
    yield HealthCheckResult(
        "content", "good", f"{count_text(work)} slices on host and device", float(work)
    )
    other = slices_on(recording.trace, "other")
    other = other.filter(
        ~pl.col("category")
        .cast(pl.String)
        .str.starts_with(names.ASYNCHRONOUS_CATEGORY_PREFIX.strip())
    )
    if other.height:
        share = other.height / recording.trace.slices.height
        found = other["category"].cast(pl.String).unique().sort()[:5]
        kinds = ", ".join(f"`{category}`" if category else "none given" for category in found)
        verdict: HealthVerdict = "degraded" if share > MAX_HARMLESS_FAULT_SHARE else "good"
        count = count_text(other.height)
        text = f"{count} slices of unknown category ({kinds}) are left out of totals"
        yield HealthCheckResult("categories", verdict, text, share, "totals, kernels")


def _memory_only_check(recording: RecordingUnderCheck, record_count: int) -> HealthCheckResult:
    if recording.trace.tracks["process"].eq(_PROCESS_NAME_OF_MEMORY_SNAPSHOT).any():
        return _memory_snapshot_check(recording)
    count = count_text(record_count)
    text = f"{count} memory records and no operator or kernel: only memory views have data"
    return HealthCheckResult(
        "content", "degraded", text, float(record_count), "everything but memory views"
    )


def _memory_snapshot_check(recording: RecordingUnderCheck) -> HealthCheckResult:
    """Returns the check of a file that is a snapshot of PyTorch's memory allocator."""
    memory = recording.trace.memory
    earlier = memory.filter(pl.col("time") < 0).height
    told = memory.filter((pl.col("time") >= 0) & (pl.col("bytes") != 0)).height
    affects = "everything but memory views"
    if not told:
        text = (
            f"a snapshot of an allocator without history: {count_text(earlier)} blocks in use, "
            "allocated at unknown times"
        )
        return HealthCheckResult(
            "content", "degraded", text, float(earlier), f"memory over time, {affects}"
        )
    text = f"{count_text(told)} memory records of an allocator's snapshot"
    if not earlier:
        return HealthCheckResult("content", "good", text, float(told), affects)
    text = (
        f"{text}; {count_text(earlier)} blocks in use are older than its history, which "
        "began late or was longer than `max_entries`"
    )
    return HealthCheckResult(
        "content", "degraded", text, float(told), f"when these were allocated, {affects}"
    )


def _no_work_check(recording: RecordingUnderCheck) -> HealthCheckResult:
    """Returns the check of a file without work of torch: mostly one of another profiler."""
    trace = recording.trace
    if trace.slices["category"].is_in(names.FRAME_CATEGORIES).any():
        text = (
            "no operator, runtime call or kernel was recorded, only Python functions: torch did "
            "nothing while the recorder ran; limited view: its timeline and its slices, and no "
            "advice"
        )
        return HealthCheckResult("content", "unusable", text, 0.0, "everything but the timeline")
    processes = trace.tracks["process_name"].drop_nulls().unique().to_list()
    categories = trace.events["category"].unique().to_list()
    other = names.foreign_recorder([*trace.metadata, *categories, *processes])
    text = "no operator, runtime call or kernel: this is not a trace of PyTorch's profiler"
    if other is not None:
        text = f"{text} but of {other}"
    text = f"{text}; limited view: its timeline and its slices, and no advice"
    return HealthCheckResult("content", "unusable", text, 0.0, "everything but the timeline")


def check_unrequested_recording_data(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports data that is missing because it was not requested, and how to request it."""
    if not recording.operator_starts.height:
        return
    trace = recording.trace
    missing = [
        told
        for need, told in _PROFILER_OPTION_BY_NEED.items()
        if not REQUIREMENT_BY_NEED[need].present(trace)
    ]
    if missing:
        text = f"not recorded: {', '.join(missing)}"
        affects = "figures by shape, line, module or allocation"
        yield HealthCheckResult("options", "good", text, float(len(missing)), affects)
    if recording.device_slices.height or recording.launches.height:
        return
    used = trace.memory.filter(~pl.col("device_type").is_in(HOST_DEVICE_TYPES))["device_type"]
    if not used.drop_nulls().len() and is_device_unrecorded(trace):
        text = (
            "ranks exchange what is on their devices, but no device activity was recorded: how "
            "long operators compute is unknown"
        )
        affects = "everything of a device, times of operators"
        yield HealthCheckResult("device", "degraded", text, 0.0, affects)
        return
    if not used.drop_nulls().len():
        text = "no device activity was recorded: only the host is known"
        yield HealthCheckResult("device", "good", text, 0.0, "everything of a device")
        return
    kinds = sorted(used.drop_nulls().unique().to_list())
    told = ", ".join(DEVICE_TYPE_NAMES.get(kind, f"device type {kind}") for kind in kinds)
    text = f"memory was allocated on a device ({told}), but no device activity was recorded"
    if not set(kinds) & set(_NUMBERS_OF_RECORDABLE_DEVICE_TYPES):
        text = f"{text}: this backend records no device activity"
    else:
        text = f"{text}: add its `ProfilerActivity` to `activities`"
    yield HealthCheckResult("device", "degraded", text, 0.0, "everything of a device")


def check_trace_file_text(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports errors in the text of the trace file, and how many events they lost."""
    told = recording.trace.repairs
    notes, repairs = told.filter(told["note"]), told.filter(~told["note"])
    if not repairs.height:
        text = "; ".join(["the file is whole", *notes["fault"]])
        yield HealthCheckResult("file", "good", text, 0.0)
        return
    lost = int(repairs["events_lost"].sum())
    rows = repairs.select("fault", "count", "offset").head(5).rows()
    faults = "; ".join(
        f"{fault} ({_fault_occurrences_text(count, offset)})" for fault, count, offset in rows
    )
    text = f"{faults}; {count_text(lost)} events lost"
    if repairs["ruin"].any():
        text = f"{'; '.join(repairs.filter('ruin')['fault'])}: {text}"
        yield HealthCheckResult("file", "unusable", text, float(lost), "everything")
    else:
        yield HealthCheckResult(
            "file", "degraded", text, float(lost), "figures from the lost events"
        )


def _fault_occurrences_text(count: int, offset: int | None) -> str:
    """Returns how often a fault occurs in the decompressed text, and its first byte offset."""
    return count_text(count) + ("" if offset is None else f", first at byte {offset:,}")


def check_operators_recorded(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports that device work was recorded but no operators, so that its cause is unknown."""
    if recording.device_slices.height and not recording.operator_starts.height:
        text = "no operator was recorded: what launched the device's work is unknown"
        yield HealthCheckResult(
            "operators", "degraded", text, 0.0, "operators, lines, modules, shapes"
        )
