"""Compares the saving that was measured after a fix with the predicted saving.

Steps that nobody recorded count where both recordings know of them, as a recorder slows them; else
the steps that count for medians. The interval of the difference is that of a bootstrap of both
medians (Efron, 1979), so the noise of both runs is in it.

The repair of one finding is held against the promise of that finding, if it is named: other
findings may go with it, or stay.

Both programs may have been timed by `selftime bench` too, with nothing recorded and over many runs.
Its times stand apart from those of the recordings, and the promise is held against them.
"""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import PurePath
from typing import Final, Literal, TypeAlias

import numpy as np

from selftime.advice.advice_result import Advice
from selftime.advice.advise import advise
from selftime.advice.finding_ids import select_findings
from selftime.advice.rule_definition import FIX_SEMANTICS, Finding, FixSemantics
from selftime.advice.savings.finding_overlap import saved_together_ms
from selftime.advice.step_statistics import counted_step_times_ms
from selftime.bench.result import Bench, BenchMetric
from selftime.compare.comparability import recording_differences
from selftime.compare.results.result_comparison import ResultComparison
from selftime.compare.statistical_significance import median_shift
from selftime.compare.step_times import unrecorded_step_times
from selftime.errors import UsageError
from selftime.trace import Trace
from selftime.units import rounded_json

PredictionVerdict: TypeAlias = Literal["kept", "exceeded", "missed", "unknown"]
"""`kept` if the measured and predicted intervals overlap; `exceeded` if more was saved, `missed` if
less; `unknown` if an interval is unknown."""

ResultComparer: TypeAlias = Callable[[FixSemantics], ResultComparison]
"""Compares the results of both programs, by what the repair may alter."""

FORMAT: Final = "selftime.verification/1"
"""Name and version of the JSON format of a verification."""


_DRIFT_IS_NOT_HELD: Final = (
    "the interval holds how steps vary within each of the two runs, and no drift from one run to "
    "the next; time both programs in turn with `selftime bench`, and give its file with `--bench`"
)
"""What two recordings alone do not tell of a saving."""


@dataclass(frozen=True, slots=True)
class PredictedSaving:
    """The saving that a finding predicted, in ms per step, with its interval and upper bound."""

    rule: str
    file: str | None
    line: int | None
    estimate_ms: float | None
    low_ms: float | None
    high_ms: float | None
    upper_ms: float | None
    method: str
    """How the saving was estimated: `replay` (simulation), `model`, or `none`."""


@dataclass(frozen=True, slots=True)
class MeasuredSaving:
    """Median step time before and after a fix in ms, and the saving with its 95 % interval."""

    before_ms: float
    after_ms: float
    saved_ms: float
    low_ms: float
    high_ms: float
    recorded: bool
    """Whether a profiler recorded the steps; they are slower then."""


@dataclass(frozen=True, slots=True)
class BenchedSaving:
    """The saving measured by a benchmark without profiler, and the predicted saving, in ms."""

    before_ms: float
    after_ms: float
    saved_ms: float
    low_ms: float | None
    """Lower end of the saving's 95 % interval, in ms; None if unknown."""
    high_ms: float | None
    """Upper end of the saving's 95 % interval, in ms; None if the benchmark ran too few
    repetitions."""
    rounds: int
    promised_low_ms: float | None
    """Lower end of the predicted saving of the fixed findings, in ms; None if unknown."""
    promised_high_ms: float | None
    """Upper end of the predicted saving of the fixed findings, in ms; None if unknown."""
    verdict: PredictionVerdict
    notes: tuple[str, ...]
    """Signs that the benchmark ran other programs than those recorded, one sentence each."""


@dataclass(frozen=True, slots=True)
class RepairedFinding:
    """The promise of the one finding that was repaired, against what the repair saved, in ms."""

    id: str
    promise: PredictedSaving
    is_gone: bool
    """Whether the recording after the repair has no such finding."""
    saved_ms: float
    low_ms: float | None
    high_ms: float | None
    """Upper end of the 95 % interval of `saved_ms`; None after a benchmark of too few rounds."""
    basis: Literal["bench", "unrecorded", "recorded"]
    """Which steps were measured: those of the benchmark, or of the recordings."""
    verdict: PredictionVerdict


