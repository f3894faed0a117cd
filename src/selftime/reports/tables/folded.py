"""Folded stacks: one line a stack, for flame graph programs.

The format is that of Brendan Gregg's FlameGraph, which torch's `export_stacks` writes too: the
names from the root on, separated by `;`, then a blank and the stack's own time in nanoseconds.
"""

from typing import Final

import polars as pl

from selftime.reports.plain import escaped

_SPOILERS: Final = str.maketrans(" ;\t\r\n", "_____")
"""What separates names, stacks and numbers becomes an underscore, as in torch's files."""


def as_folded(table: pl.DataFrame) -> str:
    """The table of the view `flame` as folded stacks, in its order; nodes of no own time have none.

    The sum of the numbers is the time of all roots. The text is empty if there is no time at all.
    """
    stacks: list[str] = []  # parents stand before what is within them
    lines: list[str] = []
    for name, parent, own in table.select("name", "parent", "self_time").iter_rows():
        label = escaped(str(name).translate(_SPOILERS)) or "_"
        stacks.append(label if parent is None else f"{stacks[parent]};{label}")
        if own:
            lines.append(f"{stacks[-1]} {own}\n")
    return "".join(lines)
