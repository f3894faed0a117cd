"""Runs functions at the end of a process: on SIGTERM, at exit, and in forked children.

On SIGTERM, Python by default ends at once; here a recording is finished first. A program that
handles SIGTERM itself is left alone.
"""

import atexit
import ctypes
import functools
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final, NoReturn

from selftime.capture.attribute_patches import AttributePatches

EXIT_HANDLER_PRIORITY: Final = 100
"""Priority of selftime's exit handler in `multiprocessing`; it runs before those of Python,
which have at most 15."""


class SigtermHandler:
    """SIGTERM handler that is installed only while needed, and only if the program has none."""

    def __init__(
        self, finish: Callable[[str], None], postpone: Callable[[Callable[[], None]], bool]
    ) -> None:
        """Makes a handler that is not installed.

        Args:
            finish: Finishes the recording; it is told how the process ends.
            postpone: Has the function that it is given called when the recorder's own work is done;
                returns False if the recorder does not work now.
        """
        self._finish, self._postpone = finish, postpone
        self._process = os.getpid()
        self._installed = False

    def install(self) -> None:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._handle_sigterm)
            self._installed = True

    def remove(self) -> None:
        if self._installed and threading.current_thread() is threading.main_thread():
            if signal.getsignal(signal.SIGTERM) == self._handle_sigterm:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
            self._installed = False

    def _handle_sigterm(self, number: int, _frame: FrameType | None) -> None:
        in_child = os.getpid() != self._process  # a forked one inherits the handler
        if not in_child and self._postpone(functools.partial(os.kill, self._process, number)):
            return  # the signal is sent once more
        # The signal may come twice: directly, and forwarded by a launcher.
        signal.signal(number, signal.SIG_IGN)
        if not in_child:
            self._finish("ended by SIGTERM")
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)


class ImmediateExit:
    """Has `finish` called before `os._exit`, which runs nothing else, ends this process."""

    def __init__(self, finish: Callable[[str], None]) -> None:
        """Makes it inactive; `finish` is told how the process ends."""
        self._finish = finish
        self._process = os.getpid()
        self._patches = AttributePatches()

    def attach(self) -> None:
        self._patches.wrap_attribute(os, "_exit", self._wrapped)

    def detach(self) -> None:
        self._patches.restore_all()

    def _wrapped(self, original: Callable[[int], NoReturn]) -> Callable[[int], NoReturn]:
        @functools.wraps(original)
        def _exit(status: int) -> NoReturn:
            if os.getpid() == self._process:  # not in a forked child, which often ends so
                self._finish(f"ended by os._exit({status})")
            original(status)

        return _exit


def skip_destructors_at_exit() -> None:
    """Makes this forked process end without C++ destructors, right after Python has ended.

    The profiler's threads do not exist in a forked process, and its C++ destructors, which run
    after Python has ended, wait for them: the process would hang or abort. Exit handlers run in
    reverse order: C streams are flushed, then the process exits. Without `on_exit` in the C
    library, as outside Linux, nothing changes.
    """
    library = ctypes.CDLL(None)
    with suppress(AttributeError):
        library.on_exit(library._exit, None)  # noqa: SLF001 - a C function
        library.__cxa_atexit(library.fflush, None, None)  # noqa: SLF001 - as above


def exit_reason(error: BaseException | None) -> str | None:
    """Returns as text what ended a program early, given its exception; None for a normal end."""
    if error is None or (isinstance(error, SystemExit) and error.code in (None, 0)):
        return None
    return f"ended by {type(error).__name__}"


def is_out_of_memory(error: BaseException | None) -> bool:
    """Returns whether a program ended since it got no more memory, given its exception."""
    is_of_torch = type(error) is RuntimeError and "DefaultCPUAllocator" in str(error)
    return is_of_torch or isinstance(error, MemoryError)


def run_at_process_end(act: Callable[[], None]) -> None:
    """Calls `act` when this process ends; works also for processes of `multiprocessing`."""
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize  # noqa: PLC0415 - already imported

        Finalize(None, act, exitpriority=EXIT_HANDLER_PRIORITY)
    else:
        atexit.register(act)


def is_loader_worker() -> bool:
    """Returns whether this process is a worker of a DataLoader."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def is_loader_worker_starting() -> bool:
    """Returns whether this process has just been forked to be a worker of a DataLoader.

    Right after the fork, `multiprocessing` has the process object in a variable alone.
    """
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 - the only way to the frames
    while frame is not None:
        if frame.f_globals.get("__name__") == "multiprocessing.popen_fork":
            target = getattr(frame.f_locals.get("process_obj"), "_target", None)
            return getattr(target, "__module__", "") == "torch.utils.data._utils.worker"
        frame = frame.f_back
    return False
