"""Documentation as a terminal shows it: paragraphs folded to its width, drawings left alone."""

from collections.abc import Iterable
from io import StringIO
from textwrap import fill

from rich.console import Console, RenderableType


def sheet(*parts: RenderableType, width: int, colour: bool = False) -> str:
    """The parts below one another; without colour there is no escape sequence in it."""
    page = StringIO()
    console = Console(
        file=page,
        width=width,
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},  # the caller decides; the environment must not
    )
    for part in parts:
        console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in page.getvalue().splitlines())


def folded(text: str, *, width: int) -> str:
    """The text with its paragraphs folded anew; headings and indented blocks stay as they are."""
    blocks = (block.strip("\n") for block in text.split("\n\n"))
    return "\n\n".join(_block(block, width) for block in blocks if block)


def _block(block: str, width: int) -> str:
    if block.startswith("    "):
        return block
    if block.startswith("#"):
        heading, _, rest = block.partition("\n")
        return f"{heading}\n{_block(rest, width)}" if rest else heading
    return fill(block, width, break_long_words=False, break_on_hyphens=False)


def listed(entries: Iterable[tuple[str, str]], *, width: int) -> str:
    """Names with a sentence each, the sentences in one column."""
    pairs = list(entries)
    indent = max((len(name) for name, _ in pairs), default=0) + 2
    lines = [
        fill(text, width, initial_indent=name.ljust(indent), subsequent_indent=" " * indent)
        for name, text in pairs
    ]
    return "\n".join(lines)
