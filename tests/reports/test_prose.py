from selftime.reports.terminal import two_column_text, wrap_paragraphs

PAGE = """A title.

## What it means
A paragraph that is too long for the width
of a narrow terminal.

    a drawing   that must not be folded at all, however long it may be

Another one.
"""


def test_paragraphs_are_folded_and_drawings_are_not() -> None:
    page = wrap_paragraphs(PAGE, width=30)
    assert "    a drawing   that must not be folded at all, however long it may be" in page
    assert "## What it means\nA paragraph that is too long\nfor the width of a narrow\n" in page
    assert page.startswith("A title.\n\n## ")


def test_folding_twice_changes_nothing() -> None:
    once = wrap_paragraphs(PAGE, width=30)
    assert wrap_paragraphs(once, width=30) == once


def test_a_list_hangs_its_sentences_in_one_column() -> None:
    assert two_column_text([("a", "one two three"), ("long", "four")], width=14) == (
        "a     one two\n      three\nlong  four"
    )
    assert two_column_text([], width=14) == ""
