"""Lists the data in a recording that views and rules need, and how to record it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from selftime.analysis.data_loader_workers import loader_worker_tables
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import has_input_shapes
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.trace import Trace

RecordingNeed: TypeAlias = Literal[
    "operators",
    "work",
    "stacks",
    "shapes",
    "memory",
    "device",
    "links",
    "steps",
    "modules",
    "workers",
    "ledger",
]
"""The name of data that a recording may lack, such as `stacks` or `shapes`."""


@dataclass(frozen=True, slots=True)
class RecordingRequirement:
    """One kind of data that a recording may lack, and the sentence that says how to record it."""

    present: Callable[[Trace], bool]
    remedy: str


def _has_recorded_operators(trace: Trace) -> bool:
    return bool(trace.op_args.height)


def _has_python_stacks(trace: Trace) -> bool:
    return bool(trace.lines.height or trace.frame_args.height)


def _has_memory_records(trace: Trace) -> bool:
    return bool(trace.memory.height)


@cached_per_trace
def _has_device_work(trace: Trace) -> bool:
    return bool(trace.slices["duration"].gather(trace.device_args["id"]).is_not_null().any())


def _has_launch_links(trace: Trace) -> bool:
    return bool(trace.slices["launch"].is_not_null().any())


def _has_detected_steps(trace: Trace) -> bool:
    return bool((find_steps(trace)["source"] != "window").any())


def _has_loader_workers(trace: Trace) -> bool:
    return loader_worker_tables(trace) is not None


def _has_ledger(trace: Trace) -> bool:
    return bool(trace.run.segments.height)


def _has_module_frames(trace: Trace) -> bool:
    return bool(trace.frame_args["module_id"].is_not_null().any())


REQUIREMENT_BY_NEED: Final[dict[RecordingNeed, RecordingRequirement]] = {
    "operators": RecordingRequirement(
        _has_recorded_operators,
        "operators: record with `ProfilerActivity.CPU`, or with `selftime run`",
    ),
    "work": RecordingRequirement(
        lambda trace: _has_recorded_operators(trace) or _has_device_work(trace),
        "operators and device activity: record with `ProfilerActivity.CPU`, or with `selftime run`",
    ),
    "stacks": RecordingRequirement(
        _has_python_stacks, "Python stacks: record with `with_stack=True`, or with `selftime run`"
    ),
    "shapes": RecordingRequirement(
        has_input_shapes, "input shapes: record with `record_shapes=True`, or with `selftime run`"
    ),
    "memory": RecordingRequirement(
        _has_memory_records,
        "memory events: record with `profile_memory=True`, or `selftime run --memory`",
    ),
    "device": RecordingRequirement(
        _has_device_work,
        "device activity: record on a machine with an accelerator whose work may be traced",
    ),
    "links": RecordingRequirement(
        _has_launch_links,
        "launches of device work: record host and device together, from before the launches",
    ),
    "steps": RecordingRequirement(
        _has_detected_steps,
        "steps: record with a `schedule` and `prof.step()` once a step, or with `selftime run`",
    ),
    "modules": RecordingRequirement(
        _has_module_frames,
        "Python frames of modules: record with `with_stack=True`, or `selftime run`",
    ),
    "workers": RecordingRequirement(
        _has_loader_workers, "what workers of a DataLoader do: record with `selftime run --workers`"
    ),
    "ledger": RecordingRequirement(
        _has_ledger, "the ledger of the whole run: record with `selftime run`"
    ),
}
"""Maps each name of data that a view or rule needs to how it is recognised and recorded."""


def missing_requirement_sentences(trace: Trace, needs: tuple[RecordingNeed, ...]) -> list[str]:
    """Returns for each kind of needed data that the trace lacks a sentence on how to record it."""
    return [
        recording_remedy(trace, need)
        for need in needs
        if not REQUIREMENT_BY_NEED[need].present(trace)
    ]


_DETAIL_BY_NEED: Final[dict[RecordingNeed, str]] = {
    "shapes": "shapes",
    "stacks": "stacks",
    "modules": "stacks",
}
"""Maps data to the detail of the recording without which it is missing, by its name in facts."""


def recording_remedy(trace: Trace, need: RecordingNeed) -> str:
    """Returns how to record data that the trace lacks; if `selftime run` left it out, with what."""
    remedy, detail = REQUIREMENT_BY_NEED[need].remedy, _DETAIL_BY_NEED.get(need)
    steps = trace.facts.get("steps")
    left_out = steps.get("left_out") if isinstance(steps, dict) else None
    if not isinstance(left_out, dict) or detail not in left_out:
        return remedy
    lacking, option = remedy.partition(":")[0], left_out[detail]
    if not isinstance(option, str):
        return f"{lacking}: `selftime run` left them out, since they do not fit into the memory"
    return f"{lacking}: `selftime run` left them out: record with `selftime run {option}`"
