"""Runs every rule on a trace and ranks the findings; a trace with unusable data gets none."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Final

import polars as pl

from selftime.advice import rule_registry
from selftime.advice.account.account_building import account_of_step
from selftime.advice.account.job_account import account_of_job, latest_rank, with_late_rank
from selftime.advice.advice_result import (
    Advice,
    Health,
    Note,
    TypicalStep,
    with_bounded_texts,
)
from selftime.advice.finding_ids import finding_identity, with_finding_ids
from selftime.advice.finding_order import rank_findings
from selftime.advice.framework_arguments import with_framework_argument
from selftime.advice.lines.function_callers import with_callers
from selftime.advice.lines.line_from_source import with_line_from_source
from selftime.advice.rule_definition import FIX_SEMANTICS, Checked, Finding, Outcome, Rule, Unknown
from selftime.advice.savings.calibration import measured_calibration_factors
from selftime.advice.savings.checked_causes import checked_with_upper_bound
from selftime.advice.savings.finding_overlap import joint_saving, resolve_overlapping_findings
from selftime.advice.savings.run_savings import (
    one_finding_per_cause,
    run_time,
    with_joint_saving_of_run,
    with_savings_of_run,
)
from selftime.advice.step_statistics import typical_step
from selftime.advice.well_optimised_verdict import well_optimised_verdict
from selftime.analysis.ranks.job_ranks import Ranks
from selftime.analysis.recording_requirements import missing_requirement_sentences
from selftime.trace import Job, Trace
from selftime.units import count_text

_MAX_RANKS_IN_MESSAGE: Final = 8
"""Largest number of ranks that one message lists."""
_CONFIDENCES_ASCENDING: Final = ("low", "medium", "high")
_HEALTH_CHECKS_FOR_LOST_DEVICE_WORK: Final = frozenset(
    {"launches", "end", "streams", "replays", "devices", "times"}
)
"""Names of trace checks that fail if kernels, copies or their times are missing from the recording.

