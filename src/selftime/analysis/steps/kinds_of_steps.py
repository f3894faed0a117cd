"""Tells the kinds of a trace's steps: steps that do other work, or take clearly another time.

Steps are of different kinds if only some of them run a backward pass or an optimizer; if a fifth of
their time is in operators that the others do not run; or if their durations fall into two groups
that are farther apart than each group is wide. A single long step is an outlier, and no kind.
"""

from itertools import pairwise
from typing import Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import device_work
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_filters import filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.array_types import Floats, Ints
from selftime.trace import Trace

KIND_OF_ALL_STEPS: Final = "all"
"""The kind of the steps of a trace whose steps are all alike."""

_MIN_SHARE_OF_COMMON_WORK: Final = 0.8
"""Smallest share (0 to 1) of each of two steps' time in operators that both run, for them to be of
one kind."""
_MIN_DURATION_RATIO: Final = 1.5
"""Smallest ratio of the durations next to the gap between two groups of steps."""
_MIN_STEPS_OF_OTHER_WORK: Final = 2
"""Smallest number of steps of a kind that is told by its operators."""
_MIN_STEPS_OF_OTHER_LENGTH: Final = 3
"""Smallest number of steps of a kind that is told by its duration alone: fewer may be chance."""
_MAX_KINDS: Final = 4
"""Largest number of kinds: where more are found, steps vary, and only phases tell them apart."""

_PHASE_NAMES: Final = {
    (True, True): "training",
    (True, False): "without optimizer",
    (False, True): "optimizer only",
    (False, False): "forward only",
}
"""The name of a kind, by whether its steps run a backward pass, and an optimizer."""


@cached_per_trace
def kinds_of_steps(trace: Trace) -> pl.DataFrame:
    """Returns the kind of each step: as many rows as `steps_with_counted_flags`, in its order.

    Columns: number, begin and done as there; kind, its name, null of steps that are no example of
    their kind: partial ones, and the first; is_chosen, whether the step is one of those that an
    account of its kind is made of. These are the counted steps of the kind, if it has any.
    """
    steps = steps_with_counted_flags(trace)
    is_outlier = pl.col("note").str.starts_with("an outlier").fill_null(value=False)
    rows = np.flatnonzero(steps.select(pl.col("counted") | is_outlier).to_series().to_numpy())
    work = _work_of_steps(trace, steps)
    phases = _phases_of_steps(trace, steps)
    times = (steps["done"] - steps["begin"]).to_numpy().astype(np.float64)
    kinds = _kind_names(rows, phases, work, times)
    table = steps.select("number", "begin", "done", "counted").with_columns(
        kind=pl.Series([kinds.get(row) for row in range(steps.height)], dtype=pl.String)
    )
    has_counted = pl.col("counted").any().over("kind")
    is_chosen = pl.col("kind").is_not_null() & (pl.col("counted") | ~has_counted)
    return table.with_columns(is_chosen=is_chosen).drop("counted")


def _step_of_instants(steps: pl.DataFrame, instants: Ints) -> Ints:
    """Returns the row of the step that each instant (ns) on the host is in; -1 for none."""
    start, end = steps["start"].to_numpy(), steps["end"].to_numpy()
    row = np.searchsorted(start, instants, side="right") - 1
    inside = (row >= 0) & (instants < np.append(end, 0)[row])
    return np.where(inside, row, -1)


def _phases_of_steps(trace: Trace, steps: pl.DataFrame) -> list[tuple[bool, bool]]:
    """Returns for each step whether it runs a backward pass, and whether an optimizer.

    What begins as a step ends is the step's as well: the recording was cut there.
    """
    ends = steps["end"].to_numpy()
    host = slices_on(trace, "host")
    flags = []
    for is_match in (names.is_backward_node, names.is_optimizer_step):
        begun = filter_by_name(host, is_match)["start"].to_numpy()
        at = _step_of_instants(steps, begun)
        runs = np.bincount(at[at >= 0], minlength=steps.height) > 0
        flags.append(runs | np.isin(ends, begun))
    return list(zip(*(found.tolist() for found in flags), strict=True))


