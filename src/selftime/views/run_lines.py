"""The lines at which a program is in a usual step, from samples of its stack."""

import polars as pl

from selftime.analysis.run.sampled_lines import sampled_lines
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


@view(
    Column("kind", pl.String, "name", "The kind of step, such as training."),
    Column(
        "part",
        pl.String,
        "name",
        "What the line does, such as data_wait or logging; program for all that has no other name.",
    ),
    Column("file", pl.String, "text", "The user's source file; null if none was running.", True),
    Column("line", pl.Int32, "id", "The innermost source line of the user that ran.", True),
    Column("function", pl.String, "name", "The function that contains the line.", True),
    Column("samples", pl.Int64, "count", "The number of samples in which the line ran."),
    Column("per_step", pl.Float64, "ns", "The line's share of the mean usual step, as time."),
    Column("share", pl.Float64, "ratio", "The samples of the line by all samples of the kind."),
    Column("low", pl.Float64, "ratio", "Lower end of the share's 95 % interval (Wilson)."),
    Column("high", pl.Float64, "ratio", "Upper end of the share's 95 % interval (Wilson)."),
    needs=("ledger",),
    sums=("samples",),
)
def run_lines(trace: Trace) -> pl.DataFrame:
    """At which lines of the program usual steps spend their time, sampled without recording.

    `selftime run` reads the stack of the thread that makes the steps at random instants, 20 a
    second at first, later 4 and 1, while nothing is recorded. The time of a line holds that of what
    it calls in libraries, operators and waits. Steps that were slow or recorded are left out.
    """
    lines = sampled_lines(trace.run)
    return lines.select(pl.col(column.name).cast(column.dtype) for column in run_lines.columns)
