"""How good the advice is on the corpus: the metrics of many results."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

from results import Prediction, Result

__all__ = ["Scores", "Share", "scores"]


@dataclass(frozen=True, slots=True)
class Share:
    """So many of so many."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        return self.part / self.whole if self.whole else None

    @classmethod
    def of(cls, these: Iterable[bool | None]) -> "Share":
        known = [this for this in these if this is not None]
        return cls(sum(known), len(known))


@dataclass(frozen=True, slots=True)
class Scores:
    """Every metric; None where there is nothing to measure it on."""

    programs: int
    controls: int
    precision: Share
    """Of what is found, what is planted."""
    recall: Share
    """Of what is planted, what is found."""
    macro_precision: float | None
    """The mean of each rule's precision."""
    macro_recall: float | None
    """The mean of each label's recall."""
    top_cause: Share
    """Programs whose first finding is a planted cause."""
    line_exact: Share
    line_function: Share
    """Where the line is exact, or at least the function is right."""
    alarms_a_control: float | None
    forbidden: int
    gains: Share
    """Programs whose repair is surely faster."""
    equal: Share
    """Twins that compute the same, of those that promise it and say what they compute."""
    error: float | None
    """The median factor between a promise and the gain."""
    covered: Share
    """Gains within the promised interval, which is to hold 80 % of them."""
    above: Share
    """Gains that are surely above the promised bound."""
    order: Share
    """Pairs of causes in one program that are promised in the order of their gains."""
    joint_error: float | None
    """The median factor between the promise for all findings and the gain of all repairs."""


def scores(results: Sequence[Result]) -> Scores:
    faulty = [result for result in results if result.labels]
    controls = [result for result in results if not result.labels]
    predictions = [prediction for result in faulty for prediction in result.predictions()]
    lines = [result.line(label) for result in faulty for label in result.labels]
    named = [line for line in lines if line is not None]
    return Scores(
        programs=len(faulty),
        controls=len(controls),
        precision=_precision(results),
        recall=_recall(faulty),
        macro_precision=_mean(_by_rule(results)),
        macro_recall=_mean(_by_label(faulty)),
        top_cause=Share.of(_is_first(result) for result in faulty),
        line_exact=Share.of(line == "exact" for line in named),
        line_function=Share.of(line != "none" for line in named),
        alarms_a_control=_mean([len(result.wrong) for result in controls]),
        forbidden=sum(len(result.forbidden) for result in results),
        gains=Share.of(result.gain.is_sure for result in faulty if result.gain),
        equal=Share.of(result.pair.is_same for result in results if result.pair),
        error=_factor([_error(p.estimate_ms, p.gain.saved_ms) for p in predictions]),
        covered=Share.of(prediction.is_within for prediction in predictions),
        above=Share.of(prediction.is_above for prediction in predictions),
        order=Share.of(pair for result in faulty for pair in _order([*result.predictions()])),
        joint_error=_factor([error for result in faulty for error in _joint(result)]),
    )


def _is_first(result: Result) -> bool:
    """Whether a planted cause comes first, but for what is true as well."""
    hits, wrong = result.hits(), result.wrong
    return next((f in hits for f in result.findings if f in hits or f in wrong), False)


def _precision(results: Iterable[Result]) -> Share:
    right = sum(len(result.hits()) for result in results)
    return Share(right, right + sum(len(result.wrong) for result in results))


def _recall(results: Iterable[Result]) -> Share:
    return Share.of(label in result.found for result in results for label in result.labels)


def _by_rule(results: Iterable[Result]) -> list[float]:
    told: dict[str, list[bool]] = defaultdict(list)
    for result in results:
        for is_right, findings in ((True, result.hits()), (False, result.wrong)):
            for finding in findings:
                told[finding.rule].append(is_right)
    return [fmean(right) for right in told.values()]


def _by_label(results: Iterable[Result]) -> list[float]:
    told: dict[str, list[bool]] = defaultdict(list)
    for result in results:
        for label in result.labels:
            told[label].append(label in result.found)
    return [fmean(found) for found in told.values()]


def _order(predictions: Sequence[Prediction]) -> list[bool]:
    return [
        (one.estimate_ms > other.estimate_ms) == (one.gain.saved_ms > other.gain.saved_ms)
        for one, other in combinations(predictions, 2)
    ]


def _joint(result: Result) -> list[float]:
    gain = result.gain
    if len(result.about.twins) == 1 or gain is None or not gain.is_sure or not result.joint_ms:
        return []
    return [_error(result.joint_ms, gain.saved_ms)]


def _error(promised: float, achieved: float) -> float:
    return abs(math.log(promised / achieved))


def _factor(errors: Sequence[float]) -> float | None:
    return math.exp(median(errors)) if errors else None


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
