"""Computes figures of a run to compare or limit: wall time, times of its parts and steps."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from selftime.analysis.run.parts import run_parts
from selftime.analysis.run.slow_steps import steps_of_run
from selftime.analysis.run.step_kinds import timed_steps
from selftime.array_types import Floats
from selftime.compare.section_statistics import SectionedFigure, Statistic, sectioned_figure
from selftime.ledger_format import UNCOUNTED_STEPS_NAME, UNUSUAL_KIND_SUFFIX
from selftime.run import Run
from selftime.units import Unit

PART_NAMES: Final = (
    "start",
    "imports",
    "data",
    "first_batch",
    "compile",
    "steps",
    "data_wait",
    "evaluation",
    "checkpoint",
    "epoch_boundary",
    "garbage_collection",
    "logging",
    "processes",
    "recording",
    "end",
    "other",
)
"""The parts of a run."""

RUN_MEASURE_EXAMPLES: Final = (
    "wall_s",
    "parts.compile",
    "steps.training.median_ms",
    "steps.training.p95_ms",
    "steps.training.data_wait_ms",
    "steps.training.count",
    "slow_steps.count",
    "slow_steps.excess_s",
    "compilations",
)
"""Names of measures of a run; `parts` takes any part, `steps` any kind of step."""


@dataclass(frozen=True, slots=True)
class StepFigure:
    """A figure of the durations of steps of one kind."""

    name: str
    doc: str
    column: str
    """Column of the table of steps that the figure is computed from, in ns: durations or waits for
    data."""
    statistic: Statistic
    min_section: int
    """Smallest number of steps per section, when the series is divided to estimate the figure's
    error."""


def _percentile_95(values: Floats) -> float:
    return float(np.quantile(values, 0.95, method="nearest"))


STEP_FIGURES: Final = (
    StepFigure(
        "median",
        "The median duration of a step of this kind.",
        "own",
        lambda each: float(np.median(each)),
        5,
    ),
    StepFigure(
        "p95",
        "The 95th percentile of the durations of steps of this kind.",
        "own",
        _percentile_95,
        20,
    ),
    StepFigure(
        "data_wait",
        "The mean time that a step of this kind waits for its batch.",
        "data_wait",
        lambda each: float(np.mean(each)),
        5,
    ),
)
"""The figures of a kind of step whose certainty can be estimated."""


def steps_by_kind(run: Run) -> dict[str, pl.DataFrame]:
    """Returns the steps from which durations of each kind are computed, in order of time.

    The kind with most time comes first.
    """
    parts = timed_steps(run).partition_by("kind", maintain_order=True)
    parts.sort(key=lambda part: int(part["duration"].sum()), reverse=True)
    return {str(part["kind"][0]): part for part in parts}


def step_figure(steps: pl.DataFrame, figure: StepFigure) -> SectionedFigure:
    """Returns a figure of the steps of one kind, in ns."""
    series = steps[figure.column].cast(pl.Float64).to_numpy()
    return sectioned_figure(series, figure.statistic, figure.min_section)


@dataclass(frozen=True, slots=True)
class RunMeasure:
    """A figure of a run that a budget or a baseline can limit, by its name."""

    name: str
    doc: str
    unit: Unit
    """`ns` for times, `count` for counts."""
    ns_per_unit: float
    """Nanoseconds in the unit that the name ends with, such as 1e6 for `p95_ms`; 1 for counts."""
    figure: SectionedFigure | None
    """The figure in the unit that the name ends with; None if the run does not have it."""
    part: str | None = None
    """The part of the run whose time or number is measured; None for other measures."""


def run_measure(run: Run, name: str) -> RunMeasure | None:
    """Returns a run's measure by its name; None if there is no measure of this name."""
    if name == "wall_s":
        return RunMeasure(name, "Wall time.", "ns", 1e9, _one(run.wall_ns / 1e9))
    if name == "compilations":
        count = run.compilations.height
        return RunMeasure(name, "The number of compilations.", "count", 1, _one(count), "compile")
    first, _, rest = name.partition(".")
    if first == "parts" and rest in PART_NAMES:
        return _part_measure(run, name, rest)
    if first == "slow_steps":
        return _slow_step_measure(run, name)
    kind, dot, told = rest.rpartition(".")
    if first == "steps" and dot:
        return _step_measure(run, name, kind, told)
    return None


def baseline_measures(run: Run) -> Iterator[RunMeasure]:
    """Yields the measures of a run that a baseline stores.

    The wall time is that of a run that came to its end. Its parts are many, and small ones vary
    most, so none is stored.
    """
    if not run.source:
        return
    for kind, steps in steps_by_kind(run).items():
        if kind.endswith(UNUSUAL_KIND_SUFFIX) or kind == UNCOUNTED_STEPS_NAME:
            continue
        for figure in STEP_FIGURES:
            found = _measure_of_steps(f"steps.{kind}.{figure.name}_ms", figure, steps)
            if found.figure is not None and found.figure.spread is not None:
                yield found
    if run.is_whole:
        yield RunMeasure("wall_s", "Wall time.", "ns", 1e9, _one(run.wall_ns / 1e9))
    yield RunMeasure(
        "compilations",
        "The number of compilations.",
        "count",
        1,
        _one(run.compilations.height),
        "compile",
    )


def _part_measure(run: Run, name: str, part: str) -> RunMeasure:
    found = run_parts(run).filter(pl.col("part") == part)
    return RunMeasure(
        name, f"Time of the part {part}.", "ns", 1e9, _one(int(found["duration"].sum()) / 1e9), part
    )


def _slow_step_measure(run: Run, name: str) -> RunMeasure | None:
    slow = steps_of_run(run).filter(pl.col("excess") > 0)
    if name == "slow_steps.count":
        return RunMeasure(name, "The number of slow steps.", "count", 1, _one(slow.height))
    if name == "slow_steps.excess_s":
        excess = int(slow["excess"].sum()) / 1e9
        return RunMeasure(
            name,
            "The time by which all slow steps together exceed usual ones.",
            "ns",
            1e9,
            _one(excess),
        )
    return None


def _step_measure(run: Run, name: str, kind: str, told: str) -> RunMeasure | None:
    steps = steps_by_kind(run).get(kind)
    if told == "count":
        # Recorded steps count, too.
        all_of_kind = (run.segments["kind"].cast(pl.String) == kind).sum()
        return RunMeasure(
            name, f"The number of steps of the kind {kind}.", "count", 1, _one(int(all_of_kind))
        )
    figure = next((one for one in STEP_FIGURES if told == f"{one.name}_ms"), None)
    return None if figure is None else _measure_of_steps(name, figure, steps)


def _measure_of_steps(name: str, figure: StepFigure, steps: pl.DataFrame | None) -> RunMeasure:
    if steps is None or not steps.height:
        return RunMeasure(name, figure.doc, "ns", 1e6, None)
    found = step_figure(steps, figure)
    in_ms = SectionedFigure(found.whole / 1e6, tuple(each / 1e6 for each in found.sections))
    return RunMeasure(name, figure.doc, "ns", 1e6, in_ms)


def _one(value: float) -> SectionedFigure:
    return SectionedFigure(float(value), ())
