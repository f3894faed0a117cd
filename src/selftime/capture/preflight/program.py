"""Runs an unchanged program for a few steps on the simulated CUDA device."""

import functools
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, cast

from selftime.capture.attribute_patches import AttributePatches
from selftime.capture.lines.sources import SourceFiles
from selftime.capture.preflight.results import PreflightWaits
from selftime.capture.program.after_import import after_import, cancel_after_import
from selftime.capture.program.python_program import PythonProgram
from selftime.errors import RecordingError

if TYPE_CHECKING:
    from selftime.capture.preflight.fake_device import FakeDevice
    from selftime.capture.recorder.recorder import Recorder
    from selftime.capture.steps import StepDetector, StepSource

_MAX_MODULE_CALLS_BEFORE_OPTIMIZER_STEP: Final = 50
"""Number of module calls to wait for the first step of an existing optimizer: reinforcement
learning and gradient accumulation may make dozens before it."""
_PREFLIGHT_FOLDER: Final = str(Path(__file__).parent) + os.sep


class EnoughSteps(SystemExit):
    """Raised between two steps to end the program with status 0 after enough steps.

    It is a SystemExit, so that `finally`, `with` and `atexit` functions run as usual.
    """


@dataclass(frozen=True, slots=True)
class ProgramError:
    """The error that ended a program, with the line of the user's code that raised the error."""

    text: str
    file: str | None
    line: int | None


@dataclass(frozen=True, slots=True)
class PreflightResult:
    """The host waits found in a program on the simulated device, and how the program ended."""

    status: int
    """Exit status of the program; 0 if it was ended on purpose after enough steps."""
    found: PreflightWaits
    source: str | None
    """Text that says what marked the ends of steps, such as `optimizer steps`; None without
    steps."""
    ended_early: bool
    """Whether the program was ended on purpose after enough steps."""
    ended_at: tuple[str | None, int | None]
    """(file, line) of the user's code at which the program was ended on purpose."""
    error: ProgramError | None
    """The error that ended the program; None if it did not fail."""
    imported_torch: bool
    used_device: bool
    """Whether the program put a tensor on the simulated device."""


