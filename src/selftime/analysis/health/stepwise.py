"""Steps: how many can be counted, and which have lost their device work."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.health.checks import Check, examples, graded, several, worst
from selftime.analysis.health.recording import Recording
from selftime.analysis.slice_filters import filter_by_name
from selftime.arrays import Ints
from selftime.units import count_text

_LEAST_COUNTED: Final = 3
"""Fewer steps show no spread: what varies cannot be told from what does not."""
_LIKE: Final = 0.5
"""A step with this share of the others' launching operators did the same on the device."""
_SHOWN: Final = 8


def steps(recording: Recording) -> Iterator[Check]:
    """What tells the steps, and how many of them count."""
    found = recording.steps
    if not found.height:
        return
    source = str(found["source"][0])
    if source == "window":
        text = (
            "no steps: the whole recording counts as one, without a spread; give a schedule, and "
            "call `prof.step()`"
        )
        yield Check("steps", "degraded", text, float(found.height), "spread, noise of savings")
        return
    counted = int(found["counted"].sum())
    text = f"{several(found.height, 'step')}, found by the {source}"
    if counted < found.height:
        text = f"{text}; {count_text(counted)} count ({_notes(found)})"
    yield from _doubted(found, source)
    if counted < _LEAST_COUNTED:
        text = f"{text}: too few to estimate variation; record {_LEAST_COUNTED + 1} or more"
        yield Check("steps", "degraded", text, float(found.height), "spread, noise of savings")
    else:
        yield Check("steps", "good", text, float(found.height))
    yield from _left_out(recording)


def _doubted(found: pl.DataFrame, source: str) -> Iterator[Check]:
    """What is odd about marks of steps that are used nevertheless."""
    if source == "device":
        text = (
            "the profiler's steps are marked on the device alone: each begins with the first "
            "launch of its work, which may be later than its begin on the host"
        )
        yield Check("device_steps", "degraded", text, float(found.height), "host time of steps")
    again = int((found["number"].diff() <= 0).sum())
    if again:
        text = (
            f"the numbers of steps begin anew {several(again, 'time')}: the profiler was started "
            "again, or there were several; steps are told apart by their times"
        )
        yield Check("step_numbers", "degraded", text, float(again), "numbers of steps")


def _notes(found: pl.DataFrame) -> str:
    """Why steps are not counted, each reason once, with its first step."""
    why = found.filter(~pl.col("counted")).group_by("note", maintain_order=True)
    rows = why.agg(pl.col("number").first(), pl.len()).rows()
    return "; ".join(
        f"step {number}" + (f" and {count - 1} more" if count > 1 else "") + f": {note}"
        for note, number, count in rows[:3]
    )


def _left_out(recording: Recording) -> Iterator[Check]:
    """Marks of steps on other threads, or within others: of another profiler or loop."""
    marks = filter_by_name(recording.host, lambda name: names.step_number(name) is not None)
    found = recording.steps
    rest = marks.height - found.height
    if str(found["source"][0]) != "profiler" or rest <= 0:
        return
    chosen = recording.steps["start"]
    others = marks.filter(~pl.col("start").is_in(chosen.implode()))["id"]
    text = (
        f"{several(rest, 'more mark')} of steps on other threads, in other processes, or "
        "within steps: several profilers, or several loops; one consistent set is used"
    )
    yield Check("other_steps", "degraded", text, float(rest), "steps", examples(others))


def steps_without_work(recording: Recording) -> Iterator[Check]:
    """Steps that did on the host what others did, and have no device work while those have.

    Told by the operators that launch device work elsewhere, so that a step that keeps to the host
    is not meant.
    """
    found = recording.steps
    has = found["device_slices"].to_numpy() > 0
    if found.height <= 1 or not has.any() or has.all():
        return
    work = _launching(recording, found)
    cut = found["note"].str.starts_with("partial").fill_null(value=False).to_numpy()
    bare = ~has & ~cut & (work > 0) & (work >= _LIKE * np.median(work[has]))
    if not bare.any():
        return
    numbers = found.filter(pl.Series(bare))["number"].to_list()
    share = len(numbers) / found.height
    told = ", ".join(map(str, numbers[:_SHOWN])) + (", …" if len(numbers) > _SHOWN else "")
    text = (
        f"{count_text(len(numbers))} of {count_text(found.height)} steps have no device work, "
        f"though their operators launch it in others (steps {told})"
    )
    affects = "device time of steps, idle, utilisation"
    yield Check("empty_steps", worst("degraded", graded(share)), text, share, affects)


def _launching(recording: Recording, found: pl.DataFrame) -> Ints:
    """How many operators of a kind that launches device work began in each step."""
    by = recording.work["operator"].drop_nulls().unique()
    kinds = recording.trace.slices["name"].gather(by).unique()
    begins = recording.operators.filter(pl.col("name").is_in(kinds.implode()))["start"]
    when = np.sort(begins.to_numpy())
    start, end = found["start"].to_numpy(), found["end"].to_numpy()
    return np.asarray(np.searchsorted(when, end) - np.searchsorted(when, start))
