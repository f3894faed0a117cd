"""Answers for a program whose process ended before it could, from what it left on the disk."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from time import monotonic, perf_counter_ns, sleep
from typing import Any, Final

from selftime.capture.ledger.file import add_to_end, ended_status, write_end
from selftime.capture.program.guarded_process import how_it_ended
from selftime.capture.program.run_channel import ProcessReport, RunChannel
from selftime.capture.program.run_result import RunResult

MAX_WAIT_S: Final = 1.0
"""How long to wait for other processes of the program that end by the same signal, in seconds."""

MAX_MEASURING_S: Final = 10.0
"""Longest time in seconds for a new process to import torch and to measure the CPU's rates."""

_POLL_S: Final = 0.02

_PYTHON_CODE_OF_MEASURING_PROCESS: Final = (
    "import sys; sys.path = [p for p in sys.path if p]; "
    "from selftime.capture.facts.cpu_peak_trials import main; main(sys.argv[1:])"
)
"""Python code that the measuring process runs; it imports no modules from the working folder."""


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


def measure_cpu_after_end(
    result: RunResult,
    status: int,
    environment: Mapping[str, str],
    is_to_end: Callable[[], bool],
) -> None:
    """Adds the CPU's rates to the ledger of the process that gets advice, if it worked on the CPU.

    Nothing is measured after SIGKILL, by which the system ends what takes its memory, or while
    other processes of the program run.

    Args:
        result: What was recorded of the program, whose process has ended.
        status: The wait status of that process.
        environment: The environment in which the program was run.
        is_to_end: Returns whether the command is to end at once.
    """
    report = next((one for one in result.processes if one.traces), None)
    if report is None or report.ledger is None or report.cpu_threads is None:
        return
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == SIGKILL:
        return
    if any(one.still_runs for one in result.processes):
        return
    facts = _facts_of_measuring_process(report.cpu_threads, environment, is_to_end)
    if facts is not None:
        add_to_end(report.ledger, facts)


def _facts_of_measuring_process(
    threads: int, environment: Mapping[str, str], is_to_end: Callable[[], bool]
) -> dict[str, Any] | None:
    """Returns what a new process tells of the CPU, as JSON values; None if it is to end at once."""
    deadline = monotonic() + MAX_MEASURING_S
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", _PYTHON_CODE_OF_MEASURING_PROCESS, str(threads)],
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        while child.poll() is None and monotonic() < deadline and not is_to_end():
            sleep(_POLL_S)
        if child.poll() is None:
            child.kill()
            late = f"measuring it took longer than {MAX_MEASURING_S:.0f} s"
            return None if is_to_end() else {"cpu_peaks": None, "cpu_peaks_unknown": late}
        assert child.stdout is not None  # noqa: S101 - it is a pipe
        lines = child.stdout.read().splitlines()
    try:
        facts: dict[str, Any] = json.loads(lines[-1])
    except (IndexError, ValueError):
        return {"cpu_peaks": None, "cpu_peaks_unknown": "the measuring process failed"}
    return facts


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
