"""Exports folded stacks of frames, modules, operators and kernels, weighted by self time.

Format: that of FlameGraph's `flamegraph.pl`, which inferno and speedscope read too. The number
after a stack is its self time in nanoseconds, of the host or of the device.
"""

from pathlib import Path
from typing import Final

import polars as pl

from selftime.reports.export.export_format import Export, ExportOptions, ExportResult
from selftime.reports.plain import escape_control_characters
from selftime.reports.trace_file import open_file_writer
from selftime.trace import Trace

_SEPARATOR_REPLACEMENTS: Final = str.maketrans(" ;\t\r\n", "_____")
"""Maps characters that the format uses as separators to underscores, as torch does."""


def as_folded_stacks(flame_table: pl.DataFrame) -> str:
    """Returns the table of the view `flame` as folded stacks, without nodes of self time 0.

    The numbers add up to the time of all roots. The text is empty if no node has self time.
    """
    stacks: list[str] = []  # parents stand before what is within them
    lines: list[str] = []
    for name, parent, self_time in flame_table.select("name", "parent", "self_time").iter_rows():
        label = escape_control_characters(str(name).translate(_SEPARATOR_REPLACEMENTS)) or "_"
        stacks.append(label if parent is None else f"{stacks[parent]};{label}")
        if self_time:
            lines.append(f"{stacks[-1]} {self_time}\n")
    return "".join(lines)


def write(trace: Trace, output: Path, options: ExportOptions) -> ExportResult:
    """Writes the stacks of the view `flame` to a file as folded stacks with their self time in ns.

    Raises:
        UsageError: `output` is the trace's own file, a folder, or has an unsupported suffix.
        SelftimeError: The file cannot be written.
    """
    with open_file_writer(output, trace.source) as write_bytes:
        table = trace.view("flame", metric=options.weight, min_share=0.0)
        stacks = as_folded_stacks(table)
        write_bytes(stacks.encode())
    options.progress(trace.slices.height, trace.slices.height)
    result = ExportResult(
        {"stacks": stacks.count("\n"), "ns": int(table["self_time"].sum())}, size=write_bytes.size
    )
    result.record_left_out("slices whose end is not known", trace.slices["duration"].null_count())
    return result


FOLDED: Final = Export(
    "folded",
    "flamegraph.pl, inferno, speedscope: stacks by their own time",
    ".folded",
    write,
    frozenset({"weight"}),
)
