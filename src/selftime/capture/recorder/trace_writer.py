"""Writes recordings to trace files while the program continues."""

import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, Final

from selftime.capture.facts import machine
from selftime.capture.profiler.profile import Profile
from selftime.capture.steps import StepSource
from selftime.capture.trace_file import trace_files
from selftime.errors import RecordingError

THREAD_SWITCH_INTERVAL_S: Final = 1e-4
"""Python's thread switch interval in seconds while a trace is being written; the default is 0.005.

A program of many small operators requests the interpreter lock after each of them.
"""


class TraceWriter:
    """Writes recordings one after the other to new files in a folder.

    torch writes its JSON without the interpreter lock. Adding the facts needs the lock, which the
    program's operators then wait for: so threads switch more often meanwhile.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread: ThreadPoolExecutor | None = None
        self._jobs: list[Future[None]] = []

    @property
    def is_idle(self) -> bool:
        return all(job.done() for job in self._jobs)

    def state_as_json(
        self, source: StepSource | None, traces: Sequence[Path], *, is_on: bool
    ) -> dict[str, Any]:
        """Returns as JSON values the state of the recorder; `is_on` while it records steps."""
        return {
            "process": os.getpid(),
            "steps_from": None if source is None else source.label,
            "recording": is_on,
            "writing": not self.is_idle,
            "traces": [str(path) for path in traces],
        }

    def write_in_background(
        self,
        profile: Profile,
        prepare: Callable[[], None],
        on_written: Callable[[Path | RecordingError], None],
        name: str | None = None,
    ) -> None:
        """Writes a recording in a background thread, by default to a file of a new name.

        It calls `prepare` before, and `on_written` with the result afterwards.
        """
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="selftime writer")
        try:
            job = self._thread.submit(self._write_in_thread, profile, prepare, on_written, name)
        except RuntimeError:  # the interpreter is shutting down, or no thread can be started
            on_written(self.write_now(profile, prepare, name))
            return
        self._jobs = [*(job for job in self._jobs if not job.done()), job]

    def _write_in_thread(
        self,
        profile: Profile,
        prepare: Callable[[], None],
        on_written: Callable[[Path | RecordingError], None],
        name: str | None,
    ) -> None:
        previous_interval = sys.getswitchinterval()
        sys.setswitchinterval(min(previous_interval, THREAD_SWITCH_INTERVAL_S))
        try:
            result = self.write_now(profile, prepare, name)
        finally:
            sys.setswitchinterval(previous_interval)
        on_written(result)

    def write_now(
        self, profile: Profile, prepare: Callable[[], None], name: str | None = None
    ) -> Path | RecordingError:
        """Writes a recording to a file and frees its memory; returns the path or an error."""
        try:
            prepare()
            trace_files.make_trace_folder(self._folder)
            rank, _ = machine.rank_and_world()
            name = name or trace_files.trace_file_name(rank)
            path = trace_files.unused_trace_path(self._folder, name)
            profile.write_trace(path)
        except RecordingError as error:
            return error
        except OSError as error:  # torch's own file, in the temporary folder
            place, why = error.filename or tempfile.gettempdir(), error.strerror or error
            return RecordingError(
                f"`{place}` cannot be written: {why}; set TMPDIR to another place"
            )
        except Exception as error:  # noqa: BLE001 - the program must go on
            return RecordingError(
                f"selftime failed to write the trace: {type(error).__name__}: {error}; "
                "please report it"
            )
        finally:
            profile.forget()  # now, since the program may be killed
        return path

    def wait(self) -> None:
        """Waits until all recordings are written."""
        wait(self._jobs)
        for job in self._jobs:
            job.result()
        self._jobs = []
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
