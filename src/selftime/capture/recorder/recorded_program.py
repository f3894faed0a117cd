"""Callbacks by which a recorder asks about the program that it records."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from selftime.capture.recorder.other_profilers import OWN_PROFILER, OtherProfilers
from selftime.errors import RecordingError


def _always() -> bool:
    return True


def do_nothing() -> None:
    pass


@dataclass(slots=True)
class RecordedProgram:
    """Callbacks by which a recorder asks about the program; the defaults allow everything."""

    has_torch_worked: Callable[[], bool] = _always
    """Returns whether an operator of torch is known to have run."""
    may_interrupt: Callable[[], bool] = _always
    """Returns whether a profiler may start or stop right now, in the midst of a step: not within a
    backward pass, whose thread has the state of the profiler of its own."""
    on_failure: Callable[[], None] = do_nothing
    """Called after a failure of selftime's own code: nothing more will be recorded."""
    other_profilers: OtherProfilers | None = None
    """The profilers that the program starts itself; None if nothing watches them."""

    @property
    def is_profiling_itself(self) -> bool:
        """Returns whether a profiler of the program is running."""
        return self.other_profilers is not None and self.other_profilers.is_active

    def forget_own_results(self) -> None:
        """Drops what the program's profiler recorded, since there is a better recording."""
        if self.other_profilers is not None:
            self.other_profilers.forget_results()

    def keep_own_results(self, folder: Path, ledger: str | None) -> tuple[Path | None, str | None]:
        """Writes what the program's profiler recorded, if anything.

        Returns the file and a message to the user; None for what there is not.
        """
        if self.other_profilers is None:
            return None, None
        try:
            path = self.other_profilers.write_results(folder, ledger)
        except (OSError, RecordingError) as error:
            return None, f"what {OWN_PROFILER} recorded could not be kept: {error}"
        return path, None if path is None else f"what {OWN_PROFILER} recorded is in {path}"