def _work_of_steps(trace: Trace, steps: pl.DataFrame) -> list[dict[str, float]]:
    """Returns each step's time (ns) in each operator: on the device, without one on the CPU."""
    work = device_work(trace)
    if work.height:
        operator = trace.slices["name"].gather(work["operator"]).cast(pl.String)
        name = pl.select(pl.coalesce(operator, work["name"].cast(pl.String))).to_series()
        begun = pl.select(pl.coalesce(work["launched"], work["start"])).to_series()
        time = work["duration"]
    else:
        host = slices_on(trace, "host", ended=True)
        host = host.filter(pl.col("category").is_in(list(names.OPERATOR_CATEGORIES)))
        name, begun, time = host["name"].cast(pl.String), host["start"], host["self"]
    row = _step_of_instants(steps, begun.to_numpy())
    table = pl.DataFrame({"row": row, "name": name, "time": time}).filter(pl.col("row") >= 0)
    found: list[dict[str, float]] = [{} for _ in range(steps.height)]
    for own_row, own_name, own_time in (
        table.group_by("row", "name").agg(pl.col("time").sum()).rows()
    ):
        found[own_row][own_name] = float(own_time or 0)
    return found


def _kind_names(
    rows: Ints,
    phases: list[tuple[bool, bool]],
    work: list[dict[str, float]],
    times: Floats,
) -> dict[int, str]:
    """Returns the name of the kind of each of some steps, by the step's row."""
    by_phase: dict[tuple[bool, bool], list[int]] = {}
    for row in rows.tolist():
        by_phase.setdefault(phases[row], []).append(row)
    groups = {
        phase: [
            part for alike in _alike_in_work(own, work) for part in _alike_in_time(alike, times)
        ]
        for phase, own in by_phase.items()
    }
    if sum(map(len, groups.values())) > _MAX_KINDS:
        groups = {phase: [own] for phase, own in by_phase.items()}
    return {
        row: name
        for phase, parts in groups.items()
        for name, part in _named_parts(_phase_name(phase, by_phase), parts, times)
        for row in part
    }


def _phase_name(
    phase: tuple[bool, bool], by_phase: dict[tuple[bool, bool], list[int]]
) -> str | None:
    """Returns what tells steps of a phase from the others; None if all are of it."""
    return _PHASE_NAMES[phase] if len(by_phase) > 1 else None


def _named_parts(
    phase: str | None, parts: list[list[int]], times: Floats
) -> list[tuple[str, list[int]]]:
    """Returns the parts of a phase with their names, the steps that take least time first."""
    if len(parts) == 1:
        return [(phase or KIND_OF_ALL_STEPS, parts[0])]
    ordered = sorted(parts, key=lambda part: float(np.median(times[part])))
    words = ("short", "long") if len(parts) == 2 else [str(n + 1) for n in range(len(parts))]
    return [
        (f"{phase}, {word}" if phase else word, part)
        for word, part in zip(words, ordered, strict=True)
    ]


def _alike_in_work(rows: list[int], work: list[dict[str, float]]) -> list[list[int]]:
    """Returns groups of steps that run mostly the same operators, the largest group first.

    A step that is alone stays with the largest group.
    """
    groups: list[list[int]] = []
    for row in rows:
        alike = (own for own in groups if _do_mostly_the_same(work[own[0]], work[row]))
        group = next(alike, None)
        if group is None:
            groups.append([row])
        else:
            group.append(row)
    groups.sort(key=len, reverse=True)
    large = [group for group in groups if len(group) >= _MIN_STEPS_OF_OTHER_WORK]
    if len(large) < 2:
        return [rows]
    single = [row for group in groups if len(group) < _MIN_STEPS_OF_OTHER_WORK for row in group]
    return [sorted(large[0] + single), *large[1:]]


def _do_mostly_the_same(one: dict[str, float], other: dict[str, float]) -> bool:
    """Returns whether two steps spend most of their time in operators that both of them run."""
    return all(
        sum(time for name, time in own.items() if name in others)
        >= _MIN_SHARE_OF_COMMON_WORK * sum(own.values())
        for own, others in ((one, other), (other, one))
    )


def _alike_in_time(rows: list[int], times: Floats) -> list[list[int]]:
    """Returns the steps as two groups if their durations are clearly of two lengths, else as one.

    The gap between the groups must be wider than either group.
    """
    ordered = sorted(rows, key=lambda row: float(times[row]))
    sizes = range(_MIN_STEPS_OF_OTHER_LENGTH, len(ordered) - _MIN_STEPS_OF_OTHER_LENGTH + 1)
    gaps = [float(after - before) for before, after in pairwise(times[ordered])]
    cut = max(sizes, key=lambda size: gaps[size - 1], default=None)
    if cut is None:
        return [rows]
    low, high = ordered[:cut], ordered[cut:]
    widths = [float(times[part[-1]] - times[part[0]]) for part in (low, high)]
    is_far = times[high[0]] >= _MIN_DURATION_RATIO * times[low[-1]]
    return [sorted(low), sorted(high)] if is_far and gaps[cut - 1] > max(widths) else [rows]
