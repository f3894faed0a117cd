"""Checks steps: how many count for medians, and which ones lost their device work."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.health.recording_under_check import (
    HealthCheckResult,
    RecordingUnderCheck,
    counted_noun_text,
    example_slice_ids_text,
    verdict_on_faulty_share,
    worst_verdict,
)
from selftime.analysis.slice_filters import filter_by_name
from selftime.array_types import Ints
from selftime.units import count_text

_MIN_STEPS_FOR_MEDIANS: Final = 3
"""Smallest number of steps that must count for medians, so that their variation can be estimated.
"""
_MIN_SHARE_OF_USUAL_STEP_WORK: Final = 0.5
"""Share (0 to 1) of the median number of launching operators from which a step must have device
work.
"""
_MAX_NAMED_STEPS: Final = 8


def check_step_count(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports how steps were found in the trace, and how many of them count for medians."""
    found = recording.steps
    if not found.height:
        return
    source = str(found["source"][0])
    if source == "window":
        text = (
            "no steps: the whole recording counts as one step, so variation is unknown; give a "
            "schedule, and call `prof.step()` once a step"
        )
        yield HealthCheckResult(
            "steps", "degraded", text, float(found.height), "variation of steps and of savings"
        )
        return
    counted = int(found["counted"].sum())
    text = f"{counted_noun_text(found.height, 'step')}, found by the {source}"
    if counted < found.height:
        text = f"{text}; {count_text(counted)} count ({_reasons_steps_are_not_counted(found)})"
    yield from _check_unusual_step_marks(found, source)
    if counted < _MIN_STEPS_FOR_MEDIANS:
        text = f"{text}: too few to estimate variation; record {_MIN_STEPS_FOR_MEDIANS + 1} or more"
        yield HealthCheckResult(
            "steps", "degraded", text, float(found.height), "variation of steps and of savings"
        )
    else:
        yield HealthCheckResult("steps", "good", text, float(found.height))
    yield from _check_unused_step_marks(recording)


def _check_unusual_step_marks(steps: pl.DataFrame, source: str) -> Iterator[HealthCheckResult]:
    """Reports step annotations that are only on the device, and step numbers that restart."""
    if source == "device":
        text = (
            "the profiler's steps are marked on the device alone: each begins with the first "
            "launch of its work, which may be later than its begin on the host"
        )
        yield HealthCheckResult(
            "device_steps", "degraded", text, float(steps.height), "host time of steps"
        )
    again = int((steps["number"].diff() <= 0).sum())
    if again:
        text = (
            f"step numbers restart {counted_noun_text(again, 'time')}: the profiler was started "
            "again, or there were several; steps are identified by their times"
        )
        yield HealthCheckResult("step_numbers", "degraded", text, float(again), "numbers of steps")


def _reasons_steps_are_not_counted(steps: pl.DataFrame) -> str:
    """Returns text that says why steps are left out of medians, with the first step per reason."""
    why = steps.filter(~pl.col("counted")).group_by("note", maintain_order=True)
    rows = why.agg(pl.col("number").first(), pl.len()).rows()
    return "; ".join(
        f"step {number}" + (f" and {count - 1} more" if count > 1 else "") + f": {note}"
        for note, number, count in rows[:3]
    )


def _check_unused_step_marks(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports step annotations that define no steps: on other threads or processes, or nested."""
    marks = filter_by_name(
        recording.host_slices, lambda name: names.profiler_step_number(name) is not None
    )
    found = recording.steps
    rest = marks.height - found.height
    if str(found["source"][0]) != "profiler" or rest <= 0:
        return
    chosen = recording.steps["start"]
    others = marks.filter(~pl.col("start").is_in(chosen.implode()))["id"]
    text = (
        f"{counted_noun_text(rest, 'more mark')} of steps on other threads, in other processes, or "
        "within steps: several profilers, or several loops; one consistent set is used"
    )
    yield HealthCheckResult(
        "other_steps", "degraded", text, float(rest), "steps", example_slice_ids_text(others)
    )


def check_steps_without_work(recording: RecordingUnderCheck) -> Iterator[HealthCheckResult]:
    """Reports steps without device work whose operators launch device work in other steps.

    They are recognised by operators that launch device work in other steps. A step that only works
    on the host is not reported.
    """
    found = recording.steps
    has = found["device_slices"].to_numpy() > 0
    if found.height <= 1 or not has.any() or has.all():
        return
    work = _launching_operator_counts(recording, found)
    cut = found["note"].str.starts_with("partial").fill_null(value=False).to_numpy()
    bare = ~has & ~cut & (work > 0) & (work >= _MIN_SHARE_OF_USUAL_STEP_WORK * np.median(work[has]))
    if not bare.any():
        return
    numbers = found.filter(pl.Series(bare))["number"].to_list()
    share = len(numbers) / found.height
    told = ", ".join(map(str, numbers[:_MAX_NAMED_STEPS])) + (
        ", …" if len(numbers) > _MAX_NAMED_STEPS else ""
    )
    text = (
        f"{count_text(len(numbers))} of {count_text(found.height)} steps have no device work, "
        f"though their operators launch it in others (steps {told})"
    )
    affects = "device time of steps, idle, utilisation"
    yield HealthCheckResult(
        "empty_steps",
        worst_verdict("degraded", verdict_on_faulty_share(share)),
        text,
        share,
        affects,
    )


def _launching_operator_counts(recording: RecordingUnderCheck, steps: pl.DataFrame) -> Ints:
    """Returns for each step how many operators it ran whose names launch device work elsewhere."""
    by = recording.ended_work["operator"].drop_nulls().unique()
    kinds = recording.trace.slices["name"].gather(by).unique()
    begins = recording.operator_starts.filter(pl.col("name").is_in(kinds.implode()))["start"]
    when = np.sort(begins.to_numpy())
    start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    return np.asarray(np.searchsorted(when, end) - np.searchsorted(when, start))
