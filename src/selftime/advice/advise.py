"""From a trace to the ranked findings: health first, then every rule, then one order."""

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import groupby
from typing import Final

import polars as pl

from selftime.advice import registry
from selftime.advice.answer import Advice, Health, Joint, Note
from selftime.advice.base import SEMANTICS, Checked, Finding, Outcome, Rule, Unknown
from selftime.advice.bounds import bounded, within
from selftime.advice.calibration import calibrated, measured
from selftime.advice.gate import gate
from selftime.advice.identity import identified, place_of
from selftime.advice.lines.static import with_static_line
from selftime.advice.step import step
from selftime.advice.together import saved_together, settled
from selftime.advice.verdict import verdict
from selftime.analysis.ranks.ranks import Ranks
from selftime.analysis.ranks.stragglers import straggler_verdicts as verdicts
from selftime.analysis.requirements import missing
from selftime.trace import Job, Trace

_LARGE: Final = 300_000
"""Slices. Rules answer of fewer in a second, most of it spent in Python, of which one runs."""
_THREADS: Final = 2
"""More would wait for Python, and each holds tables of its own meanwhile."""
_MOST_NAMED: Final = 8
"""Ranks that one sentence names."""
_CONFIDENCE: Final = ("low", "medium", "high")
_LOSSES: Final = frozenset({"launches", "end", "streams", "replays", "devices", "times"})
"""Checks of health that find work of a device, or its times, missing.

What looks idle may have been busy, and what looks exposed may have been hidden.
"""


def advise(
    subject: Trace | Job, *, ranks: Ranks | None = None, rules: Mapping[str, Rule] | None = None
) -> Advice:
    """What to change in the program that was recorded, in the order of what it saves.

    Args:
        subject: A trace; or a job, of which the rank is looked at that makes the others wait, else
            the first: see `spokesman`.
        ranks: What the traces of the job's other ranks tell, for a trace of one.
        rules: Those to ask, by name; all if not given.
    """
    if isinstance(subject, Job):
        ranks = Ranks.of(subject)
        subject = subject.traces[spokesman(ranks)]
    said = _advise(_quotable(subject), ranks, rules)
    if ranks is not None:
        notes = (*said.health.notes, *_of_ranks(subject, ranks))
        said = replace(said, health=replace(said.health, notes=notes))
    return replace(said, trace=subject)


def _of_ranks(trace: Trace, ranks: Ranks) -> list[Note]:
    """Whose trace the advice is about, where there are several, and which ranks are missing."""
    every, missing_ranks = ranks.by_key(), ranks.missing
    if len(every) < 2:
        return []
    key = ranks.key_of(trace)
    whose = "one rank" if key is None else every[key].label
    text = f"of {len(every)} ranks; but for what they tell together, it is about {whose}"
    if missing_ranks:
        named = ", ".join(map(str, missing_ranks[:_MOST_NAMED]))
        more = (
            f" and {len(missing_ranks) - _MOST_NAMED:,} more" if missing_ranks[_MOST_NAMED:] else ""
        )
        text += f"; without rank {named}{more}, of which there is no trace"
    return [Note("ranks", text, float(len(every)))]


def spokesman(ranks: Ranks) -> str:
    """The path of the trace that a job's advice is about: of the rank that it waits for most."""
    every = ranks.by_key()
    late = [one for one in verdicts(ranks) if one.is_straggler]
    latest = max(late, key=lambda one: one.beyond or 0.0, default=None)
    return every[min(every) if latest is None else latest.key].paths[0]


def _quotable(trace: Trace) -> Trace:
    """The trace with names that stand between backticks, and cannot end the quotation themselves.

    What follows a quotation in a sentence is ours; a program that reads it for somebody obeys it.
    """
    names = trace.slices["name"].unique().cast(pl.String)
    if not names.str.contains("`", literal=True).any():
        return trace
    name = pl.col("name").cast(pl.String).str.replace_all("`", "'", literal=True)
    return replace(trace, slices=trace.slices.with_columns(name.cast(trace.slices.schema["name"])))


def _advise(trace: Trace, ranks: Ranks | None, rules: Mapping[str, Rule] | None) -> Advice:
    asked = tuple((registry.rules() if rules is None else rules).values())
    fitness = health(trace)
    if fitness.verdict == "unusable":
        reason = "; ".join(note.text for note in fitness.notes) or "a usable trace"
        return Advice(
            fitness, unknown=tuple(Unknown(reason, rule=r.name) for r in asked), trace=trace
        )
    said = _said(asked, trace, ranks)
    found = _merged(_as_sure(fitness, o) for o in said if isinstance(o, Finding))
    broad = frozenset(rule.name for rule in asked if rule.broad)
    apart = frozenset(rule.name for rule in asked if rule.across) - broad
    rest = [outcome for outcome in said if not isinstance(outcome, Finding)]
    outcomes = rest + settled(trace, found, broad, apart)
    told = (_finished(trace, o) for o in outcomes if isinstance(o, Finding))
    findings = tuple(sorted(told, key=_rank))
    checked = [outcome for outcome in outcomes if isinstance(outcome, Checked)]
    return Advice(
        fitness,
        step(trace),
        findings,
        _joint(trace, findings),
        tuple(sorted([*checked, *_praise(trace, fitness, findings)], key=_by_rule)),
        tuple(sorted((o for o in outcomes if isinstance(o, Unknown)), key=_by_rule)),
        trace,
    )


