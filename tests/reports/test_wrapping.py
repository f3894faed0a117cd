"""Long names break between their parts, and every line fits."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.padding import Padding

from selftime.reports.terminal import render_as_text
from selftime.reports.wrapping import NamesText, line_break_offsets


def lines_of(text: str, width: int) -> list[str]:
    offsets = [0, *line_break_offsets(text, width), len(text)]
    return [text[a:b].rstrip(" ") for a, b in pairwise(offsets)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("at `/job/a/folder/train.py`", ["at", "`/job/a/folder/", "train.py`"]),
        ("with `f(record_gc_info=True)`", ["with", "`f(record_gc_", "info=True)`"]),
        ("`config(record_gc=True)`", ["`config(", "record_gc=True)`"]),
        ("a" * 16 + "`", ["a" * 13, "aaa`"]),
        ("one two three four", ["one two three", "four"]),
        ("it takes some 30 % of it", ["it takes some", "30 % of it"]),
        ("", [""]),
    ],
)
def test_a_name_breaks_between_its_parts(text: str, lines: list[str]) -> None:
    assert lines_of(text, 16) == lines
    written = render_as_text(Padding(NamesText(text), 0), width=16)
    assert written.splitlines() == (lines if text else [""])


@given(st.text("ab/.(`語 %", max_size=60), st.integers(6, 30))
def test_no_line_is_too_wide_and_nothing_is_lost(text: str, width: int) -> None:
    lines = lines_of(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
