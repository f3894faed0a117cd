"""Writes for an agent, as Markdown within the token limit, what its actions did."""

from collections.abc import Iterator, Sequence
from typing import Final

from selftime.advice.verify import PredictedSaving, Verification
from selftime.bench.result import Bench
from selftime.ingest.trace_listing import ListedTrace
from selftime.mcp.markdown_pages import UNTRUSTED_TEXT_NOTE
from selftime.mcp.program_runs import ProgramOutcome
from selftime.reports.advice.markdown import code_span, escape_markdown
from selftime.reports.bench import as_markdown
from selftime.units import milliseconds_text, time_range_text

_MAX_OUTPUT_LINES: Final = 20
"""Largest number of a program's last lines of output that an answer shows."""
_MAX_LISTED: Final = 20
"""Largest number of traces, findings or notes that an answer lists."""
_MIN_SIGNAL_STATUS: Final = 128


def record_answer(outcome: ProgramOutcome, new: Sequence[ListedTrace], limit_s: float) -> str:
    """Returns how a recorded program ended, its new traces, and its last lines."""
    lines = [UNTRUSTED_TEXT_NOTE, "", _end_sentence(outcome, limit_s)]
    if new:
        lines += ["", f"New traces: {len(new)}. `advise` says what to change in one, by its id."]
        lines += [f"- {code_span(one.id)}: {code_span(one.name)}" for one in new[:_MAX_LISTED]]
    else:
        lines += ["", "There is no new trace; the last lines may say why."]
    return "\n".join([*lines, *_output_lines(outcome)])


def bench_answer(outcome: ProgramOutcome, result: Bench | None, limit_s: float) -> str:
    """Returns the speed-up of two programs; how the bench ended where it has no result."""
    lines = [UNTRUSTED_TEXT_NOTE, ""]
    if result is not None and not outcome.is_late:
        lines += [as_markdown(result)]
        if result.failure is None:
            return "\n".join(lines)
    return "\n".join([*lines, _end_sentence(outcome, limit_s), *_output_lines(outcome)])


def verification_answer(found: Verification) -> str:
    """Returns what a repair saved, what was promised, and whether results are the same."""
    return "\n".join([UNTRUSTED_TEXT_NOTE, "", *_verification_lines(found)])


def _verification_lines(found: Verification) -> Iterator[str]:
    step = found.achieved
    recorded = "recorded steps" if step.recorded else "steps that were not recorded"
    before, after = milliseconds_text(step.before_ms), milliseconds_text(step.after_ms)
    yield f"- Step: {before} before, {after} after ({recorded})"
    interval = time_range_text(step.low_ms * 1e6, step.high_ms * 1e6)
    yield f"- Saved: {milliseconds_text(step.saved_ms)} a step ({interval}, 95 %)"
    yield from (f"- Of this saving {escape_markdown(limit)}" for limit in found.limits)
    if found.predicted_ms is not None:
        predicted = milliseconds_text(found.predicted_ms)
        yield f"- Predicted by findings that are gone: {predicted} a step"
    if found.repaired is not None:
        state = "gone" if found.repaired.is_gone else "still there"
        yield f"- {code_span(found.repaired.id)} is {state}; its promise: {found.repaired.verdict}"
    if found.results is None:
        yield "- Results: not compared; record both with `run --results`"
    else:
        yield f"- Results: {found.results.verdict}: {escape_markdown(found.results.text)}"
        yield from (f"- {escape_markdown(reason)}" for reason in found.results.reasons)
    for title, findings in (("Gone", found.gone), ("Left", found.left), ("New", found.new)):
        yield from (f"- {title}: {_finding_text(one)}" for one in findings[:_MAX_LISTED])
    yield from (f"- {escape_markdown(note)}" for note in found.notes[:_MAX_LISTED])


def _finding_text(finding: PredictedSaving) -> str:
    where = "line unknown"
    if finding.file:
        where = code_span(
            finding.file if finding.line is None else f"{finding.file}:{finding.line}"
        )
    saving = "no number"
    if finding.estimate_ms is not None:
        saving = f"{milliseconds_text(finding.estimate_ms)} a step"
    return f"{code_span(finding.rule)} at {where}, {saving}"


def _end_sentence(outcome: ProgramOutcome, limit_s: float) -> str:
    if outcome.is_cancelled:
        return f"It was cancelled after {outcome.seconds:.1f} s; none of its processes is left."
    if outcome.is_late:
        return (
            f"It was stopped after {limit_s:g} s, the longest time that the user allows "
            "(`--limit-seconds`); none of its processes is left."
        )
    signal = outcome.status - _MIN_SIGNAL_STATUS
    how = f"by signal {signal}" if signal > 0 else f"with status {outcome.status}"
    return f"It ended {how} after {outcome.seconds:.1f} s."


def _output_lines(outcome: ProgramOutcome) -> Iterator[str]:
    """Yields the last lines of a program's output, each as a name that is inert."""
    text = outcome.output_end.decode("utf-8", "backslashreplace")
    lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip()]
    if not lines:
        return
    shown = lines[-_MAX_OUTPUT_LINES:]
    yield ""
    yield f"Its last {len(shown)} lines, of {outcome.output_bytes:,} bytes:"
    yield from (f"- {code_span(line)}" for line in shown)
