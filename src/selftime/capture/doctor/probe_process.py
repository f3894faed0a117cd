"""Runs tests of the machine, which may hang or crash, in a child process with a time limit."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

_PYTHON_CODE_OF_PROBE_CHILD: Final = (
    "import sys; sys.path = [p for p in sys.path if p]; "
    "from selftime.capture.doctor.probes import main; main(sys.argv[1:])"
)
"""Python code that the child process runs; it imports no modules from the working folder."""

_MAX_WAIT_FOR_KILLED_CHILD_S: Final = 2.0
"""Seconds to wait for a killed child process to end; it may never end if a driver blocks it."""


@dataclass(frozen=True, slots=True)
class ProbeResults:
    """Results of tests ("probes") in a child process: an answer or an error for each."""

    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    end_reason: str | None = None
    """How the child process ended if it did not answer all probes; None if it answered all."""
    stderr: str = ""

    def answer(self, probe_name: str) -> Mapping[str, Any] | None:
        return self.answers.get(probe_name)

    def error(self, probe_name: str) -> str | None:
        """Returns why the test `probe_name` failed; None if it succeeded or did not run."""
        return self.errors.get(probe_name)


@dataclass(frozen=True, slots=True)
class RunningProbes:
    """A running child process that tests the machine."""

    probe_names: tuple[str, ...]
    seconds: float
    child: "subprocess.Popen[bytes]"

    def wait(self) -> ProbeResults:
        """Waits for the child process up to its time limit, and returns the test results."""
        try:
            stdout, stderr = self.child.communicate(timeout=self.seconds)
            end_reason = _abnormal_child_end_reason(self.child.returncode)
        except subprocess.TimeoutExpired:
            stdout, stderr = _kill_and_read_output(self.child)
            end_reason = f"gave no answer within {self.seconds:g} s"
        return _parse_probe_answers(
            self.probe_names, stdout, stderr.decode("utf-8", "replace"), end_reason
        )


@contextmanager
def start_probes(
    probe_names: Sequence[str], *, seconds: float, command: Sequence[str] | None = None
) -> Iterator[RunningProbes]:
    """Starts a child process that runs the named tests; kills it at the end of the `with` block.

    `command` replaces the child's program; the names of the probes are its arguments.
    """
    child = subprocess.Popen(  # noqa: S603 - our own program
        [*(command or (sys.executable, "-c", _PYTHON_CODE_OF_PROBE_CHILD)), *probe_names],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield RunningProbes(tuple(probe_names), seconds, child)
    finally:
        if child.returncode is None:  # the user interrupted
            _kill_and_read_output(child)


def run_probes(
    probe_names: Sequence[str], *, seconds: float, command: Sequence[str] | None = None
) -> ProbeResults:
    """Runs the named tests in one child process for at most `seconds`; returns their results."""
    with start_probes(probe_names, seconds=seconds, command=command) as running:
        return running.wait()


def _kill_and_read_output(child: "subprocess.Popen[bytes]") -> tuple[bytes, bytes]:
    """Kills the child process and its descendants; returns (stdout, stderr) of the child."""
    with suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    try:
        return child.communicate(timeout=_MAX_WAIT_FOR_KILLED_CHILD_S)
    except subprocess.TimeoutExpired as late:
        return late.output or b"", late.stderr or b""


def _abnormal_child_end_reason(exit_status: int) -> str | None:
    if exit_status >= 0:
        return f"ended with status {exit_status}" if exit_status else None
    try:
        return f"was ended by {signal.Signals(-exit_status).name}"
    except ValueError:
        return f"was ended by signal {-exit_status}"


def _parse_probe_answers(
    probe_names: Sequence[str], stdout: bytes, stderr: str, end_reason: str | None
) -> ProbeResults:
    answers: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for line in stdout.splitlines():
        try:
            found = json.loads(line)
        except ValueError:  # incomplete last line of a killed child
            continue
        if "error" in found:
            errors[found["stage"]] = found["error"]
        else:
            answers[found["stage"]] = found["answer"]
    missing = [
        probe_name
        for probe_name in probe_names
        if probe_name not in answers and probe_name not in errors
    ]
    if missing:  # the child ended in the first of them
        end_reason = end_reason or "ended without an answer"
        errors[missing[0]] = f"the process {end_reason}"
    return ProbeResults(answers, errors, end_reason if missing else None, stderr)
