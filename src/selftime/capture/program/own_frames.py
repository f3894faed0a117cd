"""Removes selftime's frames from the traceback of a program's exception.

Frames of selftime are in it where the program calls a function of torch that selftime has wrapped,
and where Ctrl-C came during selftime's own work. What that work called is not the program's either.
What a wrapper calls is: it holds the function, or the object, that it wraps.
"""

import functools
import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType, MethodType, TracebackType
from typing import Final

from selftime.capture.main_thread_calls import MainThreadCalls

_OWN_FOLDER: Final = str(Path(__file__).parents[2]) + os.sep
_SCHEDULED_CALL: Final = MainThreadCalls.__bool__.__code__


def hide_own_frames(error: BaseException) -> None:
    """Removes selftime's frames from an exception, and from those that it follows from.

    An `Exception` that was raised within selftime's own work keeps that end of its traceback, by
    which the fault can be found.
    """
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        one = left.pop()
        if one is not None and id(one) not in seen:
            seen.add(id(one))
            trace = without_own_frames(one.__traceback__, one)
            if trace is not one.__traceback__:
                one.__traceback__ = trace
            left += [one.__cause__, one.__context__]


def without_own_frames(trace: TracebackType | None, error: BaseException) -> TracebackType | None:
    """Removes selftime's frames from a traceback of an exception; returns its first entry."""
    entries = list(_entries(trace))
    if not any(_is_own(entry.tb_frame.f_code) for entry in entries):
        return trace
    of_program = _entries_of_program(entries)
    if isinstance(error, Exception) and of_program:
        of_program += entries[entries.index(of_program[-1]) + 1 :]
    below: TracebackType | None = None
    for entry in reversed(of_program):
        entry.tb_next = None  # never a circle
        entry.tb_next = below
        below = entry
    return below


def _is_own(code: CodeType) -> bool:
    return code.co_filename.startswith(_OWN_FOLDER)


def _entries(trace: TracebackType | None) -> Iterator[TracebackType]:
    while trace is not None:
        yield trace
        trace = trace.tb_next


def _entries_of_program(entries: list[TracebackType]) -> list[TracebackType]:
    """Returns the entries of a traceback whose frames would be there without selftime."""
    handlers = set(_codes(signal.getsignal(number) for number in signal.valid_signals()))
    kept: list[TracebackType] = []
    caller: FrameType | None = None
    """The innermost frame of selftime that called what follows; None outside of it."""
    has_begun = False
    for entry in entries:
        frame = entry.tb_frame
        if frame.f_code is _SCHEDULED_CALL:
            caller, has_begun = frame, True
        elif _is_own(frame.f_code):
            caller = frame
        elif caller is None or not has_begun or _calls_for_program(caller, frame, handlers):
            caller, has_begun = None, True
            kept.append(entry)
    return kept


def _calls_for_program(caller: FrameType, called: FrameType, handlers: set[CodeType]) -> bool:
    if caller.f_code is not _SCHEDULED_CALL and called.f_code in _codes_wrapped_by(caller, called):
        return True
    return called.f_code in handlers


def _codes_wrapped_by(caller: FrameType, called: FrameType) -> Iterator[CodeType]:
    """Yields the code of functions that a wrapper of selftime may call for the program.

    They are its variables, attributes of its object, or methods of such attributes.
    """
    yield from _codes(caller.f_locals.values())
    name = called.f_code.co_name
    for held in getattr(caller.f_locals.get("self"), "__dict__", {}).values():
        methods = (vars(kind)[name] for kind in type(held).__mro__ if name in vars(kind))
        yield from _codes((held, next(methods, None)))


def _codes(values: Iterable[object]) -> Iterator[CodeType]:
    """Yields the code of those of the values that are functions."""
    for value in values:
        function = value.func if isinstance(value, functools.partial) else value
        function = function.__func__ if isinstance(function, MethodType) else function
        if isinstance(function, FunctionType):
            yield function.__code__
