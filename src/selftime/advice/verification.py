"""What a repair achieved, against what was predicted of it.

Steps that nobody recorded count where both recordings know of them, as a recorder slows them; else
the steps that count for medians. The interval of the difference is that of a bootstrap of both
medians (Efron, 1979), so the noise of both runs is in it.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from selftime.advice.advise import advise
from selftime.advice.base import Finding
from selftime.advice.step import step_times_ms
from selftime.advice.together import saved_together
from selftime.compare.noise import shift
from selftime.compare.times import unrecorded
from selftime.errors import UsageError
from selftime.trace import Trace

__all__ = ["FORMAT", "Achieved", "Promise", "Verification", "promise", "verify"]

FORMAT: Final = "selftime.verification/1"
"""The name and version of the JSON form."""


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
    own = tuple(unrecorded(trace) / 1e6 for trace in (before, after))
    recorded = not all(times.size for times in own)
    if recorded:
        own = tuple(np.array(step_times_ms(trace)) for trace in (before, after))
    for times, which in zip(own, ("first", "second"), strict=True):
        if not times.size:
            raise UsageError(
                f"the {which} recording has no steps; give a schedule, and call `prof.step()` in "
                "the loop"
            )
    found = shift(*own)
    saved = -found.difference
    low, high = (saved if end is None else -end for end in (found.high, found.low))
    return Achieved(found.before, found.after, saved, low, high, recorded)


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inner) for inner in value]
    return round(value, 6) if isinstance(value, float) else value
