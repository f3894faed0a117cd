"""What a view or rule may need of a recording, how to see it, and how to record it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from selftime.analysis.cached import cached_per_trace
from selftime.analysis.loader_workers import worker_tables
from selftime.analysis.steps.step_boundaries import find_steps
from selftime.trace import Trace

Need: TypeAlias = Literal[
    "operators", "stacks", "shapes", "memory", "device", "links", "steps", "modules", "workers"
]


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a recording may hold, and the sentence that says how to get it."""

    present: Callable[[Trace], bool]
    remedy: str


def _operators(trace: Trace) -> bool:
    return bool(trace.op_args.height)


def _stacks(trace: Trace) -> bool:
    return bool(trace.lines.height or trace.frame_args.height)


def _shapes(trace: Trace) -> bool:
    return bool(trace.op_args["input_shapes"].is_not_null().any())


def _memory(trace: Trace) -> bool:
    return bool(trace.memory.height)


@cached_per_trace
def _device(trace: Trace) -> bool:
    return bool(trace.slices["duration"].gather(trace.device_args["id"]).is_not_null().any())


def _links(trace: Trace) -> bool:
    return bool(trace.slices["launch"].is_not_null().any())


def _steps(trace: Trace) -> bool:
    return bool((find_steps(trace)["source"] != "window").any())


def _workers(trace: Trace) -> bool:
    return worker_tables(trace) is not None


def _modules(trace: Trace) -> bool:
    return bool(trace.frame_args["module_id"].is_not_null().any())


NEEDS: Final[dict[Need, Requirement]] = {
    "operators": Requirement(
        _operators, "operators: record with `ProfilerActivity.CPU`, or with `selftime run`"
    ),
    "stacks": Requirement(
        _stacks, "Python stacks: record with `with_stack=True`, or with `selftime run`"
    ),
    "shapes": Requirement(
        _shapes, "input shapes: record with `record_shapes=True`, or with `selftime run`"
    ),
    "memory": Requirement(
        _memory, "memory events: record with `profile_memory=True`, or `selftime run --memory`"
    ),
    "device": Requirement(
        _device,
        "device activity: record on a machine with an accelerator whose work may be traced",
    ),
    "links": Requirement(
        _links,
        "launches of device work: record host and device together, from before the launches",
    ),
    "steps": Requirement(
        _steps,
        "steps: record with a `schedule` and `prof.step()` once a step, or with `selftime run`",
    ),
    "modules": Requirement(
        _modules, "Python frames of modules: record with `with_stack=True`, or `selftime run`"
    ),
    "workers": Requirement(
        _workers, "what workers of a DataLoader do: record with `selftime run --workers`"
    ),
}
"""Every need, by the name that a view or rule declares."""


def missing(trace: Trace, needs: tuple[Need, ...]) -> list[str]:
    """What of `needs` the recording lacks, as sentences that say how to get it."""
    return [NEEDS[need].remedy for need in needs if not NEEDS[need].present(trace)]
