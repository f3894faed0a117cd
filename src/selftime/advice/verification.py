"""What a repair achieved, against what was predicted of it.

Steps that nobody recorded count where both recordings know of them, as a recorder slows them; else
the steps that count for medians. The interval of the difference is that of a bootstrap of both
medians (Efron, 1979), so the noise of both runs is in it.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from selftime.advice.advise import advise
from selftime.advice.base import Finding
from selftime.advice.step import step_times_ms
from selftime.advice.together import saved_together
from selftime.errors import UsageError
from selftime.trace import Trace

__all__ = ["FORMAT", "Achieved", "Promise", "Verification", "promise", "verify"]

FORMAT: Final = "selftime.verification/1"
"""The name and version of the JSON form."""
RESAMPLES: Final = 2_000
"""Enough for the ends of a 95 % interval to vary by a few percent of its width."""
LEVEL: Final = (2.5, 97.5)
SEED: Final = 0
"""The same two recordings give the same answer."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Promise:
    """A finding of the first recording that the second does not have."""

    rule: str
    file: str | None
    line: int | None
    estimate_ms: float | None
    low_ms: float | None
    high_ms: float | None
    upper_ms: float | None
    method: str
    """How the estimate was made: `replay`, `model`, or `none` without one."""


@dataclass(frozen=True, slots=True)
class Achieved:
    """The typical step before and after, in ms, and the difference with its 95 % interval."""

    before_ms: float
    after_ms: float
    saved_ms: float
    low_ms: float
    high_ms: float
    recorded: bool
    """Whether the steps are those that were recorded: slower than the program's own."""


@dataclass(frozen=True, slots=True)
class Verification:
    """What was promised of the findings that are gone, and what the step gave."""

    achieved: Achieved
    predicted_ms: float | None
    """What the gone findings save together, by one replay; None if one of them has no number."""
    gone: tuple[Promise, ...]
    left: tuple[Promise, ...]
    """Findings that both recordings have."""
    new: tuple[Promise, ...]
    """Findings that only the second has."""

    def to_json(self) -> str:
        """One line of JSON, keys in one order, floats rounded to 6 decimals."""
        return json.dumps({"format": FORMAT, **_rounded(asdict(self))}, allow_nan=False)


def verify(before: Trace, after: Trace) -> Verification:
    """What changed from the first recording of a program to the second."""
    old, new = advise(before).findings, advise(after).findings
    kept, found = {_key(f) for f in new}, {_key(f) for f in old}
    gone = tuple(f for f in old if _key(f) not in kept)
    return Verification(
        achieved=_achieved(before, after),
        predicted_ms=saved_together(before, gone) if gone else 0.0,
        gone=tuple(map(promise, gone)),
        left=tuple(promise(f) for f in old if _key(f) in kept),
        new=tuple(promise(f) for f in new if _key(f) not in found),
    )


def _key(finding: Finding) -> tuple[str, str | None, str | None]:
    """A repair moves lines: what is the same finding is told by rule, file and function."""
    return finding.rule, finding.where.file, finding.where.function


def promise(finding: Finding) -> Promise:
    """What a finding says that its repair will save."""
    saving = finding.saving
    return Promise(
        finding.rule,
        finding.where.file,
        finding.where.line,
        saving.estimate_ms,
        saving.low_ms,
        saving.high_ms,
        saving.upper_ms,
        saving.method,
    )


def _achieved(before: Trace, after: Trace) -> Achieved:
    own = _unrecorded(before), _unrecorded(after)
    recorded = not (own[0].size and own[1].size)
    if recorded:
        own = np.array(step_times_ms(before)), np.array(step_times_ms(after))
    for times, which in zip(own, ("first", "second"), strict=True):
        if not times.size:
            raise UsageError(
                f"the {which} recording has no steps; give a schedule, and call `prof.step()` in "
                "the loop"
            )
    draw = np.random.default_rng(SEED)
    differences = _medians(own[0], draw) - _medians(own[1], draw)
    low, high = np.percentile(differences, LEVEL)
    first, second = (float(np.median(times)) for times in own)
    return Achieved(first, second, first - second, float(low), float(high), recorded)


def _unrecorded(trace: Trace) -> Floats:
    """Steps that ran without the recorder, in ms."""
    steps = trace.facts.get("steps")
    told = steps.get("unprofiled_ns") if isinstance(steps, dict) else None
    known = [t for t in told if isinstance(t, int | float)] if isinstance(told, list) else []
    return np.array(known, np.float64) / 1e6


def _medians(times: Floats, draw: np.random.Generator) -> Floats:
    """Medians of resamples with replacement, shape (RESAMPLES,)."""
    return np.asarray(np.median(draw.choice(times, (RESAMPLES, times.size)), axis=1), np.float64)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return round(value, 6) if isinstance(value, float) else value
