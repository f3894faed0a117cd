"""Predicts the step time after changes that a user names, by one simulation of all of them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import Any, Final

from selftime.advice.advise import health_of_trace
from selftime.advice.detectors.gradient_communication import communication_transfers
from selftime.advice.replay import Change, Replay, replay_of
from selftime.advice.replay.bound_after_changes import bound_by_after
from selftime.advice.savings.saving import Saving
from selftime.advice.savings.what_if_savings import step_after_changes
from selftime.advice.step_statistics import StepStatistics, step_statistics
from selftime.advice.what_if.device_estimate import DeviceEstimate
from selftime.advice.what_if.matched_names import MatchedName, matched_work
from selftime.advice.what_if.named_classes import work_of_class
from selftime.advice.what_if.requested_changes import (
    ChangeKind,
    RequestedChange,
    requested_changes,
)
from selftime.advice.what_if.selected_work import SelectedWork, work_of_pattern
from selftime.analysis.slice_filters import covered_time
from selftime.analysis.steps.bound_by import BoundBy, step_bound_by
from selftime.errors import UnreadableTrace
from selftime.intervals import intersect, length
from selftime.trace import Trace
from selftime.units import rounded_json

FORMAT: Final = "selftime.what_if/1"
"""Name and version of the JSON format, described in `reports/schemas/what_if.json`."""

_NO_SCALES: Final[Mapping[str, float]] = MappingProxyType({})
_NO_ESTIMATES: Final[Mapping[str, DeviceEstimate]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class AppliedChange:
    """A change that was asked for, and what it matched, in ms per measured step as recorded."""

    change: ChangeKind
    pattern: str
    kept_share: float
    """Share of the time that is left, 0 to 1; 1 for work that is hidden."""
    host_ms: float
    device_ms: float
    name_count: int
    names: tuple[MatchedName, ...]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The typical step of a trace, now and after changes, in ms."""

    trace: str
    """Where the trace was read from."""
    basis: str
    """`unrecorded` if the measured cost of recording is taken off the steps, else `recorded`."""
    step_ms: float
    """Duration of the typical step now, in ms."""
    predicted_ms: float
    """Predicted duration of the typical step after all changes, in ms."""
    predicted_low_ms: float
    """Lower end of the interval of `predicted_ms`."""
    predicted_high_ms: float
    """Upper end of the interval of `predicted_ms`."""
    saving: Saving
    bound_by: BoundBy | None
    """What bounds the steps as recorded; None if unknown."""
    bound_by_after: BoundBy | None
    """What bounds the steps after the changes; None if unknown."""
    changes: tuple[AppliedChange, ...]

    def __str__(self) -> str:
        """Returns the prediction as the text that the terminal shows."""
        from selftime.reports.what_if import as_text  # noqa: PLC0415 - reports show predictions

        return as_text({self.trace: self})

    def to_json(self) -> str:
        """Returns the prediction as a document of the format `selftime.what_if/1`."""
        return predictions_as_json({self.trace: self})


