"""Records steps of a training loop that Lightning, Accelerate or another framework reports.

`Recording` prints single lines to stderr, only on the first rank of a job.
"""

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypedDict

from selftime.capture.recorder.run_options import RunOptions
from selftime.errors import RecordingError, UsageError

if TYPE_CHECKING:
    from selftime.advice import Advice
    from selftime.capture.recorder.step_watch import StepWatch


class Options(TypedDict, total=False):
    """Options of a recording that the integrations of all frameworks accept."""

    steps: int
    """Number of steps to record."""
    warmup: int
    """Number of steps to skip before the recording."""
    seconds: float
    """Longest duration of the recording, in seconds."""
    max_bytes: int
    """Largest size of the trace before compression, in bytes."""
    stack: bool
    """Whether to record Python frames, from which source lines are known."""
    shapes: bool
    """Whether to record the input shapes of operators."""
    memory: bool
    """Whether to record memory allocations."""
    folder: str | os.PathLike[str]
    """Folder to write the trace to."""
    ledger: bool
    """Whether to write beside the trace what the whole loop spent its wall time on."""
    answer: bool
    """Whether to print the advice at the end; if False, one line says how to get the advice."""
    quiet: bool
    """Whether to print nothing."""


_RUN_OPTIONS_FIELD_BY_OPTION: Final = {
    "steps": "active",
    "warmup": "warmup",
    "seconds": "seconds",
    "max_bytes": "max_bytes",
    "stack": "with_stack",
    "shapes": "record_shapes",
    "memory": "profile_memory",
    "folder": "folder",
}
"""Maps each option's name in `Options` to the name of its field in `RunOptions`."""

_MINIMUM_BY_OPTION: Final = {"steps": 1, "warmup": 0, "seconds": 0, "max_bytes": 1}
"""Smallest allowed value of each numeric option, by name."""


