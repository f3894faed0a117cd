"""Text from a trace stays data."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from selftime.reports.plain import cut_text_end, cut_text_middle, escape_control_characters, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("aten::add", "aten::add"),
        ("Größe 日本 🔥", "Größe 日本 🔥"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07name", "name"),
        ("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jname", "name"),
        ("a\r\nb\tc\x00", "a\\r\\nb\\tc\\x00"),
        ("a\x1b", "a\\x1b"),
        ("\u202eevil\u2066", "\\u202eevil\\u2066"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("half \ud83d", "half \\ud83d"),
    ],
)
def test_what_would_act_is_removed_or_shown(text: str, shown: str) -> None:
    assert plain(text) == shown


def test_an_escape_sequence_is_kept_where_data_is_kept() -> None:
    assert escape_control_characters("\x1b[31mred") == "\\x1b[31mred"


@given(st.text(st.characters(codec=None)))
def test_nothing_that_acts_is_left(text: str) -> None:
    for shown in (plain(text), escape_control_characters(text)):
        assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert plain(plain(text)) == plain(text)


@given(st.text(st.sampled_from("ab:日🔥é")), st.integers(0, 12))
def test_a_cut_fits(text: str, width: int) -> None:
    for cut in (cut_text_middle, cut_text_end):
        shown = cut(text, width)
        assert cell_len(shown) <= width
        assert (shown == text) == (cell_len(text) <= width)


def test_the_middle_is_cut_and_the_ends_stay() -> None:
    assert cut_text_middle("aten::convolution_backward", 13) == "aten::…ckward"
    assert cut_text_end("aten::convolution_backward", 8) == "aten::c…"
