"""Where there is a GPU: what was found without it, against what CUDA's own waits say.

The program runs twice: once on the pretended device, and once on the real one under
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
from selftime.capture.program.after_import import after_import, forget
from selftime.capture.program.program import Program
from selftime.errors import RecordingError, UsageError

_WARNING: Final = "called a synchronizing CUDA operation"
"""How PyTorch's own warning begins."""
_UNSEEN: Final = ("torch.cuda.", "torch.accelerator.")
"""Calls that wait by their purpose: PyTorch does not warn of them."""
_AGAIN: Final = (
    "import sys; from selftime.capture.preflight.verify import observe; observe(*sys.argv[1:])"
)

Line = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Lines that wait, by who says so."""

    both: tuple[Line, ...]
    pretended_only: tuple[Line, ...]
    device_only: tuple[Line, ...]


def compare(target: str, args: Sequence[str], *, module: bool, steps: int | None) -> Comparison:
    """Run the program on both devices; a UsageError where there is none to compare with."""
    if not _has_device():
        raise UsageError(
            "`--verify` compares with a real GPU, and torch finds none on this machine; "
            "leave it out"
        )
    with tempfile.TemporaryDirectory(prefix="selftime-") as folder:
        answer = Path(folder) / "lines.json"
        words = [str(answer), json.dumps({"module": module, "steps": steps}), target, *args]
        subprocess.run([sys.executable, "-c", _AGAIN, *words], check=False)  # noqa: S603 - our own line
        if not answer.exists():
            raise RecordingError(
                f"`{target}` could not be watched on the GPU; see what it printed above"
            )
        real = {(file, line) for file, line in json.loads(answer.read_text(encoding="utf-8"))}
    found = run_preflight(target, args, module=module, steps=steps).found
    pretended = {
        (site.file, site.line)
        for site in (*found.sites, *found.outside)
        if site.file is not None and site.line is not None and not site.op.startswith(_UNSEEN)
    }
    return Comparison(
        tuple(sorted(real & pretended)),
        tuple(sorted(pretended - real)),
        tuple(sorted(real - pretended)),
    )


def _has_device() -> bool:
    """Whether torch finds a GPU; asked in a process of its own, so that ours stays without one."""
    line = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 1)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, check=False)  # noqa: S603 - our own line
    return done.returncode == 0


@dataclass
class _Watch:
    """Counts the steps of the real run, and gathers the lines of PyTorch's warnings."""

    program: Program
    wanted: int | None
    lines: set[Line] = field(default_factory=set)
    seen: int = 0
    steps: Any = None

    def attach(self) -> None:
        import torch

        from selftime.capture.preflight.user_frame import Whereabouts
        from selftime.capture.steps import Steps

        where = Whereabouts(lambda: self.program.own_code, lambda _node: False, lambda *_: None)
        shown = warnings.showwarning

        def show(message: Any, *rest: Any, **named: Any) -> None:
            if _WARNING not in str(message):
                shown(message, *rest, **named)
                return
            place = where.here().place
            if place.file is not None and place.line is not None:
                self.lines.add((place.file, place.line))

        warnings.showwarning = show
        warnings.filterwarnings("always", message=f".*{_WARNING}")
        torch.cuda.set_sync_debug_mode("warn")
        self.steps = Steps(self._boundary, lambda: None)
        self.steps.attach()

    def _boundary(self, _source: object) -> None:
        self.seen += 1
        if self.wanted is not None and self.seen > self.wanted:
            raise EnoughSteps(0)


def observe(answer: str, options: str, target: str, *args: str) -> None:
    """Run the program on the real device, and leave the lines that waited in a file."""
    wanted = json.loads(options)
    program = Program(target, args, module=wanted["module"])
    watch = _Watch(program, wanted["steps"])
    process = os.getpid()

    def ending(_error: BaseException | None) -> None:
        forget("torch")
        if watch.steps is not None:
            watch.steps.detach()

    after_import("torch", watch.attach)
    status = program.run(ending)
    if os.getpid() == process:
        Path(answer).write_text(json.dumps(sorted(watch.lines)), encoding="utf-8")
    sys.exit(status)