@dataclass(frozen=True, slots=True)
class Verification:
    """The measured saving of a fix, and the savings predicted by findings that it removed."""

    achieved: MeasuredSaving
    predicted_ms: float | None
    """Predicted saving, in ms, of all findings that the fix removed, simulated together; None if
    one of them has no estimate."""
    gone: tuple[PredictedSaving, ...]
    left: tuple[PredictedSaving, ...]
    """Findings that the recordings before and after the fix share."""
    new: tuple[PredictedSaving, ...]
    """Findings that only the recording after the fix has."""
    benched: BenchedSaving | None = None
    """Saving that a benchmark measured; None if no benchmark was given."""
    notes: tuple[str, ...] = ()
    """Differences between the recordings, such as of threads or load, one sentence each."""
    repaired: RepairedFinding | None = None
    """The finding that was repaired; None if none was named."""
    limits: tuple[str, ...] = ()
    """What the interval of `achieved` does not hold, one sentence each."""
    results: ResultComparison | None = None
    """Whether both programs computed the same; None if that was not asked."""

    def to_json(self) -> str:
        """Returns one line of JSON, with keys in a fixed order; times have 6 decimals."""
        told = {"format": FORMAT, **rounded_json(asdict(self))}
        if self.results is not None:  # relative differences may be far below a decimal's
            told["results"] = asdict(self.results)
        return json.dumps(told, allow_nan=False)


def verify(
    before: Trace,
    after: Trace,
    bench: Bench | None = None,
    finding: str | None = None,
    compare: ResultComparer | None = None,
) -> Verification:
    """Returns the saving measured between two recordings, and which findings went or came.

    Args:
        before: The recording with the findings.
        after: The one after the repair.
        bench: Both programs timed unprofiled, of which steps were compared.
        finding: Id or rule of the one finding that was repaired; None to hold the repair against
            all that are gone.
        compare: Compares the results of both programs, as what the repair may alter in them allows;
            None to leave them alone.

    Raises:
        UsageError: A recording has no steps, or the first one not exactly one such finding.
    """
    advice = advise(before)
    named = None if finding is None else _single_finding(advice, finding)
    old, new = advice.findings, advise(after).findings
    roots = _program_roots(before, after)
    old_keys, new_keys = (
        [_finding_key(one, root) for one in findings]
        for findings, root in zip((old, new), roots, strict=True)
    )
    gone = tuple(one for one, key in zip(old, old_keys, strict=True) if key not in new_keys)
    left = tuple(one for one, key in zip(old, old_keys, strict=True) if key in new_keys)
    added = tuple(one for one, key in zip(new, new_keys, strict=True) if key not in old_keys)
    predicted_ms = saved_together_ms(before, gone) if gone else 0.0
    promises = tuple(map(predicted_saving, gone))
    achieved = _measured_saving(before, after)
    benched = (
        None if bench is None else _benched_saving(bench, promises, predicted_ms, (before, after))
    )
    return Verification(
        achieved=achieved,
        predicted_ms=predicted_ms,
        gone=promises,
        left=tuple(map(predicted_saving, left)),
        new=tuple(map(predicted_saving, added)),
        benched=benched,
        notes=recording_differences(before, after),
        repaired=None if named is None else _repaired(named, named in gone, achieved, benched),
        limits=() if benched is not None else (_DRIFT_IS_NOT_HELD,),
        results=compare and compare(_semantics(gone if named is None else [named])),
    )


def _semantics(repaired: Iterable[Finding]) -> FixSemantics:
    """Returns the most that the repair of some findings may alter; neutral if there are none."""
    return max((one.semantics for one in repaired), key=FIX_SEMANTICS.index, default="neutral")


def _single_finding(advice: Advice, name_or_id: str) -> Finding:
    found = select_findings(advice, name_or_id).findings
    if len(found) == 1:
        return found[0]
    if not found:
        raise UsageError(
            f"`{name_or_id}` is no finding of the first recording, so nothing was promised"
        )
    ids = ", ".join(one.id for one in found)
    raise UsageError(f"`{name_or_id}` has {len(found)} findings; name one of them: {ids}")


def _repaired(
    finding: Finding, is_gone: bool, achieved: MeasuredSaving, benched: BenchedSaving | None
) -> RepairedFinding:
    """Returns what the repair of one finding saved, by the benchmark if there is one."""
    measured = achieved if benched is None else benched
    promise = predicted_saving(finding)
    return RepairedFinding(
        finding.id,
        promise,
        is_gone,
        measured.saved_ms,
        measured.low_ms,
        measured.high_ms,
        "bench" if benched is not None else "recorded" if achieved.recorded else "unrecorded",
        _verdict_on_prediction(
            (measured.low_ms, measured.high_ms), (promise.low_ms, promise.high_ms)
        ),
    )


def _finding_key(finding: Finding, root: PurePath) -> tuple[str, str | None, str | None]:
    """Returns a finding's (rule, file, function), to match findings of two recordings.

    The file is relative to the folder of the program. A fix may move the line.
    """
    file = finding.where.file
    if file is not None and PurePath(file).is_relative_to(root):
        file = PurePath(file).relative_to(root).as_posix()
    return finding.rule, file, finding.where.function