Then idle time may have been busy, and exposed time hidden.
"""


def advise(
    subject: Trace | Job, *, ranks: Ranks | None = None, rules: Mapping[str, Rule] | None = None
) -> Advice:
    """Returns what to change in the recorded program, ranked by the expected saving.

    Args:
        subject: A trace, or a job. Of a job one rank is advised on: `advised_trace_path`.
        ranks: What all ranks of the job tell, for a trace of one of them.
        rules: The rules to run, by name; None means all.
    """
    if isinstance(subject, Job):
        ranks = Ranks.of(subject)
        subject = subject.traces[advised_trace_path(ranks)]
    said = _advise_on_trace(_trace_without_backticks(subject), ranks, rules)
    if ranks is not None:
        notes = (*said.health.notes, *_notes_on_ranks(subject, ranks))
        job = account_of_job(ranks)
        said = replace(said, health=replace(said.health, notes=notes), job=job)
        if said.account is not None and job is not None and job.late is not None:
            key = ranks.key_of(subject)
            own = None if key is None else ranks.ranks_by_key()[key].label
            said = replace(said, account=with_late_rank(said.account, job.late, own))
    return replace(said, trace=subject)


def _notes_on_ranks(trace: Trace, ranks: Ranks) -> list[Note]:
    """Returns a note that says which rank the advice is about, and which ranks have no trace."""
    every, missing_ranks = ranks.ranks_by_key(), ranks.missing
    if len(every) < 2:
        return []
    key = ranks.key_of(trace)
    whose = "one rank" if key is None else every[key].label
    text = f"of {len(every)} ranks; except for comparisons of ranks, the advice is about {whose}"
    if missing_ranks:
        named = ", ".join(map(str, missing_ranks[:_MAX_RANKS_IN_MESSAGE]))
        more = (
            f" and {count_text(len(missing_ranks) - _MAX_RANKS_IN_MESSAGE)} more"
            if missing_ranks[_MAX_RANKS_IN_MESSAGE:]
            else ""
        )
        text += f"; without rank {named}{more}, of which there is no trace"
    return [Note("ranks", text, float(len(every)))]


def advised_trace_path(ranks: Ranks) -> str:
    """Returns the trace path of the rank that others wait for most; else of the first rank."""
    every = ranks.ranks_by_key()
    latest = latest_rank(ranks)
    return every[min(every) if latest is None else latest.key].paths[0]


def _trace_without_backticks(trace: Trace) -> Trace:
    """Returns the trace with each backtick in a name replaced by `'`.

    Messages quote names in backticks: a name that ended its quotation could pass for our own words,
    which a program may obey.
    """
    names = trace.slices["name"].unique().cast(pl.String)
    if not names.str.contains("`", literal=True).any():
        return trace
    name = pl.col("name").cast(pl.String).str.replace_all("`", "'", literal=True)
    return replace(trace, slices=trace.slices.with_columns(name.cast(trace.slices.schema["name"])))


def _advise_on_trace(trace: Trace, ranks: Ranks | None, rules: Mapping[str, Rule] | None) -> Advice:
    every_rule = tuple((rule_registry.rules_by_name() if rules is None else rules).values())
    trace_health = health_of_trace(trace)
    rules_to_run, outcomes = every_rule, list[Outcome]()
    if trace_health.verdict == "unusable":
        reason = "; ".join(note.text for note in trace_health.notes) or "a usable trace"
        rules_to_run = tuple(rule for rule in every_rule if _is_about_run_in_hand(rule, trace))
        rest = (rule for rule in every_rule if rule not in rules_to_run)
        outcomes += [Unknown(reason, rule=rule.name) for rule in rest]
    outcomes += _outcomes_one_per_cause(trace, trace_health, ranks, rules_to_run)
    findings = rank_findings(
        [
            with_framework_argument(
                trace, with_callers(trace, with_line_from_source(trace, outcome))
            )
            for outcome in outcomes
            if isinstance(outcome, Finding)
        ]
    )
    checked = [o for o in outcomes if isinstance(o, Checked)]
    is_usable = trace_health.verdict != "unusable"
    if is_usable:
        checked += _verdict_if_healthy_and_no_findings(trace, trace_health, findings)
    unknown = (outcome for outcome in outcomes if isinstance(outcome, Unknown))
    return Advice(
        with_bounded_texts(trace_health),
        typical_step(trace) if is_usable else TypicalStep(),
        with_bounded_texts(findings),
        with_joint_saving_of_run(trace, joint_saving(trace, findings), findings),
        with_bounded_texts(tuple(sorted(checked, key=_rule_name_and_reason))),
        with_bounded_texts(tuple(sorted(unknown, key=_rule_name_and_reason))),
        run_time(trace),
        trace,
        account=account_of_step(trace, findings, has_all_ranks=ranks is not None)
        if is_usable
        else None,
    )


def _is_about_run_in_hand(rule: Rule, trace: Trace) -> bool:
    """Returns whether a rule needs the run's ledger alone, and the ledger is there."""
    return rule.needs == ("ledger",) and not missing_requirement_sentences(trace, rule.needs)


def _outcomes_one_per_cause(
    trace: Trace, trace_health: Health, ranks: Ranks | None, rules_to_run: tuple[Rule, ...]
) -> list[Outcome]:
    """Returns what the rules say: each cause once, with its saving of the run if that is known."""
    said = _run_rules(rules_to_run, trace, ranks)
    found = _findings_merged_by_line(
        _distrust_estimate_if_work_is_lost(trace_health, o) for o in said if isinstance(o, Finding)
    )
    broad = frozenset(rule.name for rule in rules_to_run if rule.broad)
    apart = frozenset(rule.name for rule in rules_to_run if rule.uses_all_ranks) - broad
    rest = [outcome for outcome in said if not isinstance(outcome, Finding)]
    outcomes = rest + resolve_overlapping_findings(
        trace, found, broad, apart, measured_calibration_factors()
    )
    priced = with_savings_of_run(trace, (o for o in outcomes if isinstance(o, Finding)))
    others = [outcome for outcome in outcomes if not isinstance(outcome, Finding)]
    return [*others, *one_finding_per_cause(trace, priced)]


