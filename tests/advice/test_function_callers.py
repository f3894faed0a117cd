"""The lines that call a function through which the calls of many lines pass."""

from dataclasses import replace
from pathlib import Path

import pytest

from selftime.advice import Evidence, Finding, Fix, Saving, Where
from selftime.advice.account.account_building import account_of_step
from selftime.advice.lines.function_callers import callers_of_place, with_callers
from selftime.reports.advice.account_places import row_texts
from selftime.testing import sketch
from selftime.trace import Trace

SOURCE = """\
def encode(x):
    x = matmul(x, 1)
    return x


def decode(x):
    x = matmul(x, 2)
    return wrapper(x)


def loss(x):
    return wrapper(x)
"""
DRAWING = """
    column = 10 us
    mark 1   | sssssssssssssssssssssssssssssstttttttttttttttttttttttttttttt
    python 1 | mmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmmm
    python 1 | {callers}
    python 1 | {around}
    python 1 | {wrappers}
    cpu 1    | {operators}
    s = ProfilerStep#1
    t = ProfilerStep#2
    m = train.py(1): main
    e = net.py(1): encode
    d = net.py(6): decode
    l = net.py(11): loss
    c = ops.py(9): wrapper
    w = ops.py(4): matmul
    o = aten::mm; line = ops.py:5 matmul
    p = aten::add; line = net.py:9 other
"""
CALLERS = "eeeeeeeeeeeeee dddddddd llllll"
WRAPPERS = " wwwwwwwwwwww  www www  wwww  "
OPERATORS = " oooooooooo    oo  oo   ooo   "


def recorded(
    folder: Path,
    callers: str = CALLERS,
    operators: str = OPERATORS,
    wrappers: str = WRAPPERS,
    other: str = "",
) -> Trace:
    (folder / "net.py").write_text(SOURCE)
    around = " " * 19 + "ccc  cccc  "
    parts = {"callers": callers, "around": around, "wrappers": wrappers, "operators": operators}
    drawn = f"{DRAWING}    {other}".format(**{key: 2 * text for key, text in parts.items()})
    return replace(sketch(drawn), source=str(folder / "trace.json"))


PLACE = Where("ops.py", 5, "matmul", "stack")


def test_the_line_that_calls_it_most_is_told(tmp_path: Path) -> None:
    told = callers_of_place(recorded(tmp_path), PLACE)
    assert told is not None
    assert told.most == Where("net.py", 2, "encode", "static")
    assert told.count == 4
    assert told.share == pytest.approx(12 / 22)


def test_without_the_source_it_is_the_function(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    (tmp_path / "net.py").unlink()
    told = callers_of_place(trace, PLACE)
    assert told is not None
    assert told.most == Where("net.py", 1, "encode", "definition")
    assert told.count == 3


def test_a_function_that_runs_many_operators_is_no_wrapper(tmp_path: Path) -> None:
    many = " o o o o o o   ooo ooo  oooo  "
    busy = recorded(tmp_path, operators=many, wrappers=" wwwwwwwwwwww                 ")
    assert callers_of_place(busy, PLACE) is None


def test_one_line_that_calls_is_not_told(tmp_path: Path) -> None:
    one = recorded(tmp_path, callers="e" * 30, wrappers=" wwwwwwwwwwww  www www  wwww  ")
    assert callers_of_place(one, PLACE) is None


def test_a_finding_and_a_row_name_the_caller(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    found = Finding(
        title="It is slow",
        where=PLACE,
        saving=Saving(),
        confidence="low",
        fix=Fix("Make it fast."),
    )
    assert with_callers(trace, found).evidence == (
        Evidence("share of its time in calls at `net.py:2 in encode`", 12 / 22, "ratio"),
        Evidence("lines that call the function", 4.0, "count"),
    )
    account = account_of_step(trace, ())
    assert account is not None
    row = next(row for row in account.rows if row.where.line == 5)
    assert row.called_at == Where("net.py", 2, "encode", "static")
    assert row_texts((row,)) == ["computing at `ops.py:5`, called most at `net.py:2`"]


def test_functions_of_one_name_in_a_file_are_told_apart(tmp_path: Path) -> None:
    trace = recorded(tmp_path)
    assert callers_of_place(trace, Where("ops.py", 3, "matmul", "stack")) is None
    other = recorded(tmp_path, callers=CALLERS.replace("d", "v"), other="v = ops.py(7): matmul")
    told = callers_of_place(other, PLACE)
    assert told is not None
    assert callers_of_place(other, Where("ops.py", 8, "matmul", "stack")) is None