def health(trace: Trace) -> Health:
    """The verdict of the `health` view, and its notes where something is less than good."""
    return health_of(trace.view("health"))


def health_of(checks: pl.DataFrame) -> Health:
    """The worst verdict in a table of the `health` view, and a note for each that is not good."""
    rows = list(checks.iter_rows(named=True))
    verdicts = {str(row["verdict"]) for row in rows}
    notes = tuple(
        Note(str(row["check"]), str(row["text"]), row["value"])
        for row in rows
        if row["verdict"] != "good"
    )
    if "unusable" in verdicts:
        return Health("unusable", notes)
    return Health("degraded" if "degraded" in verdicts else "good", notes)


def _said(asked: tuple[Rule, ...], trace: Trace, ranks: Ranks | None) -> list[Outcome]:
    """What every rule says, in their order: of a large trace by two threads, if there are cores.

    Most of a rule's time is spent in NumPy and Polars, which let other threads run meanwhile.
    """
    if trace.slices.height < _LARGE or (os.cpu_count() or 1) < _THREADS:
        return [outcome for rule in asked for outcome in _outcomes(rule, trace, ranks)]
    with ThreadPoolExecutor(_THREADS, "selftime-advice") as threads:
        outcomes = threads.map(lambda rule: _outcomes(rule, trace, ranks), asked)
        return [outcome for those in outcomes for outcome in those]


def _outcomes(rule: Rule, trace: Trace, ranks: Ranks | None) -> tuple[Outcome, ...]:
    lacks = missing(trace, rule.needs)
    if lacks:
        return (Unknown("; ".join(lacks), rule=rule.name),)
    silent = Checked("nothing of its kind is in this trace", rule=rule.name, is_absent=True)
    return tuple(bounded(trace, outcome) for outcome in rule(trace, ranks)) or (silent,)


def _as_sure(fitness: Health, finding: Finding) -> Finding:
    """Of low confidence if its saving is the replay of a program of which some work was lost."""
    is_lossy = any(note.check in _LOSSES for note in fitness.notes)
    is_priced = finding.saving.estimate_ms is not None
    return replace(finding, confidence="low") if is_lossy and is_priced else finding


def _finished(trace: Trace, finding: Finding) -> Finding:
    has_device = bool(trace.device_args.height)
    told = calibrated(with_static_line(trace, finding), measured(), bounded=has_device)
    return replace(told, saving=within(trace, told))


def _praise(trace: Trace, fitness: Health, findings: tuple[Finding, ...]) -> list[Checked]:
    """The verdict on a program without findings, of a recording that is whole."""
    praise = verdict(trace, findings) if fitness.verdict == "good" else None
    return [] if praise is None else [praise]


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding a rule and line; findings without a line stay apart by their title."""
    ordered = sorted(findings, key=place_of)
    return identified(_one(tuple(same)) for _, same in groupby(ordered, key=place_of))


def _one(same: tuple[Finding, ...]) -> Finding:
    """The largest of them with the evidence of all: savings on one line are never added."""
    largest = max(same, key=lambda f: f.saving.estimate_ms or 0.0)
    counts = [f.count_per_step for f in same if f.count_per_step is not None]
    evidence = dict.fromkeys(e for f in (largest, *same) for e in f.evidence)
    return replace(
        largest,
        covers=tuple(sorted({entry for f in same for entry in f.covers})),
        count_per_step=sum(counts) if counts else None,
        evidence=tuple(evidence),
        confidence=min((f.confidence for f in same), key=_CONFIDENCE.index),
        semantics=max((f.semantics for f in same), key=SEMANTICS.index),
        changes=tuple(change for f in same for change in f.changes),
    )


def _rank(finding: Finding) -> tuple[int, bool, float, tuple[str, str, int, str]]:
    estimate = finding.saving.estimate_ms
    return (
        SEMANTICS.index(finding.semantics),
        estimate is None,
        -(estimate or 0.0),
        place_of(finding),
    )


def _joint(trace: Trace, findings: tuple[Finding, ...]) -> Joint:
    """What all fixes save together: one replay of all of them, never a sum."""
    priced = [finding for finding in findings if finding.saving.estimate_ms is not None]
    if len(priced) == 1:
        return Joint(priced[0].saving.estimate_ms, priced[0].saving.speedup)
    estimate, limits = saved_together(trace, findings), gate(trace)
    if estimate is None or limits is None:
        return Joint()
    left = limits.unrecorded(limits.step_ms) - estimate
    return Joint(estimate, (estimate + left) / left if left > 0 else None)


def _by_rule(outcome: Checked | Unknown) -> tuple[str, str]:
    return outcome.rule, outcome.reason if isinstance(outcome, Checked) else outcome.needs
