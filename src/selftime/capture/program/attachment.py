"""What a Python process of a recorded program does when it comes to import torch."""

import atexit
import os
import sys

from selftime.capture.program.job import Job
from selftime.capture.program.outcome import RunResult
from selftime.capture.program.recorded_process import RecordedProcess, how_it_ended
from selftime.capture.timing.order import folder_of_order
from selftime.capture.timing.timed_process import TimedProcess


def attach() -> None:
    """Record this process, or time it, if it makes steps."""
    times = folder_of_order()
    if times is not None:
        TimedProcess(times).watch()
        return
    job = Job.of_environment()
    if job is None:
        return
    process = RecordedProcess(job.options, job, _package_of_main)
    if os.getpid() == job.root:  # the program has replaced the process that ran it
        atexit.register(_answer, process, job)
    process.watch()


def _answer(process: RecordedProcess, job: Job) -> None:
    """Say what the root would have said of the whole run."""
    if os.getpid() != job.root:
        return
    process.finish(how_it_ended(getattr(sys, "last_value", None)))
    result = RunResult.of(0, 0.0, None, job.reports())
    job.close()
    if not job.talks or os.environ.get("RANK", "0") != "0":
        return
    told = result.sentences(str)
    if result.answer is not None:
        told.append(f"for the answer: selftime advise {result.answer}")
    for sentence in told:
        sys.stderr.write(f"selftime: {sentence}\n")
    sys.stderr.flush()


def _package_of_main() -> tuple[str, ...]:
    """The folders of the installed package that the program is part of, if it is a module."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    package = None if spec is None else sys.modules.get(spec.name.partition(".")[0])
    around = getattr(package, "__spec__", None)
    return () if around is None else tuple(around.submodule_search_locations or ())
