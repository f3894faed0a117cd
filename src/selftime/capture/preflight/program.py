"""A program under preflight: as it is, for a few steps, on a device that is pretended."""

import functools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast

from selftime.capture.lines.sources import SourceFiles
from selftime.capture.patches import Patches
from selftime.capture.preflight.found import Found
from selftime.capture.program.after_import import after_import, forget
from selftime.capture.program.program import Program
from selftime.errors import RecordingError

if TYPE_CHECKING:
    from selftime.capture.preflight.fake_device import Pretence
    from selftime.capture.recorder.recorder import Recorder
    from selftime.capture.steps import Source, Steps

_PATIENCE: Final = 50
"""Calls of a module that are waited for the first step of an optimizer that was built: a rollout or
an accumulation of gradients takes some dozens, and a laptop still runs them in a minute."""
_OURS: Final = str(Path(__file__).parent) + os.sep


class EnoughSteps(SystemExit):
    """Ends a program between two steps, with status 0, once enough of them were seen.

    It is a SystemExit, so that `finally`, `with` and what `atexit` holds run as at any other end.
    """


@dataclass(frozen=True, slots=True)
class Failure:
    """What a program raised, and its own line that did."""

    text: str
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class Preflight:
    """How the program ended, and what was found in it."""

    status: int
    """The program's own exit status; 0 if it was ended after enough steps."""
    found: Found
    source: str | None
    """What told where steps end; None if no step was found."""
    ended_early: bool
    """Whether the program was ended because enough steps were seen."""
    ended_at: tuple[str | None, int | None]
    """The line at which it was ended."""
    error: Failure | None
    """What the program raised at last, if it failed."""
    imported_torch: bool


@dataclass
class _Flight:
    """What watches the program once it has imported torch."""

    program: Program
    wanted: int | None
    """Steps to count after the first; None to let the program run to its end."""
    found: Found = field(default_factory=Found)
    source: "Source | None" = None
    pretence: "Pretence | None" = None
    steps: "Steps | None" = None
    ended_early: bool = False
    optimizers: bool = False
    """Whether one was built."""
    patches: Patches = field(default_factory=Patches)
    ended_at: tuple[str | None, int | None] = (None, None)
    error: Failure | None = None
    failure: str | None = None
    """Why nothing can be pretended, if it cannot."""
    process: int = field(default_factory=os.getpid)

    def attach(self) -> None:
        try:
            self._put_up()
        except Exception as error:  # noqa: BLE001 - the program's `import torch` goes on
            self.failure = f"{type(error).__name__}: {error}"
            self._take_down()

    def _put_up(self) -> None:
        from selftime.capture.preflight.fake_device import Pretence  # noqa: PLC0415 - imports torch
        from selftime.capture.recorder.watching import follow  # noqa: PLC0415 - likewise
        from selftime.capture.steps import Steps  # noqa: PLC0415 - likewise

        self.pretence = Pretence(self.found, lambda: self.program.own_code)
        self.pretence.put_up()
        self.steps = Steps(self.boundary, lambda: None)
        self.steps.attach()
        self.patches.wrap(
            sys.modules["torch"].optim.Optimizer, "_patch_step_function", self._count_optimizer
        )
        follow(cast("Recorder", self))

    def boundary(self, source: "Source") -> None:
        """Between two steps: what is to be believed more begins the count anew."""
        if os.getpid() != self.process or (self.source is not None and source < self.source):
            return
        if self.source is not None and source > self.source:
            self.found.forget_steps()
        self.source = source
        self.found.end_step()
        if self.pretence is not None:
            self.pretence.step_ended()
        if self.wanted is not None and self.found.steps >= self._enough(source, self.wanted):
            self.ended_early = True
            raise EnoughSteps(0)

    def _enough(self, source: "Source", wanted: int) -> int:
        """How many steps; more of them where an optimizer may still tell what a step is."""
        from selftime.capture.steps import Source  # noqa: PLC0415 - imports torch

        waits = source < Source.SOME_OPTIMIZERS and self.optimizers
        return max(wanted, _PATIENCE) if waits else wanted

    def _count_optimizer(self, original: Any) -> Any:
        @functools.wraps(original)
        def patch_step(optimizer: Any) -> None:
            original(optimizer)
            self.optimizers = True

        return patch_step

    def _take_down(self) -> None:
        self.patches.undo()
        if self.steps is not None:
            self.steps.detach()
        if self.pretence is not None:
            self.pretence.take_down()

    def ending(self, error: BaseException | None) -> None:
        forget("torch")
        self._take_down()
        if isinstance(error, EnoughSteps):
            self.ended_at = _users_line(error.__traceback__, self.program.own_code)
        if error is not None and not isinstance(error, SystemExit):
            error.__traceback__ = _without_us(error.__traceback__)
            text = " ".join(str(error).split())
            text = f"{type(error).__name__}: {text}" if text else type(error).__name__
            self.error = Failure(text, *_users_line(error.__traceback__, self.program.own_code))


def run_preflight(
    target: str, args: Sequence[str], *, module: bool, steps: int | None
) -> Preflight:
    """Run a script, or a module as `python -m` does, until `steps` steps were counted.

    The first step shares with what comes before it and is not counted. With `steps=None` the
    program runs to its end. What is wrong with `target` itself is a UsageError.
    """
    program = Program(target, args, module=module)
    flight = _Flight(program, steps)
    after_import("torch", flight.attach)
    status = program.run(flight.ending)
    if os.getpid() != flight.process:  # a child that the program forked: the answer is its parent's
        raise SystemExit(status)
    if flight.failure is not None:
        raise RecordingError(
            f"a device cannot be pretended in this torch: {flight.failure}; "
            "please report it with the version of torch"
        )
    return Preflight(
        status=status,
        found=flight.found,
        source=None if flight.source is None else flight.source.label,
        ended_early=flight.ended_early,
        ended_at=flight.ended_at,
        error=flight.error,
        imported_torch="torch" in sys.modules,
    )


def _without_us(trace: TracebackType | None) -> TracebackType | None:
    """The traceback as it would be on a GPU: without the frames of the pretence."""
    frames = []
    while trace is not None:
        if not trace.tb_frame.f_code.co_filename.startswith(_OURS):
            frames.append(trace)
        trace = trace.tb_next
    rest = None
    for step in reversed(frames):
        rest = TracebackType(rest, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return rest


def _users_line(trace: TracebackType | None, own: Sequence[str]) -> tuple[str | None, int | None]:
    """The innermost line of the user's own code that a traceback goes through."""
    files = SourceFiles(own)
    found: tuple[str | None, int | None] = (None, None)
    while trace is not None:
        file = files.user_file(trace.tb_frame.f_code.co_filename)
        if file is not None:
            found = file, trace.tb_lineno
        trace = trace.tb_next
    return found
