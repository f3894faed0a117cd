"""Starts to record or time a Python process that a program run by selftime has started."""

import atexit
import os
import sys

from selftime.capture.program.early_log import stop_early_log
from selftime.capture.program.printed_tracebacks import (
    hide_own_frames_at_uncaught_exception,
    hide_own_frames_in_printed_tracebacks,
)
from selftime.capture.program.process_end import exit_reason
from selftime.capture.program.recorded_process import RecordedProcess
from selftime.capture.program.run_channel import RunChannel
from selftime.capture.program.run_result import RunResult
from selftime.capture.timing.step_times import requested_step_times_folder
from selftime.capture.timing.timed_process import TimedProcess


def record_or_time_this_process() -> None:
    """Starts to record or time this process if the environment says that selftime runs it."""
    early_times = stop_early_log()
    hide_own_frames_in_printed_tracebacks()
    hide_own_frames_at_uncaught_exception()
    times = requested_step_times_folder()
    if times is not None:
        TimedProcess(times).watch()
        return
    channel = RunChannel.from_environment()
    if channel is None:
        return
    process = RecordedProcess(
        channel.options, channel, _package_folders_of_main, early_times=early_times
    )
    if os.getpid() == channel.root_pid:  # the program replaced the root process by `exec`
        atexit.register(_print_run_result, process, channel)
    process.watch()


def _print_run_result(process: RecordedProcess, channel: RunChannel) -> None:
    """Prints the result if the first process of the run was replaced by this one with `exec`.

    Where another process waits for this one it prints the result.
    """
    if os.getpid() != channel.root_pid:
        return
    process.finish(exit_reason(getattr(sys, "last_value", None)))
    if channel.is_guarded:
        report = process.process_report()
        if report is not None:
            channel.write_report(report)
        channel.note_end_of_replaced_program()
        return
    result = RunResult.from_reports(0, 0.0, None, channel.read_reports())
    channel.remove_folder()
    if not channel.shows_results or os.environ.get("RANK", "0") != "0":
        return
    messages = result.sentences(str)
    if result.answer is not None:
        messages.append(f"for the answer: selftime advise {result.answer}")
    for sentence in messages:
        sys.stderr.write(f"selftime: {sentence}\n")
    sys.stderr.flush()


def _package_folders_of_main() -> tuple[str, ...]:
    """Returns the folders of the installed package to which the program's main module belongs."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    package = None if spec is None else sys.modules.get(spec.name.partition(".")[0])
    around = getattr(package, "__spec__", None)
    return () if around is None else tuple(around.submodule_search_locations or ())
