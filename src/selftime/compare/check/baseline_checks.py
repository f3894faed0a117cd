"""Compares runs with those of a baseline: counts always, times if asked.

Counts of events and bytes do not depend on the load of the machine, and are compared step by step.
What happens in every tenth step only may be in one recording and not in another, so a count exceeds
the baseline if every step takes more than any of the baseline, or more steps do than chance has it:
of n and m steps of one program the k largest are all among the m with the probability
C(m, k) / C(n + m, k) (Rosenbaum, "Tables for a nonparametric test of location", 1954).

Times are those of runs, and are judged by how runs vary. They are compared only with runs on the
same kind of machine, and with a load that could explain a difference none is claimed: other
programs make steps longer, never shorter.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb
from typing import Final

import numpy as np

from selftime.array_types import Floats
from selftime.compare.check.baseline_files import Baseline
from selftime.compare.check.measured_runs import (
    LEAST_CORE_WAIT,
    MeasuredRun,
    figures_of_runs,
    is_time,
    pooled_steps,
)
from selftime.compare.check.run_checks import CheckState, MeasureCheck
from selftime.compare.check.step_measures import MEASURES
from selftime.compare.comparability import (
    Comparability,
    least_difference_of_load,
    property_differences,
)
from selftime.compare.run_differences import MIN_RUNS_TO_ESTIMATE_VARIATION, shift_between_runs
from selftime.compare.statistical_significance import CONFIDENCE_LEVEL
from selftime.units import range_text, share_text, tenths_text, whole_percent_text

_CHANCE: Final = 1 - CONFIDENCE_LEVEL
"""Probability with which a check calls any measure of an unchanged program too large."""

_LOAD_EXPLAINS: Final = {
    True: "the load may have made it slower",
    False: "the load then may hide that it is slower now",
}
"""What a load explains, by whether a time is over."""
_LARGEST_HIDDEN_SLOWDOWN: Final = 0.5
"""Largest slow-down that may pass unseen for a time to be within: a gate that cannot see half as
much again is none."""


def check_count(
    name: str, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]
) -> MeasureCheck:
    """Compares a count that all later runs and a run of the baseline have."""
    old, new = (_counts(runs, name) for runs in (before, after))
    now, limit = float(new.max()), float(old.max())
    exceeding = int(np.count_nonzero(new > limit))
    state: CheckState = "within"
    is_every_step = exceeding == new.size and (name not in MEASURES or min(old.size, new.size) > 1)
    if is_every_step or (exceeding and _chance_of_largest(old, new, exceeding) < _CHANCE):
        state = "over"
    elif exceeding == new.size:
        why = "one step alone, against which it is held, may be unlike the others; record more"
        return MeasureCheck(name, "baseline", "unknown", now, limit, now - limit, why=why)
    elif now < limit and float(np.median(new)) < float(np.median(old)):
        state = "better"
    return MeasureCheck(name, "baseline", state, now, limit, now - limit)


def note_on_larger_steps(
    check: MeasureCheck, before: Sequence[MeasuredRun], after: Sequence[MeasuredRun]
) -> str:
    """Returns a sentence if some steps take more than the baseline and chance explains it."""
    if (
        check.state == "over"
        or check.now is None
        or check.limit is None
        or check.now <= check.limit
    ):
        return ""
    old, new = (_counts(runs, check.measure) for runs in (before, after))
    exceeding = int(np.count_nonzero(new > check.limit))
    chance = _chance_of_largest(old, new, exceeding)
    return (
        f"{exceeding} of {new.size} steps exceed the baseline's `{check.measure}`; what happens in "
        f"some steps only is seen so with a chance of {whole_percent_text(chance)}, so it is within"
    )


def _counts(runs: Sequence[MeasuredRun], name: str) -> Floats:
    values = pooled_steps([run for run in runs if name in run.measures], name)
    return figures_of_runs(runs, name) if values is None else values


def _chance_of_largest(before: Floats, after: Floats, count: int) -> float:
    """Returns the chance that the `count` largest of all values are all in `after`."""
    return comb(after.size, count) / comb(before.size + after.size, count)


@dataclass(frozen=True, slots=True)
class TimeComparison:
    """The runs of a baseline whose times can be compared with those of later runs, or why none."""

    before: tuple[MeasuredRun, ...]
    after: tuple[MeasuredRun, ...]
    refusal: str
    """Why times cannot be compared; empty if they can."""

    @classmethod
    def of_runs(cls, baseline: Baseline, after: Sequence[MeasuredRun]) -> "TimeComparison":
        like = after[0].comparability
        unlike = [tuple(_reasons_not_to_compare(run.comparability, like)) for run in baseline.runs]
        pairs = zip(baseline.runs, unlike, strict=True)
        alike = tuple(run for run, reasons in pairs if not reasons)
        if len(alike) >= MIN_RUNS_TO_ESTIMATE_VARIATION:
            return cls(alike, tuple(after), "")
        reasons = next((reasons for reasons in unlike if reasons), ())
        if reasons:
            return cls((), tuple(after), "; ".join(reasons))
        count = f"{len(alike)} run{'' if len(alike) == 1 else 's'}"
        return cls(
            (),
            tuple(after),
            f"the baseline is of {count}, which does not tell how runs vary; times need at least "
            f"{MIN_RUNS_TO_ESTIMATE_VARIATION}, such as by `--runs 5 --write-baseline FILE`",
        )

    def check(self, name: str, max_regress: float, measure_count: int) -> MeasureCheck:
        """Compares a time, one of `measure_count` that share the chance of a false alarm."""
        old, new = (figures_of_runs(runs, name) for runs in (self.before, self.after))
        shift = shift_between_runs(old, new)
        if self.refusal or shift is None:
            now = float(np.median(new)) if new.size else None
            few = f"{old.size} runs of the baseline have it, which does not tell how runs vary"
            return MeasureCheck(name, "baseline", "unknown", now, None, why=self.refusal or few)
        state: CheckState = "within"
        if shift.chance < _CHANCE / measure_count:
            state = "over" if shift.difference > max_regress * shift.before else "within"
        elif 1 - shift.chance < _CHANCE / measure_count:
            state = "better"
        found = MeasureCheck(
            name,
            "baseline",
            state,
            shift.after,
            shift.before,
            shift.difference,
            shift.low,
            shift.high,
        )
        blind = shift.least_increase_told(_CHANCE / measure_count)
        why = self._load_that_explains(is_over=state == "over")
        if not why and state == "within" and (blind is None or blind > _LARGEST_HIDDEN_SLOWDOWN):
            hidden = "no slow-down" if blind is None else f"no slow-down below {share_text(blind)}"
            why = f"runs vary so much that {hidden} is told from chance; record more runs"
        return replace(found, state="unknown", why=why) if why else found

    def _load_that_explains(self, *, is_over: bool) -> str:
        """Returns why the load of the machine forbids a verdict; empty if it does not.

        A slower time is not told of runs that waited for cores, or with more load than any of the
        baseline; that a time is within is not, if that is so of the baseline.
        """
        (old, old_waits), (new, new_waits) = (
            (_known(runs, "load"), _known(runs, "core_wait")) for runs in (self.before, self.after)
        )
        for waits, whose in ((new_waits, "the program"), (old_waits, "that of the baseline")):
            if waits and is_over == (waits is new_waits) and np.median(waits) > LEAST_CORE_WAIT:
                told = f"{whose} waited for a core {_range_text('core_wait', waits)} of the time"
                return f"{told}, which others had: {_LOAD_EXPLAINS[is_over]}"
        if not (old and new):
            return ""
        more = float(np.mean(new)) - max(old) if is_over else min(old) - float(np.mean(new))
        if more < least_difference_of_load(self.after[0].comparability.cores):
            return ""
        then = f"{_range_text('load', old)} in the baseline"
        told = f"other programs used {_range_text('load', new)}, and {then}"
        return f"{told}: {_LOAD_EXPLAINS[is_over]}"

    def load_sentence(self) -> str:
        """Returns a sentence on the load during the runs; says if it is not known."""
        return load_sentence(self.after, self.before)


def load_sentence(after: Sequence[MeasuredRun], before: Sequence[MeasuredRun] = ()) -> str:
    """Returns a sentence on the load of the machine during runs, and during earlier ones."""
    new, waits = _known(after, "load"), _known(after, "core_wait")
    cores = after[0].comparability.cores
    if not new:
        return "how much other programs used the cores meanwhile is not known"
    of = "" if cores is None else f" of {tenths_text(cores)}"
    text = f"other programs used {_range_text('load', new)}{of} meanwhile"
    if waits:
        text += f", and the program waited for a core {_range_text('core_wait', waits)} of the time"
    old = _known(before, "load")
    return f"{text}; they used {_range_text('load', old)} in the baseline" if old else text


def _known(runs: Sequence[MeasuredRun], name: str) -> list[float]:
    """Returns the known values of `load` or `core_wait`."""
    values = (getattr(run, name) for run in runs)
    return [value for value in values if value is not None]


def _range_text(name: str, values: Sequence[float]) -> str:
    """Returns values of `load` or `core_wait` as text: from the least to the most."""
    ends = min(values), max(values)
    if name == "load":
        low, high = (f"{tenths_text(end)} cores" for end in ends)
    else:
        low, high = (whole_percent_text(end) for end in ends)
    return low if low == high else range_text(low, high)


def _reasons_not_to_compare(before: Comparability, after: Comparability) -> list[str]:
    """Returns why the times of two runs cannot be compared, one clause each."""
    reasons = list(property_differences(before, after))
    for one, which in ((before, "the baseline"), (after, "this recording")):
        if one.processor is None or one.cores is None:
            reasons.append(
                f"{which} does not name its processor and cores; record with `selftime run`"
            )
        elif one.versions.get("torch") is None:
            reasons.append(f"{which} does not tell its version of PyTorch")
    return reasons


def time_measures(baseline: Baseline) -> tuple[str, ...]:
    """Returns the names of the times in a baseline."""
    return tuple(filter(is_time, baseline.measures))


def count_measures(baseline: Baseline) -> tuple[str, ...]:
    """Returns the names of the counts and sizes in a baseline."""
    return tuple(name for name in baseline.measures if not is_time(name))