@dataclass
class _PreflightRun:
    """State of a program that runs on the simulated device: steps so far, waits and errors."""

    program: PythonProgram
    wanted_steps: int | None
    """Number of steps to count after the first; None to run the program to its end."""
    found: PreflightWaits = field(default_factory=PreflightWaits)
    source: "StepSource | None" = None
    fake_device: "FakeDevice | None" = None
    steps: "StepDetector | None" = None
    ended_early: bool = False
    has_optimizer: bool = False
    """Whether the program has created an optimizer."""
    patches: AttributePatches = field(default_factory=AttributePatches)
    ended_at: tuple[str | None, int | None] = (None, None)
    error: ProgramError | None = None
    install_error: str | None = None
    """Why the device cannot be simulated; None if it can."""
    process: int = field(default_factory=os.getpid)

    def attach_to_torch(self) -> None:
        try:
            self._install_simulation()
        except Exception as error:  # noqa: BLE001 - the program's `import torch` must not fail
            self.install_error = f"{type(error).__name__}: {error}"
            self._uninstall_simulation()

    def _install_simulation(self) -> None:
        from selftime.capture.preflight.fake_device import FakeDevice  # noqa: PLC0415 - imports torch
        from selftime.capture.recorder.step_watch import send_steps_to  # noqa: PLC0415 - likewise
        from selftime.capture.steps import StepDetector  # noqa: PLC0415 - likewise

        self.fake_device = FakeDevice(self.found, lambda: self.program.user_packages)
        self.fake_device.install()
        self.steps = StepDetector(self.on_step_boundary, lambda: None)
        self.steps.attach()
        self.patches.wrap_attribute(
            sys.modules["torch"].optim.Optimizer,
            "_patch_step_function",
            self._wrap_patch_step_to_note_optimizer,
        )
        send_steps_to(cast("Recorder", self))

    def on_step_boundary(self, source: "StepSource") -> None:
        """Counts a step; restarts at 0 if a more reliable kind of event (`source`) marks steps."""
        if os.getpid() != self.process or (self.source is not None and source < self.source):
            return
        if self.source is not None and source > self.source:
            self.found.forget_steps()
        self.source = source
        self.found.end_step()
        if self.fake_device is not None:
            self.fake_device.on_step_end()
        if self.wanted_steps is not None and self.found.steps >= self._required_step_count(
            source, self.wanted_steps
        ):
            self.ended_early = True
            raise EnoughSteps(0)

    def _required_step_count(self, source: "StepSource", wanted_steps: int) -> int:
        """Returns how many steps to run; more than wanted if an optimizer has yet to step."""
        from selftime.capture.steps import StepSource  # noqa: PLC0415 - imports torch

        expects_optimizer = source < StepSource.SOME_OPTIMIZERS and self.has_optimizer
        return (
            max(wanted_steps, _MAX_MODULE_CALLS_BEFORE_OPTIMIZER_STEP)
            if expects_optimizer
            else wanted_steps
        )

    def _wrap_patch_step_to_note_optimizer(self, original: Any) -> Any:
        @functools.wraps(original)
        def patch_step(optimizer: Any) -> None:
            original(optimizer)
            self.has_optimizer = True

        return patch_step

    def _uninstall_simulation(self) -> None:
        self.patches.restore_all()
        if self.steps is not None:
            self.steps.detach()
        if self.fake_device is not None:
            self.fake_device.uninstall()

    def has_used_device(self) -> bool:
        """Returns whether the program put a tensor on the simulated device."""
        from selftime.capture.preflight.locations import DeviceUse  # noqa: PLC0415 - imports torch

        return self.fake_device is not None and DeviceUse.has_begun

    def on_program_end(self, error: BaseException | None) -> None:
        cancel_after_import("torch")
        self._uninstall_simulation()
        if isinstance(error, EnoughSteps):
            self.ended_at = _innermost_user_line(error.__traceback__, self.program.user_packages)
        if error is not None and not isinstance(error, SystemExit):
            error.__traceback__ = _without_preflight_frames(error.__traceback__)
            text = " ".join(str(error).split())
            text = f"{type(error).__name__}: {text}" if text else type(error).__name__
            self.error = ProgramError(
                text, *_innermost_user_line(error.__traceback__, self.program.user_packages)
            )


def run_preflight(
    target: str, args: Sequence[str], *, module: bool, steps: int | None
) -> PreflightResult:
    """Runs a script or module on the simulated device until `steps` steps have been counted.

    The first step includes the program's setup and is not counted. With `steps=None` the program
    runs to its end.

    Raises:
        UsageError: `target` cannot be run.
        RecordingError: This version of torch does not allow to simulate a device.
    """
    program = PythonProgram(target, args, module=module)
    preflight_run = _PreflightRun(program, steps)
    after_import("torch", preflight_run.attach_to_torch)
    status = program.run(preflight_run.on_program_end)
    if os.getpid() != preflight_run.process:  # a forked child; its parent returns the result
        raise SystemExit(status)
    if preflight_run.install_error is not None:
        raise RecordingError(
            f"no device can be simulated in this version of torch: {preflight_run.install_error}; "
            "please report it with the version of torch"
        )
    return PreflightResult(
        status=status,
        found=preflight_run.found,
        source=None if preflight_run.source is None else preflight_run.source.label,
        ended_early=preflight_run.ended_early,
        ended_at=preflight_run.ended_at,
        error=preflight_run.error,
        imported_torch="torch" in sys.modules,
        used_device=preflight_run.has_used_device(),
    )


def _without_preflight_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Returns a traceback without the frames of the simulation."""
    frames = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_PREFLIGHT_FOLDER):
            frames.append(traceback)
        traceback = traceback.tb_next
    rest = None
    for step in reversed(frames):
        rest = TracebackType(rest, step.tb_frame, step.tb_lasti, step.tb_lineno)
    return rest


def _innermost_user_line(
    traceback: TracebackType | None, user_paths: Sequence[str]
) -> tuple[str | None, int | None]:
    """Returns (file, line) of the innermost frame of the user's code in a traceback."""
    files = SourceFiles(user_paths)
    found: tuple[str | None, int | None] = (None, None)
    while traceback is not None:
        file = files.user_file(traceback.tb_frame.f_code.co_filename)
        if file is not None:
            found = file, traceback.tb_lineno
        traceback = traceback.tb_next
    return found
