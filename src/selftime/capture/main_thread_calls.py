"""Runs a function in the main thread between two bytecode instructions of the program.

An exception that a signal handler raises while the function runs, such as `KeyboardInterrupt` at
Ctrl-C, is the program's: it is raised between the two instructions. A C callback that `ctypes`
makes of a Python function would print it and go on. So the interpreter's own `PyObject_IsTrue` is
scheduled. It calls `__bool__` of an object and passes on what that raises.

The interpreter is asked for one call at a time, whoever schedules. It does not make a call while it
is making another, and CPython 3.11 looks for the second one without end at the start of the next
Python function, if a profiler or tracer is on. What is scheduled meanwhile runs when the first
call is done.
"""

import ctypes
import functools
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Final

_ADD_PENDING_CALL_TYPE: Final = ctypes.PYFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.py_object
)
_add_pending_call: Final = _ADD_PENDING_CALL_TYPE(("Py_AddPendingCall", ctypes.pythonapi))
"""The interpreter's function, with one more argument that it ignores: the dead weak reference."""
_IS_TRUE: Final = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
_SCHEDULED: Final[list["MainThreadCalls"]] = []
"""All that may be scheduled: the interpreter holds their addresses alone."""


class _PendingCall:
    """The one call that the interpreter is asked for, and what runs at its end."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_requested = False
        """Whether the interpreter has been asked for a call that is not done yet."""
        self.next: deque[MainThreadCalls] = deque()
        """What was scheduled since, the first one first."""

    def replace_lock(self) -> None:
        """Makes another lock in a forked child: a thread of the parent may have held this one."""
        self.lock = threading.RLock()


_PENDING: Final = _PendingCall()
os.register_at_fork(after_in_child=_PENDING.replace_lock)


class CallRequest:
    """An object that requests a function call in the main thread when it is deleted."""

    __slots__ = ("__weakref__",)


class MainThreadCalls:
    """Schedules function calls in the main thread; at most one call waits at a time.

    The interpreter makes them between two bytecode instructions (`Py_AddPendingCall`); while the
    main thread is within a long call of a C function, they wait.
    """

    def __init__(self, on_failure: Callable[[Exception], None]) -> None:
        """Makes a schedule; `on_failure` is given what a called function raises."""
        self._on_failure = on_failure
        self._function: Callable[[], None] | None = None
        self._request: Any = functools.partial(_add_pending_call, _IS_TRUE, id(self))
        self._request_reference: weakref.ref[CallRequest] | None = None
        _SCHEDULED.append(self)

    @property
    def is_waiting(self) -> bool:
        """Returns whether a scheduled call has not been made yet."""
        return self._function is not None

    def schedule(self, function: Callable[[], None]) -> None:
        """Schedules a call, from any thread; does nothing while another call is waiting."""
        with _PENDING.lock:
            if self._function is not None:
                return
            self._function = function
            if _PENDING.is_requested:
                _PENDING.next.append(self)
                return
            _PENDING.is_requested = True
        self._request_call()

    def schedule_on_deletion(self, function: Callable[[], None]) -> CallRequest:
        """Returns an object; its deletion makes the main thread call `function`.

        A function that the interpreter calls, such as a trace function, keeps the object in a local
        variable. It is deleted when that function has returned, and no Python code runs until the
        interpreter makes the scheduled call. To schedule the call directly would make it at once,
        within the function.
        """
        request = CallRequest()
        with _PENDING.lock:
            self._function = function
            if _PENDING.is_requested:
                _PENDING.next.append(self)
            else:
                _PENDING.is_requested = True
                self._request_reference = weakref.ref(request, self._request)
        return request

    def __bool__(self) -> bool:
        """Makes the scheduled calls; the interpreter takes False as success."""
        try:
            self._call_function()
            while (following := self._next_call()) is not None:
                following._call_function()  # noqa: SLF001 - of its own class
        except BaseException:  # of a signal handler: the program's
            following = self._next_call()
            if following is not None:
                following._request_call()  # noqa: SLF001 - likewise
            raise
        return False

    @staticmethod
    def _next_call() -> "MainThreadCalls | None":
        """Takes what was scheduled next; without any, the interpreter may be asked again."""
        with _PENDING.lock:
            following = _PENDING.next.popleft() if _PENDING.next else None
            _PENDING.is_requested = following is not None
        return following

    def _request_call(self) -> None:
        """Asks the interpreter for the call, which may make it at once, so without the lock."""
        if self._request(None) != 0:  # the interpreter's queue is full
            self._function = None
            _PENDING.is_requested = False

    def _call_function(self) -> None:
        function, self._function = self._function, None
        try:
            if function is not None:
                function()
        except Exception as error:  # noqa: BLE001 - it is called in the midst of the program
            self._on_failure(error)