class Recording:
    """Records a few steps, after warm-up, of the loop between `begin` and `end`, into a file."""

    def __init__(self, name: str, options: Options, *, one_file: bool = False) -> None:
        self.name = name
        """Name that the user's code uses, such as `SelftimeCallback`, shown in messages."""
        self.limits = run_options(name, options)
        self.one_file = one_file
        """Whether to keep only one trace file: a later recording with more steps replaces it."""
        self.trace: Path | None = None
        """Path of the last recording's trace; None if none was written."""
        self._recorded = 0
        self._ledger: Path | None = None
        """Path of the ledger beside that trace; None if there is none."""
        self.answers = options.get("answer", False)
        self._quiet = options.get("quiet", False)
        self._keeps_ledger = options.get("ledger", True)
        self._watch: StepWatch | None = None
        self._failure: str | None = None
        """Why this torch version is not supported; None if it is, or if that is not yet known."""

    def __getstate__(self) -> dict[str, Any]:
        """Returns the object's state for `copy` and `pickle`, without the running recorder."""
        return {**vars(self), "_watch": None}

    @property
    def watch(self) -> "StepWatch":
        """Returns the object that records steps; created on first use, as it imports torch."""
        if self._watch is None:
            from selftime.capture.recorder.step_watch import StepWatch  # noqa: PLC0415 - imports torch

            self._watch = StepWatch(
                replace(self.limits, notify=self.print_sentence),
                name=self.name,
                keeps_ledger=self._keeps_ledger,
            )
            self._watch.on_done = self._keep_trace_with_most_steps
        return self._watch

    @property
    def usable(self) -> bool:
        """Returns whether this torch version is supported; if not, prints that once."""
        if self._failure is None and self._watch is None:
            try:
                self._watch = self.watch
            except Exception as error:  # noqa: BLE001 - training must go on
                self._failure = (
                    f"steps cannot be detected in this PyTorch: {type(error).__name__}: {error}"
                )
                if not self._quiet:
                    sys.stderr.write(f"selftime: `{self.name}` records nothing: {self._failure}\n")
        return self._watch is not None

    @property
    def done(self) -> bool:
        """Returns whether no further steps will be recorded."""
        return self._watch is None or self._watch.done

    def begin(self) -> None:
        """Marks the start of the first step of a loop."""
        if self.usable:
            self.watch.begin()

    def step(self) -> None:
        """Marks the end of one step and the start of the next step."""
        if self._watch is not None:
            self._watch.step()

    def end(self, reason: str | None = None) -> None:
        """Marks the end of the last step; `reason` says why the loop ended early, else None."""
        if self._watch is None or not self._watch.running:
            return
        self._watch.end(reason)
        if self.answers and self.trace is not None and self._may_print_messages():
            sys.stderr.write(f"\n{self.advise()}\n")

    def advise(self) -> "Advice":
        """Returns advice about the last recording.

        Raises:
            RecordingError: There is no recording.
        """
        from selftime.advice import advise  # noqa: PLC0415 - reading needs more than recording
        from selftime.ingest.load import load  # noqa: PLC0415 - likewise
        from selftime.trace import Trace  # noqa: PLC0415 - likewise

        if self.trace is None:
            told = None if self._watch is None else self._watch.reason
            why = self._failure or told or "the recording has not begun, or has not ended"
            raise RecordingError(f"`{self.name}` has recorded nothing: {why}")
        trace = load(self.trace)
        assert isinstance(trace, Trace)  # noqa: S101 - a file holds one trace
        return advise(trace)

    def print_sentence(self, sentence: str) -> None:
        if self._may_print_messages():
            sys.stderr.write(f"selftime: {sentence}\n")

    def _keep_trace_with_most_steps(self, watch: "StepWatch") -> None:
        kept = self.trace if self.one_file else None
        written = watch.traces[-1] if watch.traces else None
        if written is None:
            self.trace = kept
            if kept is None:
                self.print_sentence(f"`{self.name}` recorded nothing: {watch.reason}")
            return
        if kept is not None:
            less = written if watch.steps_recorded <= self._recorded else kept
            less.unlink(missing_ok=True)
            ledger = watch.ledger if less is written else self._ledger
            if ledger is not None:
                ledger.unlink(missing_ok=True)
            written = written if less is kept else kept
        if written != kept:
            self._ledger = watch.ledger
        self.trace, self._recorded = (
            written,
            max(watch.steps_recorded, self._recorded if kept else 0),
        )
        steps = "1 step" if self._recorded == 1 else f"{self._recorded} steps"
        path = _path_relative_to_working_folder(written)
        self.print_sentence(f"recorded {steps}; what to change: selftime advise {path}")

    def _may_print_messages(self) -> bool:
        """Returns whether this process prints messages: only rank 0 does, unless it is quiet."""
        from selftime.capture.facts.machine import rank_and_world  # noqa: PLC0415 - imports torch

        return not self._quiet and rank_and_world()[0] in (None, 0)


def run_options(user_name: str, options: Options) -> RunOptions:
    """Returns the user's options as the recorder's `RunOptions`; raises an error for wrong ones.

    Raises:
        UsageError: An option is unknown or has an invalid value.
    """
    given: dict[str, Any] = dict(options)
    unknown = given.keys() - Options.__annotations__.keys()
    if unknown:
        known = ", ".join(sorted(Options.__annotations__))
        raise UsageError(f"`{user_name}` has no option `{min(unknown)}`; there are {known}")
    for option, least in _MINIMUM_BY_OPTION.items():
        value = given.get(option, least)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
            raise UsageError(
                f"`{option}` of `{user_name}` is {value!r}; give a number from {least}"
            )
    told = {
        _RUN_OPTIONS_FIELD_BY_OPTION[option]: value
        for option, value in given.items()
        if option in _RUN_OPTIONS_FIELD_BY_OPTION
    }
    if "folder" in told:
        told["folder"] = Path(told["folder"])
    return RunOptions(**told)


def _path_relative_to_working_folder(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
