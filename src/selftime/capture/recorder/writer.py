"""Writes recordings while the program goes on."""

import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

from selftime.capture import trace_files
from selftime.capture.facts import machine
from selftime.capture.profile import Profile
from selftime.errors import RecordingError

SWITCH_SECONDS: Final = 1e-4
"""How long a thread keeps Python's lock while something is written; usually it is 5 ms.

A program of many small operators asks for the lock after each of them.
"""


class Writer:
    """Writes one recording after the other into a folder, under names that nothing else has.

    The recorder's own file is made without Python's lock. What is read beside needs the lock, and
    an operator that let go of it waits for it: meanwhile it changes hands more often.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._thread: ThreadPoolExecutor | None = None
        self._jobs: list[Future[None]] = []

    @property
    def idle(self) -> bool:
        return all(job.done() for job in self._jobs)

    def later(
        self,
        profile: Profile,
        before: Callable[[], None],
        then: Callable[[Path | RecordingError], None],
    ) -> None:
        """Write beside the program; the others are called from the writer's thread."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="selftime writer")
        try:
            job = self._thread.submit(self._beside, profile, before, then)
        except RuntimeError:  # the interpreter is about to end, or no thread can be had
            then(self.now(profile, before))
            return
        self._jobs = [*(job for job in self._jobs if not job.done()), job]

    def _beside(
        self,
        profile: Profile,
        before: Callable[[], None],
        then: Callable[[Path | RecordingError], None],
    ) -> None:
        usual = sys.getswitchinterval()
        sys.setswitchinterval(min(usual, SWITCH_SECONDS))
        try:
            result = self.now(profile, before)
        finally:
            sys.setswitchinterval(usual)
        then(result)

    def now(self, profile: Profile, before: Callable[[], None]) -> Path | RecordingError:
        """Write, and drop what the recording holds; the path, or why there is none."""
        try:
            before()
            trace_files.make_folder(self._folder)
            rank, _ = machine.rank_and_world()
            path = trace_files.free_path(self._folder, trace_files.run_name(rank))
            profile.write_trace(path)
        except RecordingError as error:
            return error
        except OSError as error:  # the recorder's own file, which lies in the temporary folder
            where, why = error.filename or tempfile.gettempdir(), error.strerror or error
            return RecordingError(
                f"`{where}` cannot be written: {why}; set TMPDIR to another place"
            )
        except Exception as error:  # noqa: BLE001 - the program goes on whatever is wrong with us
            return RecordingError(
                f"selftime failed to write the trace: {type(error).__name__}: {error}; "
                "please report it"
            )
        finally:
            profile.forget()  # now, for a program may end without a chance to clean up
        return path

    def wait(self) -> None:
        """Come back when everything is written."""
        wait(self._jobs)
        for job in self._jobs:
            job.result()
        self._jobs = []
        if self._thread is not None:
            self._thread.shutdown()
            self._thread = None
