"""Trials run in a child with a time limit: what hangs or crashes there does no harm here."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

_CHILD: Final = (
    "import sys; sys.path = [p for p in sys.path if p]; "
    "from selftime.capture.doctor.child import main; main(sys.argv[1:])"
)
"""Our own program in a new process, which finds no module in the working folder by accident."""

_GRACE_S: Final = 2.0
"""How long to wait for a killed child; one that waits for a driver in the kernel never ends."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a child told until it ended: an answer, or an error, of each stage that it came to."""

    answers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    died: str | None = None
    """How it ended before it had answered all."""
    stderr: str = ""

    def answer(self, stage: str) -> Mapping[str, Any] | None:
        return self.answers.get(stage)

    def why(self, stage: str) -> str | None:
        """Why there is no answer, if the stage was come to."""
        return self.errors.get(stage)


@dataclass(frozen=True, slots=True)
class Running:
    """A trial that has begun."""

    stages: tuple[str, ...]
    seconds: float
    child: "subprocess.Popen[bytes]"

    def trial(self) -> Trial:
        """Wait for its end, from now on at most so many seconds."""
        try:
            told, marks = self.child.communicate(timeout=self.seconds)
            died = _ending(self.child.returncode)
        except subprocess.TimeoutExpired:
            told, marks = _end(self.child)
            died = f"gave no answer within {self.seconds:g} s"
        return _read(self.stages, told, marks.decode("utf-8", "replace"), died)


@contextmanager
def begin(
    stages: Sequence[str], *, seconds: float, command: Sequence[str] | None = None
) -> Iterator[Running]:
    """Begin to run the stages in one child, one after the other; leaving the block ends it."""
    child = subprocess.Popen(  # noqa: S603 - our own program
        [*(command or (sys.executable, "-c", _CHILD)), *stages],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield Running(tuple(stages), seconds, child)
    finally:
        if child.returncode is None:  # the user is tired of waiting
            _end(child)


def run(stages: Sequence[str], *, seconds: float, command: Sequence[str] | None = None) -> Trial:
    """Run the stages in one child, in at most so many seconds in all."""
    with begin(stages, seconds=seconds, command=command) as running:
        return running.trial()


def _end(child: "subprocess.Popen[bytes]") -> tuple[bytes, bytes]:
    """Kill the child and what it started; what it had told by then."""
    with suppress(OSError):
        os.killpg(child.pid, signal.SIGKILL)
    try:
        return child.communicate(timeout=_GRACE_S)
    except subprocess.TimeoutExpired as late:
        return late.output or b"", late.stderr or b""


def _ending(status: int) -> str | None:
    if status >= 0:
        return f"ended with status {status}" if status else None
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _read(stages: Sequence[str], told: bytes, stderr: str, died: str | None) -> Trial:
    answers: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for line in told.splitlines():
        try:
            found = json.loads(line)
        except ValueError:  # the last line of a child that was killed
            continue
        if "error" in found:
            errors[found["stage"]] = found["error"]
        else:
            answers[found["stage"]] = found["answer"]
    left = [stage for stage in stages if stage not in answers and stage not in errors]
    if left:  # the first of them is the one that it died of
        died = died or "ended without an answer"
        errors[left[0]] = f"the process {died}"
    return Trial(answers, errors, died if left else None, stderr)