def _program_roots(before: Trace, after: Trace) -> tuple[PurePath, PurePath]:
    """Returns the folders to which the files of both programs are relative.

    Two checkouts have the same files in two folders, which are those above the scripts without the
    folders that both have below them: `a/before` of `a/before/src/train.py` and
    `a/after/src/train.py`.
    """
    old, new = _script_folder(before), _script_folder(after)
    if old is None or new is None or old == new:
        return PurePath(), PurePath()
    while old.name and old.name == new.name:
        old, new = old.parent, new.parent
    return old, new


def _script_folder(trace: Trace) -> PurePath | None:
    """Returns the folder of the script that was recorded; None if unknown."""
    words, folder = trace.facts.get("argv"), trace.facts.get("cwd")
    if not isinstance(words, list) or not words or not isinstance(folder, str):
        return None
    return PurePath(os.path.normpath(PurePath(folder, str(words[0])))).parent


def predicted_saving(finding: Finding) -> PredictedSaving:
    """Returns the saving that a finding predicts for its fix."""
    saving = finding.saving
    return PredictedSaving(
        finding.rule,
        finding.where.file,
        finding.where.line,
        saving.estimate_ms,
        saving.low_ms,
        saving.high_ms,
        saving.upper_ms,
        saving.method,
    )


def _measured_saving(before: Trace, after: Trace) -> MeasuredSaving:
    own = tuple(unrecorded_step_times(trace) / 1e6 for trace in (before, after))
    recorded = not all(times.size for times in own)
    if recorded:
        own = tuple(np.array(counted_step_times_ms(trace)) for trace in (before, after))
    for times, which in zip(own, ("first", "second"), strict=True):
        if not times.size:
            raise UsageError(
                f"the {which} recording has no steps; give a schedule, and call `prof.step()` in "
                "the loop"
            )
    found = median_shift(*own)
    saved = -found.difference
    low, high = (saved if end is None else -end for end in (found.high, found.low))
    return MeasuredSaving(found.before, found.after, saved, low, high, recorded)


def _benched_saving(
    bench: Bench,
    gone: tuple[PredictedSaving, ...],
    predicted_ms: float | None,
    traces: tuple[Trace, Trace],
) -> BenchedSaving:
    if bench.metric is not BenchMetric.step:
        raise UsageError(
            "the bench timed whole processes, and a finding promises milliseconds of a step; make "
            "both programs run for more steps, and time them with `--metric step`"
        )
    low, high = _predicted_saving_interval(gone, predicted_ms)
    saved = bench.saved_ms
    return BenchedSaving(
        before_ms=bench.before.median_ms,
        after_ms=bench.after.median_ms,
        saved_ms=saved.estimate,
        low_ms=saved.low,
        high_ms=saved.high,
        rounds=len(bench.rounds),
        promised_low_ms=low,
        promised_high_ms=high,
        verdict=_verdict_on_prediction((saved.low, saved.high), (low, high)),
        notes=tuple(_notes_on_differing_programs(bench, traces)),
    )


def _predicted_saving_interval(
    gone: tuple[PredictedSaving, ...], predicted_ms: float | None
) -> tuple[float | None, float | None]:
    """Returns the bounds (low, high) of several findings' joint saving in ms; None if unknown.

    That is no less than the most that one of them surely saves, and no more than all of them at
    most, unless the replay of all together says more.
    """
    if len(gone) == 1:
        return gone[0].low_ms, gone[0].high_ms
    lows = [one.low_ms for one in gone if one.low_ms is not None]
    highs = [one.high_ms for one in gone if one.high_ms is not None]
    if not gone or predicted_ms is None or len(lows) < len(gone) or len(highs) < len(gone):
        return None, None
    return min(max(lows), predicted_ms), max(sum(highs), predicted_ms)


def _verdict_on_prediction(
    saved_interval: tuple[float | None, float | None],
    promised_interval: tuple[float | None, float | None],
) -> PredictionVerdict:
    (low, high), (promised_low, promised_high) = saved_interval, promised_interval
    if low is None or high is None or promised_low is None or promised_high is None:
        return "unknown"
    if low > promised_high:
        return "exceeded"
    return "missed" if high < promised_low else "kept"


def _notes_on_differing_programs(bench: Bench, traces: tuple[Trace, Trace]) -> list[str]:
    """Returns a sentence for each recording whose program differs from the benchmarked one."""
    notes = []
    sides = ("first", bench.before.program), ("second", bench.after.program)
    for trace, (which, program) in zip(traces, sides, strict=True):
        words = trace.facts.get("argv")
        name = PurePath(str(words[0])).stem if isinstance(words, list) and words else ""
        if name and name not in program:
            notes.append(f"the {which} recording is of `{name[:60]}`, the bench of `{program}`")
    return notes
