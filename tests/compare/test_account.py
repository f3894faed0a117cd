"""Two accounts of a step are compared row by row, whatever lines the program's edits moved."""

from collections.abc import Callable

import pytest

from selftime.compare import compare
from selftime.compare.account import compared_accounts
from selftime.reports.compare import as_text
from selftime.testing import sketch
from selftime.trace import Trace

LOADING = """
    column = 1 ms
    mark 1 | ssssssssssssttttttttttttuuuuuuuuuuuu
    mark 1 | ddd         ddd         ddd
    cpu 1  |    aaaaaabbb   aaaaaabbb   aaaaaabbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    d = enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__; line = train.py:3 main
    a = aten::mm; line = train.py:7 step
    b = aten::add; line = train.py:8 step
"""
LOADED = """
    column = 1 ms
    mark 1 | ssssssssstttttttttuuuuuuuuu
    cpu 1  | aaaaaabbbaaaaaabbbaaaaaabbb
    s = ProfilerStep#1
    t = ProfilerStep#2
    u = ProfilerStep#3
    a = aten::mm; line = train.py:9 step
    b = aten::add; line = train.py:10 step
"""


def test_a_row_that_is_gone_has_its_time_as_difference() -> None:
    table = compared_accounts(sketch(LOADING), sketch(LOADED))
    columns = ("class", "what", "before", "after", "difference", "verdict")
    data = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    assert table.select(columns).rows() == [
        ("data_wait", data, 3e6, 0.0, -3e6, "gone"),
        ("compute", "aten::mm", 6e6, 6e6, 0.0, None),
        ("compute", "aten::add", 3e6, 3e6, 0.0, None),
    ]


def test_rows_match_though_their_lines_moved() -> None:
    table = compared_accounts(sketch(LOADING), sketch(LOADED))
    lines = table.select("what", "line_before", "line_after").rows()[1:]
    assert lines == [("aten::mm", 7, 9), ("aten::add", 8, 10)]


def test_a_python_frame_matches_though_its_function_moved() -> None:
    drawing = """
        mark 1   | ssssssssss
        python 1 | ffffffffff
        cpu 1    | aaaaaa
        s = ProfilerStep#1
        f = train.py(3): main
        a = aten::mm
    """
    table = compared_accounts(sketch(drawing), sketch(drawing.replace("py(3)", "py(5)")))
    assert table.filter(table["class"] == "python")["what"].to_list() == ["main"]
    assert (table["difference"] == 0).all()


def test_recordings_without_steps_have_no_rows() -> None:
    assert compared_accounts(Trace(), Trace()).is_empty()
    assert compared_accounts(Trace(), sketch(LOADED))["verdict"].to_list() == ["new", "new"]


def test_the_text_begins_with_the_account() -> None:
    text = as_text(compare(sketch(LOADING), sketch(LOADED)), width=120)
    titles = [line for line in text.splitlines() if line[:4].isupper()]
    assert titles[0].startswith("WHAT A STEP IS SPENT ON")
    row = next(line for line in text.splitlines() if line.startswith("data_wait"))
    assert row.split()[:6] == ["data_wait", "-3.00", "ms", "3.00", "ms", "gone"]


@pytest.mark.traces
def test_the_rows_add_up_to_the_accounts(real: Callable[[str], Trace]) -> None:
    sides = [real(f"v100-2021-resnet50-workers{number}.pt.trace") for number in (0, 4)]
    table = compared_accounts(*sides)
    for name, side in zip(("before", "after"), sides, strict=True):
        whole = side.view("account", by="class")["per_step"].sum()
        assert table[name].sum() == pytest.approx(whole)
