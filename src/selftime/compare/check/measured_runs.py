"""Keeps what each step of a run took, with what has to be known of its machine to compare it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from selftime.analysis.recorded_cores import core_wait_share, cores_used_by_others
from selftime.array_types import Floats
from selftime.compare.check.step_measures import MEASURES, measure_steps
from selftime.compare.comparability import Comparability
from selftime.compare.run_figures import baseline_measures, run_measure
from selftime.compare.section_statistics import SectionedFigure
from selftime.run import Run
from selftime.trace import Trace

LEAST_CORE_WAIT: Final = 0.1
"""Share of the time without a core from which a run's times are those of other programs, too."""


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredRun:
    """Times and counts of the steps of one run, its figures, and the machine that it ran on."""

    source: str
    """Path of the recording."""
    comparability: Comparability
    measures: dict[str, Floats]
    """One value per steady step for each measure, such as `host_ms`, by the measure's name."""
    run_measures: dict[str, SectionedFigure] = field(default_factory=dict)
    """Figures of the run, by the name of the measure; empty without a ledger of the run."""
    load: float | None = None
    """Mean number of cores that other programs used meanwhile; None if it was not recorded."""
    core_wait: float | None = None
    """Share of the time in which the main thread was ready to run and had no core; None if
    unknown."""

    @property
    def waited_for_cores(self) -> bool:
        """Returns whether other programs had the cores for so long that times are theirs, too."""
        return self.core_wait is not None and self.core_wait > LEAST_CORE_WAIT

    @classmethod
    def from_trace(cls, trace: Trace) -> "MeasuredRun":
        told = {
            measure.name: measure.figure
            for measure in baseline_measures(trace.run)
            if measure.figure is not None
        }
        like = Comparability.from_trace(trace)
        load, wait = cores_used_by_others(trace), core_wait_share(trace)
        return cls(trace.source, like, measure_steps(trace), told, load, wait)

    @classmethod
    def from_numbers(
        cls, source: str, like: Comparability, numbers: dict[str, list[float]]
    ) -> "MeasuredRun":
        """Returns a run from the numbers that `numbers` returned; leaves out unknown measures."""
        values = {
            name: np.array(each, np.float64)
            for name, each in numbers.items()
            if name in MEASURES and each
        }
        told = {
            name: SectionedFigure(each[0], tuple(each[1:]))
            for name, each in numbers.items()
            if name not in MEASURES and each and run_measure(Run(), name) is not None
        }
        return cls(source, like, values, told)

    def numbers(self) -> dict[str, list[float]]:
        """Returns the values of each measure for JSON, rounded to 6 decimals."""
        numbers = {
            name: [round(value, 6) for value in self.measures[name].tolist()]
            for name in MEASURES
            if name in self.measures
        }
        for name, figure in self.run_measures.items():
            numbers[name] = [round(value, 6) for value in (figure.whole, *figure.sections)]
        return numbers

    def figure(self, name: str) -> float | None:
        """Returns one value of a measure for the whole run: the median of its steps.

        None if the run does not have it.
        """
        if name in self.measures:
            return float(np.median(self.measures[name]))
        return self.run_measures[name].whole if name in self.run_measures else None

    def as_json_data(self) -> dict[str, Any]:
        """Returns the run as a JSON object without its format."""
        return {
            "source": Path(self.source).name,
            "like": asdict(self.comparability),
            "load": None if self.load is None else round(self.load, 3),
            "core_wait": None if self.core_wait is None else round(self.core_wait, 4),
            "measures": self.numbers(),
        }


def is_time(measure_name: str) -> bool:
    """Returns whether a measure is a time, which depends on the machine and on its load.

    >>> is_time("host_ms"), is_time("steps.training.p95_ms"), is_time("wall_s"), is_time("copies")
    (True, True, True, False)
    """
    if measure_name in MEASURES:
        return not MEASURES[measure_name].is_exact
    measure = run_measure(Run(), measure_name)
    return measure is None or measure.unit == "ns"


def pooled_steps(runs: Sequence[MeasuredRun], name: str) -> Floats | None:
    """Returns the values of a measure in all steps of the runs; None if a run lacks them."""
    values = [run.measures[name] for run in runs if name in run.measures]
    return np.concatenate(values) if values and len(values) == len(runs) else None


def figures_of_runs(runs: Sequence[MeasuredRun], name: str) -> Floats:
    """Returns one value of a measure for each run that has it."""
    figures = (run.figure(name) for run in runs)
    return np.array([figure for figure in figures if figure is not None], np.float64)
