"""Runs a function in the main thread between two bytecode instructions of the program.

An exception that a signal handler raises while the function runs, such as `KeyboardInterrupt` at
Ctrl-C, is the program's: it is raised between the two instructions. A C callback that `ctypes`
makes of a Python function would print it and go on. So the interpreter's own `PyObject_IsTrue` is
scheduled. It calls `__bool__` of an object and passes on what that raises.
"""

import ctypes
import functools
import weakref
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

    def schedule(self, function: Callable[[], None]) -> None:
        """Schedules a call, from any thread; does nothing while another call is waiting."""
        if self._function is not None:
            return
        self._function = function
        if self._request(None) != 0:  # the interpreter's queue is full
            self._function = None

    def schedule_on_deletion(self, function: Callable[[], None]) -> CallRequest:
        """Returns an object; its deletion makes the main thread call `function`.

        A function that the interpreter calls, such as a trace function, keeps the object in a local
        variable. It is deleted when that function has returned, and no Python code runs until the
        interpreter makes the scheduled call. To schedule the call directly would make it at once,
        within the function.
        """
        self._function = function
        request = CallRequest()
        self._request_reference = weakref.ref(request, self._request)
        return request

    def __bool__(self) -> bool:
        """Calls the scheduled function; the interpreter takes False as success."""
        function, self._function = self._function, None
        try:
            if function is not None:
                function()
        except Exception as error:  # noqa: BLE001 - it is called in the midst of the program
            self._on_failure(error)
        return False
