"""Writes the values of the measures of a check in their units."""

from selftime import units
from selftime.compare.check.account_measures import BUDGET_MEASURES
from selftime.compare.run_figures import run_measure
from selftime.run import Run


def measure_value_text(measure: str, value: float | None) -> str:
    """Returns the value of a measure as text in the measure's unit."""
    unit, factor = _unit_and_factor(measure)
    return "unknown" if value is None else units.value_text(value * factor, unit)


def measure_value_texts(measure: str, first: float | None, second: float | None) -> tuple[str, str]:
    """Returns two values of a measure as text, with as many digits as tell them apart."""
    if first is None or second is None:
        return measure_value_text(measure, first), measure_value_text(measure, second)
    unit, factor = _unit_and_factor(measure)
    return units.texts_that_differ(first * factor, second * factor, unit)


def measure_doc(measure: str) -> str:
    """Returns what a measure of a step or of the run is, as a sentence."""
    of_run = run_measure(Run(), measure)
    return BUDGET_MEASURES[measure].doc if of_run is None else of_run.doc


def _unit_and_factor(measure: str) -> tuple[units.Unit, float]:
    """Returns the unit in which a measure is written, and the factor to it from its own."""
    of_run = run_measure(Run(), measure)
    if of_run is not None:
        return of_run.unit, of_run.ns_per_unit
    if BUDGET_MEASURES[measure].is_exact:
        return BUDGET_MEASURES[measure].unit, 1.0
    return "ns", 1e6
