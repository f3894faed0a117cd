"""The wall time of the whole run, and what it was spent on."""

import polars as pl

from selftime.analysis.run.parts import run_parts
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.view_declaration import view


@view(
    Column(
        "part",
        pl.String,
        "name",
        "The part: start, imports, data, first_batch, compile, steps, data_wait, evaluation, "
        "checkpoint, epoch_boundary, garbage_collection, logging, processes, recording, end or "
        "other.",
    ),
    Column(
        "what",
        pl.String,
        "text",
        "For steps, their kind; for imports, the package; for checkpoints, the function.",
        True,
    ),
    Column(
        "time",
        pl.Int64,
        "ns",
        "Wall time that the part took; the rows add up to the whole wall time.",
    ),
    Column("share", pl.Float64, "ratio", "The part's time as a share of the whole wall time."),
    Column(
        "count",
        pl.Int64,
        "count",
        "The number of steps, of compilations, or of stretches of time of this part.",
    ),
    Column(
        "file",
        pl.String,
        "text",
        "The user's source file that spent the time; null if no stack was read.",
        True,
    ),
    Column(
        "line",
        pl.Int32,
        "id",
        "The user's source line that spent the time; null if no stack was read.",
        True,
    ),
    Column("function", pl.String, "name", "The function that contains the source line.", True),
    needs=("ledger",),
    sums=("time", "share"),
)
def run(trace: Trace) -> pl.DataFrame:
    """The wall time of the whole run by what it was spent on, such as imports, steps, data waits.

    `selftime run` measures the parts, and keeps them beside the recording.

    Each moment from the start of the process to its end belongs to one part. Waits for data,
    compilations, garbage collections and evaluations are counted exactly. Imports, checkpoints and
    logging are told by readings of the Python stack, some 10 ms apart, outside of usual steps.
    """
    wall = trace.run.wall_ns
    parts = run_parts(trace.run).rename({"duration": "time"})
    share = pl.col("time") / wall if wall else pl.lit(None, pl.Float64)
    parts = parts.with_columns(share.alias("share"))
    return parts.select(pl.col(column.name).cast(column.dtype) for column in run.columns)
