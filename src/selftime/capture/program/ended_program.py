"""Answers for a program whose process ended before it could, from what it left on the disk."""

from dataclasses import replace
from pathlib import Path
from time import perf_counter_ns

from selftime.capture.ledger.file import ended_status, write_end
from selftime.capture.program.guarded_process import how_it_ended
from selftime.capture.program.run_channel import ProcessReport, RunChannel
from selftime.capture.program.run_result import RunResult


def result_of_ended_program(
    channel: RunChannel, process: int, status: int
) -> tuple[RunResult, str | None]:
    """Returns what was recorded of a program, and how it ended; None for a usual end.

    Args:
        channel: Where its processes left their reports.
        process: Id of the process that ran it.
        status: The wait status of that process.
    """
    now = perf_counter_ns()
    reports = channel.read_reports()
    own = next((report for report in reports if report.process == process), None)
    how = None if channel.has_replaced_program_ended else how_it_ended(status)
    if own is not None and own.ledger is not None:
        how = _end_of_ledger(own.ledger, how, now)
    if own is None:
        own = ProcessReport(process, reason="its process left nothing before its end")
    elif not own.traces and own.reason is None and how is not None:
        own = replace(own, reason=f"the program was {how} before a trace was written")
    others = [report for report in reports if report.process != process]
    return RunResult.from_reports(0, 0.0, own, others), how


def _end_of_ledger(ledger: Path, how: str | None, at: int) -> str | None:
    """Returns how the process of a ledger ended, and writes it into the ledger if it is missing."""
    told = ended_status(ledger)
    if told is not None:
        return told if told.startswith("ended by") else how
    if how is not None:
        write_end(ledger, how, at)
    return how
