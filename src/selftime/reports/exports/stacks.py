"""Folded stacks of a whole trace: frames, modules, operators and kernels, by their own time.

Format: that of FlameGraph's `flamegraph.pl`, which inferno and speedscope read too. The number
behind a stack is its own time in nanoseconds: of the host, or of the device below it.
"""

from pathlib import Path
from typing import Final

import polars as pl

from selftime.reports.exports.base import Asked, Export, Told
from selftime.reports.plain import escaped
from selftime.reports.trace_file import new_file
from selftime.trace import Trace

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


def write(trace: Trace, output: Path, asked: Asked) -> Told:
    """Write the stacks that the view `flame` tells, all of them.

    Raises:
        UsageError: `output` is what is read, or nothing that can be written to.
        SelftimeError: It cannot be written.
    """
    with new_file(output, trace.source) as put:
        table = trace.view("flame", metric=asked.weight, min_share=0.0)
        stacks = as_folded(table)
        put(stacks.encode())
    asked.progress(trace.slices.height, trace.slices.height)
    told = Told({"stacks": stacks.count("\n"), "ns": int(table["self_time"].sum())}, size=put.size)
    told.lacks("slices whose end is not known", trace.slices["duration"].null_count())
    return told


FOLDED: Final = Export(
    "folded",
    "flamegraph.pl, inferno, speedscope: stacks by their own time",
    ".folded",
    write,
    frozenset({"weight"}),
)