def what_if(
    trace: Trace,
    *,
    scale: Mapping[str, float] = _NO_SCALES,
    remove: Iterable[str] = (),
    hide: Iterable[str] = (),
) -> WhatIf:
    """Predicts the step time of a recorded program after changes, before anybody makes them.

    A pattern is a glob on names of operators, annotations, runtime calls, kernels and copies, such
    as `aten::conv*`, or a source line, such as `train.py:31`. Of an operator it means the host time
    with all that runs in it, and the device work launched there; of a kernel its device time. Some
    names stand for a class of time: `syncs`, `copies`, `launches`, `data`, `garbage_collection` and
    `communication`. All changes are simulated together; shares of changes that overlap multiply.
    The saving is bounded as that of a finding: by the step without profiler, and by its floor.

    Args:
        trace: The trace.
        scale: Maps patterns to the share of their time that is left, 0 to 1.
        remove: Patterns whose time goes, with the waits for a device in it.
        hide: What runs beside other work from now on: `communication`. It still takes its time, and
            no step is shorter than that.

    Raises:
        UsageError: A pattern matches nothing, a factor is no share, or there is no change.
        UnreadableTrace: The trace is unusable, or holds no step whose duration is known.
    """
    asked = requested_changes(scale, remove, hide)
    step_stats = _step_statistics_or_error(trace)
    replay = replay_of(trace)
    found = [(change, _work_of_change(trace, change)) for change in asked]
    changes = tuple(one for change, work in found for one in _changes_of(change, work))
    step = step_after_changes(
        trace, step_stats, changes, _hidden_ms(trace, replay, step_stats, asked)
    )
    bound_by = step_bound_by(trace)  # of unrecorded device work neither is known
    return WhatIf(
        trace=trace.source,
        basis="unrecorded" if step.is_unrecorded else "recorded",
        step_ms=step.step_ms,
        predicted_ms=step.predicted_ms,
        predicted_low_ms=step.predicted_low_ms,
        predicted_high_ms=step.predicted_high_ms,
        saving=step.saving,
        bound_by=bound_by,
        bound_by_after=None if bound_by is None else bound_by_after(replay, *changes),
        changes=tuple(_applied_change(trace, replay, change, work) for change, work in found),
    )


def _step_statistics_or_error(trace: Trace) -> StepStatistics:
    health = health_of_trace(trace)
    if health.verdict == "unusable":
        reasons = "; ".join(note.text for note in health.notes)
        raise UnreadableTrace(f"`{trace.source}` cannot be simulated: {reasons}")
    step_stats = step_statistics(trace)
    if step_stats is None:
        raise UnreadableTrace(
            f"`{trace.source}` holds no step whose duration is known; record some with "
            "`selftime run`"
        )
    return step_stats


def _work_of_change(trace: Trace, change: RequestedChange) -> SelectedWork:
    if change.class_name is not None:
        return work_of_class(trace, change.class_name)
    return work_of_pattern(trace, change.pattern)


def _changes_of(change: RequestedChange, work: SelectedWork) -> tuple[Change, ...]:
    """Returns the changes to simulate; hidden work is taken out, as nothing waits for it."""
    return work.changes(0.0 if change.kind == "hide" else change.kept_share)


def _hidden_ms(
    trace: Trace,
    replay: Replay,
    step_stats: StepStatistics,
    asked: tuple[RequestedChange, ...],
) -> float:
    """Returns how long hidden communication still takes per typical step, in ms."""
    if not any(change.kind == "hide" for change in asked):
        return 0.0
    kept = 1.0
    for change in asked:
        if change.kind != "hide" and change.class_name == "communication":
            kept *= change.kept_share
    times = intersect(covered_time(communication_transfers(trace)), replay.spans)
    mean_ms = length(times) / 1e6 / max(len(replay.counted), 1)
    return kept * step_stats.scaled_to_typical_step(mean_ms)


def _applied_change(
    trace: Trace, replay: Replay, change: RequestedChange, work: SelectedWork
) -> AppliedChange:
    matched = matched_work(trace, replay, work)
    return AppliedChange(
        change=change.kind,
        pattern=change.pattern,
        kept_share=change.kept_share,
        host_ms=matched.host_ms,
        device_ms=matched.device_ms,
        name_count=matched.name_count,
        names=matched.names,
    )


def predictions_as_json(
    predictions: Mapping[str, WhatIf], on_device: Mapping[str, DeviceEstimate] = _NO_ESTIMATES
) -> str:
    """Returns predictions by the name of their trace as one document of `selftime.what_if/1`.

    Estimates of steps on a device are the key `on_device`, which is left out where there is none.
    """
    document: dict[str, Any] = {"format": FORMAT, "traces": _as_rows(predictions)}
    if on_device:
        document["on_device"] = _as_rows(on_device)
    return json.dumps(rounded_json(document), allow_nan=False)


def _as_rows(results: Mapping[str, WhatIf] | Mapping[str, DeviceEstimate]) -> list[dict[str, Any]]:
    return [{**asdict(one), "trace": name} for name, one in results.items()]
