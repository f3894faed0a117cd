"""Lays out text for a terminal: rich tables, wrapped paragraphs, and two-column lists."""

from collections.abc import Iterable
from io import StringIO
from textwrap import fill

from rich.console import Console, RenderableType
from rich.text import Text


def render_as_text(*parts: RenderableType, width: int, colour: bool = False) -> str:
    """Returns rich renderables as text, one below the other; in colour if `colour` is true.

    A `Text` with `no_wrap` keeps its lines, however long they are.
    """
    page = StringIO()
    console = Console(
        file=page,
        width=width,
        force_terminal=colour,
        force_jupyter=False,  # in a notebook, Rich would display the text and write nothing
        no_color=not colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},  # the caller decides about colour and width, not environment variables
    )
    for part in parts:
        console.print(part, soft_wrap=isinstance(part, Text) and bool(part.no_wrap))
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


def wrap_paragraphs(text: str, *, width: int) -> str:
    """Wraps paragraphs to `width` characters; headings and indented code are not wrapped."""
    blocks = (block.strip("\n") for block in text.split("\n\n"))
    return "\n\n".join(_wrap_paragraph(block, width) for block in blocks if block)


def _wrap_paragraph(block: str, width: int) -> str:
    """Wraps a paragraph to `width` characters; headings and indented blocks are not wrapped."""
    if block.startswith("    "):
        return block
    if block.startswith("#"):
        heading, _, rest = block.partition("\n")
        return f"{heading}\n{_wrap_paragraph(rest, width)}" if rest else heading
    return fill(block, width, break_long_words=False, break_on_hyphens=False)


def two_column_text(names_and_texts: Iterable[tuple[str, str]], *, width: int) -> str:
    """Returns a list in two columns as text: names on the left, wrapped sentences on the right."""
    rows = list(names_and_texts)
    indent = max((len(name) for name, _ in rows), default=0) + 2
    lines = [
        fill(text, width, initial_indent=name.ljust(indent), subsequent_indent=" " * indent)
        for name, text in rows
    ]
    return "\n".join(lines)
