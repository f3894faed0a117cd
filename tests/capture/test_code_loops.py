"""The loops of a function, found in its bytecode."""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import FrameType
from typing import Any

import pytest

from selftime.capture.code_loops import code_loops, loops_at


def nested(rows: list[list[int]]) -> int:
    total = 0
    for row in rows:
        for value in row:
            if value < 0:
                continue
            total += value
    return total


def waiting(limit: int) -> int:
    count = 0
    while count < limit:
        count += 1
    while True:
        count -= 1
        if count == 0:
            return count


def straight(value: int) -> int:
    return value + 1


def yielding(limit: int) -> Iterator[int]:
    for value in range(limit):
        yield value + 1


def guarded(rows: list[int]) -> int:
    """Since Python 3.12 handlers stand last in the code, and jump back to what comes after them."""
    total = 0
    with suppress(ValueError):
        total += 1
    try:
        total += rows[0]
    except IndexError:
        total = 0
    return total


def guarded_rounds(rows: list[int]) -> int:
    total = 0
    for row in rows:
        try:
            total += 1 // row
        except ZeroDivisionError:  # noqa: PERF203 - its code is what is asked for
            continue
    return total + 1


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (nested, [2, 3]),
        (waiting, [2, 4]),
        (straight, []),
        (yielding, [1]),
        (guarded, []),
        (guarded_rounds, [2]),
    ],
)
def test_loops_have_the_line_of_their_statement(
    function: Callable[..., Any], lines: list[int]
) -> None:
    loops = code_loops(function.__code__)
    assert [loop.line - function.__code__.co_firstlineno for loop in loops] == lines


def test_an_outer_loop_comes_before_the_loops_within_it() -> None:
    outer, inner = code_loops(nested.__code__)
    assert outer.contains(inner.start)
    assert outer.contains(inner.end)
    assert loops_at(nested.__code__, inner.start) == (outer, inner)
    assert loops_at(nested.__code__, 0) == ()


def test_each_way_back_to_the_start_is_a_jump_of_the_loop() -> None:
    _, inner = code_loops(nested.__code__)
    assert len(inner.jumps) == 2  # `continue`, and the end of the body
    assert max(inner.jumps) == inner.end


def test_what_comes_after_a_loop_is_not_in_it() -> None:
    code = guarded_rounds.__code__
    [loop] = code_loops(code)
    last_line = max(line for _, _, line in code.co_lines() if line is not None)
    for start, _, line in code.co_lines():
        if line == last_line:
            assert not loop.contains(start)


def test_the_same_code_has_the_same_loops() -> None:
    assert code_loops(nested.__code__) is code_loops(nested.__code__)


def test_a_long_loop_has_the_offset_that_is_traced_for_each_jump() -> None:
    """An argument of more than a byte has a prefix, and only the prefix is traced."""
    body = "\n".join(f"    seen.append(number + {n})" for n in range(200))
    before = "number = 0\n" * 300  # the argument of Python 3.10 counts from the first instruction
    code = compile(f"{before}for number in range(3):\n{body}", "program.py", "exec")
    [loop] = code_loops(code)
    assert loop.takes_next_at_start
    traced: list[int] = []

    def trace(frame: FrameType, event: str, _argument: object) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode" and frame.f_lasti in loop.jumps:
            traced.append(frame.f_lasti)
        return trace

    earlier = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 wants to know before
    sys.settrace(trace)
    try:
        exec(code, {"seen": []})  # noqa: S102 - a program of the test
    finally:
        sys.settrace(earlier)
    assert len(traced) >= 3
    assert len(loop.jumps) == 2
