"""What every framework's part is made of: a recording that begins, steps, ends and answers.

It speaks in single lines on stderr, and on the first rank of a job only.
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
    from selftime.capture.recorder.watching import StepWatch


class Options(TypedDict, total=False):
    """What may be asked of a recording, on every surface by the same names."""

    steps: int
    """Steps to record."""
    warmup: int
    """Steps to let pass before."""
    seconds: float
    """Longest time to record."""
    max_bytes: int
    """Largest trace, in bytes before compression."""
    stack: bool
    """Whether source lines are recorded."""
    shapes: bool
    """Whether input shapes are recorded."""
    memory: bool
    """Whether allocations are recorded."""
    folder: str | os.PathLike[str]
    """Where the trace goes."""
    answer: bool
    """Whether the findings are printed at the end; without it one line says where they are."""
    quiet: bool
    """Whether nothing at all is said."""


_LIMITS: Final = {
    "steps": "active",
    "warmup": "warmup",
    "seconds": "seconds",
    "max_bytes": "max_bytes",
    "stack": "with_stack",
    "shapes": "record_shapes",
    "memory": "profile_memory",
    "folder": "folder",
}
"""The names of the options in `RunOptions`."""

_LEAST: Final = {"steps": 1, "warmup": 0, "seconds": 0, "max_bytes": 1}


class Recording:
    """From `begin` to `end` the steps between are recorded: a few steady ones, in one file."""

    def __init__(self, name: str, options: Options, *, one_file: bool = False) -> None:
        self.name = name
        """What the user wrote, for sentences."""
        self.limits = as_limits(name, options)
        self.one_file = one_file
        """Whether a later recording takes the place of an earlier one, if it holds more."""
        self.trace: Path | None = None
        """The file of the last recording, if one was written."""
        self._recorded = 0
        self.answers = options.get("answer", False)
        self._quiet = options.get("quiet", False)
        self._watch: StepWatch | None = None
        self._failure: str | None = None
        """Why this torch cannot be watched."""

    def __getstate__(self) -> dict[str, Any]:
        """What a trainer takes along to another process, or copies: what was asked, no more."""
        return {**vars(self), "_watch": None}

    @property
    def watch(self) -> "StepWatch":
        """The recording's core, made when it is needed: it imports torch."""
        if self._watch is None:
            from selftime.capture.recorder.watching import StepWatch  # noqa: PLC0415 - imports torch

            self._watch = StepWatch(replace(self.limits, notify=self.say), name=self.name)
            self._watch.on_done = self._keep
        return self._watch

    @property
    def usable(self) -> bool:
        """Whether this torch can be watched; if not, it is said once, and the program goes on."""
        if self._failure is None and self._watch is None:
            try:
                self._watch = self.watch
            except Exception as error:  # noqa: BLE001 - a training does not fail for its recorder
                self._failure = f"torch cannot be watched: {type(error).__name__}: {error}"
                if not self._quiet:
                    sys.stderr.write(f"selftime: `{self.name}` records nothing: {self._failure}\n")
        return self._watch is not None

    @property
    def done(self) -> bool:
        """Whether the steps that come will not be recorded."""
        return self._watch is None or self._watch.done

    def begin(self) -> None:
        """The first step begins."""
        if self.usable:
            self.watch.begin()

    def step(self) -> None:
        """A step has ended and another begins."""
        if self._watch is not None:
            self._watch.step()

    def end(self, reason: str | None = None) -> None:
        """The last step has ended; `reason` tells why if that was early."""
        if self._watch is None or not self._watch.running:
            return
        self._watch.end(reason)
        if self.answers and self.trace is not None and self._speaks():
            sys.stderr.write(f"\n{self.advise()}\n")

    def advise(self) -> "Advice":
        """What to change, by the last recording; a RecordingError says why there is none."""
        from selftime.advice import advise  # noqa: PLC0415 - reading needs more than recording
        from selftime.ingest.load import load  # noqa: PLC0415 - likewise
        from selftime.trace import Trace  # noqa: PLC0415 - likewise

        if self.trace is None:
            told = None if self._watch is None else self._watch.reason
            why = self._failure or told or "it has not begun, or not ended"
            raise RecordingError(f"`{self.name}` has recorded nothing: {why}")
        trace = load(self.trace)
        assert isinstance(trace, Trace)  # noqa: S101 - a file holds one trace
        return advise(trace)

    def say(self, sentence: str) -> None:
        if self._speaks():
            sys.stderr.write(f"selftime: {sentence}\n")

    def _keep(self, watch: "StepWatch") -> None:
        kept = self.trace if self.one_file else None
        written = watch.traces[-1] if watch.traces else None
        if written is None:
            self.trace = kept
            if kept is None:
                self.say(f"`{self.name}` recorded nothing: {watch.reason}")
            return
        if kept is not None:
            less = written if watch.recorded <= self._recorded else kept
            less.unlink(missing_ok=True)
            written = written if less is kept else kept
        self.trace, self._recorded = written, max(watch.recorded, self._recorded if kept else 0)
        steps = "1 step" if self._recorded == 1 else f"{self._recorded} steps"
        self.say(f"recorded {steps}; what to change: selftime advise {_from_here(written)}")

    def _speaks(self) -> bool:
        """Whether this process is the one of its job that speaks."""
        from selftime.capture.facts.machine import rank_and_world  # noqa: PLC0415 - imports torch

        return not self._quiet and rank_and_world()[0] in (None, 0)


def as_limits(name: str, options: Options) -> RunOptions:
    """The options as the recorder takes them; a UsageError names what is wrong with them."""
    given: dict[str, Any] = dict(options)
    unknown = given.keys() - Options.__annotations__.keys()
    if unknown:
        known = ", ".join(sorted(Options.__annotations__))
        raise UsageError(f"`{name}` has no option `{min(unknown)}`; there are {known}")
    for option, least in _LEAST.items():
        value = given.get(option, least)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
            raise UsageError(f"`{option}` of `{name}` is {value!r}; give a number from {least}")
    told = {_LIMITS[option]: value for option, value in given.items() if option in _LIMITS}
    if "folder" in told:
        told["folder"] = Path(told["folder"])
    return RunOptions(**told)


def _from_here(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
