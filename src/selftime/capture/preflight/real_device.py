"""Compares the waits on the simulated device with those on a real GPU (`--verify`).

The program runs twice: on the simulated device, and on the real one under
`torch.cuda.set_sync_debug_mode("warn")`, which warns where PyTorch waits for the device.
"""

# ruff: noqa: PLC0415 - torch is imported when the program imports it
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from selftime.capture.preflight.program import EnoughSteps, run_preflight
from selftime.capture.program.after_import import after_import, cancel_after_import
from selftime.capture.program.python_program import PythonProgram
from selftime.errors import RecordingError, UsageError

_TEXT_OF_TORCH_SYNC_WARNING: Final = "called a synchronizing CUDA operation"
"""Text in PyTorch's warning that an operation makes the host wait for the device."""
_PREFIXES_OF_CALLS_WITHOUT_WARNING: Final = ("torch.cuda.", "torch.accelerator.")
"""Name prefixes of functions that wait on purpose, about which PyTorch does not warn."""
_PYTHON_CODE_OF_GPU_CHILD: Final = (
    "import sys; from selftime.capture.preflight.real_device import record_real_waits; "
    "record_real_waits(*sys.argv[1:])"
)

FileLine = tuple[str, int]


@dataclass(frozen=True, slots=True)
class GpuWaitComparison:
    """Source lines where the host waits on the simulated device, on the real GPU, or on both."""

    both: tuple[FileLine, ...]
    simulated_only: tuple[FileLine, ...]
    device_only: tuple[FileLine, ...]


def compare_waits_with_gpu(
    target: str, args: Sequence[str], *, module: bool, steps: int | None
) -> GpuWaitComparison:
    """Runs a program on the simulated device and on the GPU; compares the lines with waits.

    Raises:
        UsageError: The machine has no GPU.
        RecordingError: The program could not be run on the GPU.
    """
    if not _has_gpu():
        raise UsageError(
            "`--verify` compares with a real GPU, and torch finds none on this machine; "
            "leave it out"
        )
    with tempfile.TemporaryDirectory(prefix="selftime-") as folder:
        lines_file = Path(folder) / "lines.json"
        words = [str(lines_file), json.dumps({"module": module, "steps": steps}), target, *args]
        subprocess.run([sys.executable, "-c", _PYTHON_CODE_OF_GPU_CHILD, *words], check=False)  # noqa: S603 - our own line
        if not lines_file.exists():
            raise RecordingError(f"`{target}` could not be run on the GPU; see its output above")
        real = {(file, line) for file, line in json.loads(lines_file.read_text(encoding="utf-8"))}
    found = run_preflight(target, args, module=module, steps=steps).found
    simulated = {
        (site.file, site.line)
        for site in (*found.sites, *found.sites_outside_steps)
        if site.file is not None
        and site.line is not None
        and not site.op.startswith(_PREFIXES_OF_CALLS_WITHOUT_WARNING)
    }
    return GpuWaitComparison(
        tuple(sorted(real & simulated)),
        tuple(sorted(simulated - real)),
        tuple(sorted(real - simulated)),
    )


def _has_gpu() -> bool:
    """Returns whether torch finds a GPU, tested in a child process."""
    line = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, check=False)  # noqa: S603 - our own line
    return done.returncode == 0


@dataclass
class _GpuRun:
    """A run on the GPU: counts steps and collects source lines of PyTorch's sync warnings."""

    program: PythonProgram
    max_steps: int | None
    lines: set[FileLine] = field(default_factory=set)
    step_count: int = 0
    steps: Any = None

    def attach_to_torch(self) -> None:
        import torch

        from selftime.capture.preflight.user_frame import UserFrameFinder
        from selftime.capture.steps import StepDetector

        user_frames = UserFrameFinder(
            lambda: self.program.user_packages, lambda _node: False, lambda *_: None
        )
        shown = warnings.showwarning

        def record_sync_warning(message: Any, *rest: Any, **named: Any) -> None:
            if _TEXT_OF_TORCH_SYNC_WARNING not in str(message):
                shown(message, *rest, **named)
                return
            location = user_frames.find_current_line().location
            if location.file is not None and location.line is not None:
                self.lines.add((location.file, location.line))

        warnings.showwarning = record_sync_warning
        warnings.filterwarnings("always", message=f".*{_TEXT_OF_TORCH_SYNC_WARNING}")
        torch.cuda.set_sync_debug_mode("warn")
        self.steps = StepDetector(self._on_step_boundary, lambda: None)
        self.steps.attach()

    def _on_step_boundary(self, _source: object) -> None:
        self.step_count += 1
        if self.max_steps is not None and self.step_count > self.max_steps:
            raise EnoughSteps(0)


def record_real_waits(lines_file: str, options_json: str, target: str, *args: str) -> None:
    """Runs a program on the GPU; writes the lines at which the host waited to `lines_file`.

    `options_json` is a JSON object: `module`, whether `target` is a module, and `steps`, after how
    many steps to end.
    """
    run_options = json.loads(options_json)
    program = PythonProgram(target, args, module=run_options["module"])
    real_run = _GpuRun(program, run_options["steps"])
    process = os.getpid()

    def detach_step_detector(_error: BaseException | None) -> None:
        cancel_after_import("torch")
        if real_run.steps is not None:
            real_run.steps.detach()

    after_import("torch", real_run.attach_to_torch)
    status = program.run(detach_step_detector)
    if os.getpid() == process:
        Path(lines_file).write_text(json.dumps(sorted(real_run.lines)), encoding="utf-8")
    sys.exit(status)
