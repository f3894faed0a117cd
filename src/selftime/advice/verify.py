"""What a repair achieved, against what was predicted of it.

Steps that nobody recorded count where both recordings know of them, as a recorder slows them; else
the steps that count for medians. The interval of the difference is that of a bootstrap of both
medians (Efron, 1979), so the noise of both runs is in it.

Both programs may have been timed by `selftime bench` too, with nothing recorded and over many runs.
Its times stand apart from those of the recordings, and the promise is held against them.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Final, Literal

import numpy as np

from selftime.advice.advise import advise
from selftime.advice.base import Finding
from selftime.advice.step import step_times_ms
from selftime.advice.together import saved_together
from selftime.bench.result import Bench, Metric
from selftime.compare.noise import shift
from selftime.compare.times import unrecorded_step_times
from selftime.errors import UsageError
from selftime.trace import Trace
from selftime.units import rounded

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
class Benched:
    """The typical step of both programs unprofiled, as a bench timed it, in ms, and the promise."""

    before_ms: float
    after_ms: float
    saved_ms: float
    low_ms: float | None
    high_ms: float | None
    """The 95 % interval of what is saved; None after too few rounds."""
    rounds: int
    promised_low_ms: float | None
    promised_high_ms: float | None
    """Between which the saving of the gone findings was promised to lie; None if unknown."""
    verdict: Literal["kept", "exceeded", "missed", "unknown"]
    """How the promise turned out: `kept` where both intervals meet."""
    notes: tuple[str, ...]
    """Why the bench may be of other programs than the recordings."""


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
    benched: Benched | None = None
    """The same of a bench; None without one."""

    def to_json(self) -> str:
        """One line of JSON, keys in one order, floats rounded to 6 decimals."""
        return json.dumps({"format": FORMAT, **rounded(asdict(self))}, allow_nan=False)


def verify(before: Trace, after: Trace, bench: Bench | None = None) -> Verification:
    """What changed from the first recording of a program to the second.

    Args:
        before: The recording with the findings.
        after: The one after the repair.
        bench: Both programs timed unprofiled, of which steps were compared.
    """
    old, new = advise(before).findings, advise(after).findings
    kept, found = {_key(f) for f in new}, {_key(f) for f in old}
    gone = tuple(f for f in old if _key(f) not in kept)
    predicted = saved_together(before, gone) if gone else 0.0
    promises = tuple(map(promise, gone))
    return Verification(
        achieved=_achieved(before, after),
        predicted_ms=predicted,
        gone=promises,
        left=tuple(promise(f) for f in old if _key(f) in kept),
        new=tuple(promise(f) for f in new if _key(f) not in found),
        benched=None if bench is None else _benched(bench, promises, predicted, (before, after)),
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
    own = tuple(unrecorded_step_times(trace) / 1e6 for trace in (before, after))
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


def _benched(
    bench: Bench, gone: tuple[Promise, ...], predicted: float | None, traces: tuple[Trace, Trace]
) -> Benched:
    if bench.metric is not Metric.step:
        raise UsageError(
            "the bench timed whole processes, and a finding promises milliseconds of a step; make "
            "both programs run for more steps, and time them with `--metric step`"
        )
    low, high = _promised(gone, predicted)
    saved = bench.saved_ms
    return Benched(
        before_ms=bench.before.median_ms,
        after_ms=bench.after.median_ms,
        saved_ms=saved.estimate,
        low_ms=saved.low,
        high_ms=saved.high,
        rounds=len(bench.rounds),
        promised_low_ms=low,
        promised_high_ms=high,
        verdict=_verdict((saved.low, saved.high), (low, high)),
        notes=tuple(_others(bench, traces)),
    )


def _promised(
    gone: tuple[Promise, ...], predicted: float | None
) -> tuple[float | None, float | None]:
    """The interval of what several findings save together.

    That is no less than the most that one of them surely saves, and no more than all of them at
    most, unless the replay of all together says more.
    """
    if len(gone) == 1:
        return gone[0].low_ms, gone[0].high_ms
    lows = [one.low_ms for one in gone if one.low_ms is not None]
    highs = [one.high_ms for one in gone if one.high_ms is not None]
    if not gone or predicted is None or len(lows) < len(gone) or len(highs) < len(gone):
        return None, None
    return min(max(lows), predicted), max(sum(highs), predicted)


def _verdict(
    saved: tuple[float | None, float | None], promised: tuple[float | None, float | None]
) -> Literal["kept", "exceeded", "missed", "unknown"]:
    if saved[0] is None or saved[1] is None or promised[0] is None or promised[1] is None:
        return "unknown"
    if saved[0] > promised[1]:
        return "exceeded"
    return "missed" if saved[1] < promised[0] else "kept"


def _others(bench: Bench, traces: tuple[Trace, Trace]) -> list[str]:
    """Where a recording says that it is of another program than the bench."""
    notes = []
    sides = ("first", bench.before.program), ("second", bench.after.program)
    for trace, (which, program) in zip(traces, sides, strict=True):
        words = trace.facts.get("argv")
        name = PurePath(str(words[0])).stem if isinstance(words, list) and words else ""
        if name and name not in program:
            notes.append(f"the {which} recording is of `{name[:60]}`, the bench of `{program}`")
    return notes
