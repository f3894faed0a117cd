"""A traceback shows the program's own frames, wherever selftime was at work."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import selftime
from selftime.capture.program.own_frames import hide_own_frames

OURS = str(Path(selftime.__file__).parent / "capture" / "steps" / "drawn.py")

WRAPPERS = """
def wrapped(original):
    def wrapper(*args):
        begin()
        return original(*args)
    return wrapper

def begin():
    work()

def fail_in_work():
    library(interrupt)
"""
LIBRARY = """
def library(call):
    return call()
"""


def interrupt() -> None:
    raise KeyboardInterrupt


def nothing() -> None:
    pass


def drawn(work: Callable[[], None]) -> dict[str, Any]:
    """Functions of a file of selftime, whose work is `work`, and of a library's."""
    names: dict[str, Any] = {"work": work, "interrupt": interrupt}
    exec(compile(LIBRARY, "/lib/site-packages/torch/library.py", "exec"), names)  # noqa: S102 - frames of that file
    exec(compile(WRAPPERS, OURS, "exec"), names)  # noqa: S102 - likewise
    return names


def program(call: Callable[[], object]) -> None:
    call()


def functions_shown(call: Callable[[], object]) -> list[str]:
    """Functions in the traceback of what a program's call raises, the outermost first."""
    try:
        program(call)
    except BaseException as error:  # noqa: BLE001 - the test's own
        hide_own_frames(error)
        return [frame.name for frame in traceback.extract_tb(error.__traceback__)][1:]
    return []


def test_a_wrapper_is_hidden_and_what_it_calls_is_shown() -> None:
    names = drawn(nothing)
    step = names["wrapped"](lambda: names["library"](interrupt))
    assert functions_shown(step) == ["program", "<lambda>", "library", "interrupt"]


def test_work_of_selftime_is_hidden_with_what_it_calls() -> None:
    names = drawn(nothing)
    names["work"] = names["fail_in_work"]
    assert functions_shown(names["wrapped"](nothing)) == ["program"]


def test_a_fault_of_selftime_keeps_its_place() -> None:
    def fail() -> None:
        raise ValueError

    step = drawn(fail)["wrapped"](nothing)
    assert functions_shown(step) == ["program", "wrapper", "begin", "fail"]


def test_what_an_exception_follows_from_is_cleaned_too() -> None:
    names = drawn(nothing)
    names["work"] = names["fail_in_work"]
    step = names["wrapped"](nothing)

    def end() -> None:
        try:
            step()
        except KeyboardInterrupt as error:
            raise SystemExit(1) from error

    with pytest.raises(SystemExit) as caught:
        end()
    hide_own_frames(caught.value)
    cause = caught.value.__cause__
    assert cause is not None
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)] == ["end"]


def test_the_programs_own_exceptions_stay_as_they_are() -> None:
    assert functions_shown(interrupt) == ["program", "interrupt"]
