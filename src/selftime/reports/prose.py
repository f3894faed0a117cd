"""Documentation as a terminal shows it: paragraphs folded to its width, drawings left alone."""

from collections.abc import Iterable
from textwrap import fill


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
