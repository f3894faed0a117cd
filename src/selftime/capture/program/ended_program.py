"""Answers for a program whose process ended before it could, from what it left on the disk."""

from dataclasses import replace
from pathlib import Path
from time import monotonic, perf_counter_ns, sleep
from typing import Final

from selftime.capture.ledger.file import ended_status, write_end
from selftime.capture.program.guarded_process import how_it_ended
from selftime.capture.program.run_channel import ProcessReport, RunChannel
from selftime.capture.program.run_result import RunResult

MAX_WAIT_S: Final = 1.0
"""How long to wait for other processes of the program that end by the same signal, in seconds."""

_POLL_S: Final = 0.02


def result_of_ended_program(
    channel: RunChannel, process: int, status: int, *, others_end: bool = False
) -> tuple[RunResult, str | None]:
    """Returns what was recorded of a program, and how it ended; None for a usual end.

    Args:
        channel: Where its processes left their reports.
        process: Id of the process that ran it.
        status: The wait status of that process.
        others_end: Whether the processes that it started end as well, since a signal came to all.
    """
    now = perf_counter_ns()
    reports = _reports_of_ending_processes(channel) if others_end else channel.read_reports()
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


def _reports_of_ending_processes(channel: RunChannel) -> list[ProcessReport]:
    """Returns the reports once no process runs any more, or after `MAX_WAIT_S`."""
    deadline = monotonic() + MAX_WAIT_S
    while True:
        reports = channel.read_reports()
        if not any(report.still_runs for report in reports) or monotonic() > deadline:
            return reports
        sleep(_POLL_S)


def _end_of_ledger(ledger: Path, how: str | None, at: int) -> str | None:
    """Returns how the process of a ledger ended, and writes it into the ledger if it is missing."""
    told = ended_status(ledger)
    if told is not None:
        return told if told.startswith("ended by") else how
    if how is not None:
        write_end(ledger, how, at)
    return how