def health_of_trace(trace: Trace) -> Health:
    """Returns whether a trace's data are good enough for advice, with a note on each defect."""
    return health_from_checks(trace.view("health"))


def health_from_checks(checks: pl.DataFrame) -> Health:
    """Returns the worst verdict in a table of trace checks, and a note on each failed check."""
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


def _run_rules(rules_to_run: tuple[Rule, ...], trace: Trace, ranks: Ranks | None) -> list[Outcome]:
    """Returns all rules' outcomes, in the order of the rules."""
    return [outcome for rule in rules_to_run for outcome in _run_rule(rule, trace, ranks)]


def _run_rule(rule: Rule, trace: Trace, ranks: Ranks | None) -> tuple[Outcome, ...]:
    lacks = missing_requirement_sentences(trace, rule.needs)
    if lacks:
        return (Unknown("; ".join(lacks), rule=rule.name),)
    silent = Checked("this trace contains nothing of this kind", rule=rule.name, is_absent=True)
    try:
        return rule(trace, ranks, factors_by_rule=measured_calibration_factors()) or (silent,)
    except Exception as error:  # noqa: BLE001 - what the other rules say holds all the same
        return (outcome_of_failed_rule(rule, error),)


def outcome_of_failed_rule(rule: Rule, error: Exception) -> Unknown:
    """Returns that a rule cannot tell, since selftime itself is wrong."""
    said = f"{type(error).__name__}: {error}".replace("`", "'")
    return Unknown(f"a repair of selftime: it failed with {said}; please report it", rule=rule.name)


def _distrust_estimate_if_work_is_lost(trace_health: Health, finding: Finding) -> Finding:
    """Returns the finding; with low confidence if it has a saving and device work was lost."""
    is_lossy = any(note.check in _HEALTH_CHECKS_FOR_LOST_DEVICE_WORK for note in trace_health.notes)
    is_priced = finding.saving.estimate_ms is not None
    return replace(finding, confidence="low") if is_lossy and is_priced else finding


def _verdict_if_healthy_and_no_findings(
    trace: Trace, trace_health: Health, findings: tuple[Finding, ...]
) -> list[Checked]:
    """Returns `[verdict]` if nothing was found and the hardware is used well; else []."""
    praise = well_optimised_verdict(trace, findings) if trace_health.verdict == "good" else None
    return [] if praise is None else [checked_with_upper_bound(trace, praise)]


def _findings_merged_by_line(findings: Iterable[Finding]) -> list[Finding]:
    """Returns the findings with ids; findings of one rule on one source line become one finding.

    Without a source line, those of one rule with one title do.
    """
    ordered = sorted(findings, key=finding_identity)
    return with_finding_ids(
        _merge_findings(tuple(same)) for _, same in groupby(ordered, key=finding_identity)
    )


def _merge_findings(findings: tuple[Finding, ...]) -> Finding:
    """Returns several findings as one, with the largest of their savings and all their evidence."""
    largest = max(findings, key=lambda f: f.saving.estimate_ms or 0.0)
    counts = [f.count_per_step for f in findings if f.count_per_step is not None]
    evidence = dict.fromkeys(e for f in (largest, *findings) for e in f.evidence)
    return replace(
        largest,
        covers=tuple(sorted({entry for f in findings for entry in f.covers})),
        count_per_step=sum(counts) if counts else None,
        evidence=tuple(evidence),
        confidence=min((f.confidence for f in findings), key=_CONFIDENCES_ASCENDING.index),
        semantics=max((f.semantics for f in findings), key=FIX_SEMANTICS.index),
        changes=tuple(change for f in findings for change in f.changes),
    )


def _rule_name_and_reason(outcome: Checked | Unknown) -> tuple[str, str]:
    return outcome.rule, outcome.reason if isinstance(outcome, Checked) else outcome.needs
