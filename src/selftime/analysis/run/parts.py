"""Divides the wall time of a run, to the nanosecond, by what it was spent on, such as imports.

What was counted within a segment (waits for data, compilations, garbage collections, evaluation,
our own work) is taken as it is. The rest of a segment belongs to the segment's own part: building
of data and model before the first step, the step, the end after the last one. Where the Python
stack was read, imports, checkpoints, logging and compilations get their share of that rest: the
time between readings that saw them, over the time between all readings of the segment.
"""

from typing import Final

import polars as pl

from selftime.analysis.run.evaluations import evaluation_number
from selftime.ledger_format import UNCOUNTED_STEPS_NAME
from selftime.run import COUNTED, Run

_PART_SCHEMA: Final = {
    "part": pl.String,
    "what": pl.String,
    "file": pl.String,
    "line": pl.Int32,
    "function": pl.String,
    "count": pl.Int64,
    "duration": pl.Int64,
}
_PART_KEY_COLUMNS: Final = ["part", "what", "file", "line", "function"]


def run_parts(run: Run) -> pl.DataFrame:
    """Returns what a run's wall time was spent on: part, what, file, line, function, count, ns.

    The durations add up to `run.wall_ns`.

    `what` is the kind of step, the package that was imported, the function that was compiled. The
    count is of steps, compilations and evaluations, else of segments with that part.
    """
    segments = _segments_with_uncounted_time(run)
    read = _stack_reading_parts(run, segments)
    tables = [
        _startup_parts(run),
        _counted_parts(run, segments),
        read,
        _remaining_parts(segments, read),
    ]
    parts = pl.concat([table.select(*_PART_KEY_COLUMNS, "count", "duration") for table in tables])
    # All of a step may be known from stacks: then it has no time here, and is counted here alone.
    is_counted = (pl.col("part") == "steps") & (pl.col("count") > 0)
    parts = parts.filter((pl.col("duration") != 0) | is_counted)
    parts = parts.group_by(_PART_KEY_COLUMNS).sum()
    return parts.select(list(_PART_SCHEMA)).sort(
        "duration", "part", "what", descending=[True, False, False]
    )


def _segments_with_uncounted_time(run: Run) -> pl.DataFrame:
    """Adds to each segment of the run its category, step number, and time (ns) not measured."""
    last = pl.col("id") == pl.col("id").max()
    is_step = pl.col("kind").is_not_null()
    return run.segments.with_columns(
        pl.when(is_step)
        .then(pl.lit("steps"))
        .when(last & is_step.any())
        .then(pl.lit("end"))
        .when((last & (pl.col("id") > 0)) | (is_step.cum_sum() > 0))  # between two loops of steps
        .then(pl.lit("other"))
        .otherwise(pl.lit("data"))
        .alias("part"),
        (is_step.cum_sum() - 1).alias("step"),
        (pl.col("duration") - pl.sum_horizontal(COUNTED)).alias("rest"),
    )


def _startup_parts(run: Run) -> pl.DataFrame:
    """Returns the time (ns) that the interpreter and selftime took before the first segment."""
    rows = [
        ("start", "interpreter", None, None, None, 1, run.startup_ns - run.own_startup_ns),
        ("recording", "selftime", None, None, None, 1, run.own_startup_ns),
    ]
    return pl.DataFrame(rows, schema=_PART_SCHEMA, orient="row")


def _counted_parts(run: Run, segments: pl.DataFrame) -> pl.DataFrame:
    """Returns time (ns) and count of all measured activities, such as waits for data."""
    first = (pl.col("step") <= 0) & pl.col("part").is_in(["steps", "data"])
    long = (
        segments.select("step", "part", evaluation_number().alias("number"), *COUNTED)
        .unpivot(
            COUNTED,
            index=["step", "part", "number"],
            variable_name="counted",
            value_name="duration",
        )
        .filter(pl.col("duration") != 0)
    )
    is_loading = pl.col("counted").is_in(["data_wait", "epoch_boundary"])
    named = long.with_columns(
        pl.when(is_loading & first)
        .then(pl.lit("first_batch"))
        .otherwise(pl.col("counted"))
        .alias("part")
    )
    is_evaluation = pl.col("part") == "evaluation"
    summed = named.group_by("part").agg(
        pl.when(is_evaluation.first())
        .then(pl.col("number").n_unique())
        .otherwise(pl.len())
        .cast(pl.Int64)
        .alias("count"),
        pl.col("duration").sum(),
    )
    compiled = run.compilations.height
    return summed.with_columns(
        pl.when((pl.col("part") == "compile") & (compiled > 0))
        .then(compiled)
        .otherwise(pl.col("count"))
        .alias("count"),
        *_null_columns("what", "file", "line", "function"),
    )


def _stack_reading_parts(run: Run, segments: pl.DataFrame) -> pl.DataFrame:
    """Divides the remaining time of segments by what samples of the Python stack saw running."""
    own = segments.select(
        pl.col("id").alias("segment"), pl.col("part").alias("own"), "rest", "kind", "evaluation"
    )
    read = run.readings.with_columns(pl.col("part").cast(pl.String)).join(own, on="segment")
    shares = read.with_columns(_share_of_rest().alias("share")).with_columns(
        (pl.col("rest") * pl.col("share")).floor().cast(pl.Int64).alias("duration")
    )
    return shares.select(
        "segment",
        pl.when(pl.col("part") == "program").then("own").otherwise("part").alias("part"),
        pl.when((pl.col("part") == "program") & pl.col("kind").is_not_null())
        .then(pl.col("kind").cast(pl.String))
        .otherwise("what")
        .alias("what"),
        "file",
        "line",
        "function",
        pl.when(
            (pl.col("part") == "compile")  # these are counted with the others
            | ((pl.col("part") == "program") & pl.col("kind").is_not_null())
        )
        .then(0)
        .otherwise(1)
        .cast(pl.Int64)
        .alias("count"),
        "duration",
    )


def _share_of_rest() -> pl.Expr:
    """Returns the share of a segment's uncounted time that a reading's activity takes.

    Stacks are read during an evaluation, too, whose time is counted: there the program's own code
    runs, so readings of it stand for the evaluation first. What else was seen, such as a checkpoint
    that is written before the next step, is not part of the evaluation's time.
    """
    is_program = pl.col("part") == "program"
    seen = pl.col("duration").sum().over("segment")
    program = (pl.col("duration") * is_program).sum().over("segment")
    left = (program - pl.col("evaluation")).clip(lower_bound=0)
    scale = pl.when(program > 0).then(left / program).otherwise(0.0)
    taken = pl.when(is_program & (seen > program)).then(pl.col("duration") * scale)
    total = pl.when(seen > program).then(seen - program + left).otherwise(seen)
    return (taken.otherwise(pl.col("duration")) / total).fill_nan(0)


def _remaining_parts(segments: pl.DataFrame, read: pl.DataFrame) -> pl.DataFrame:
    """Returns the time (ns) of each segment that neither measurements nor stack samples explain."""
    taken = read.group_by(pl.col("segment").alias("id")).agg(pl.col("duration").sum().alias("read"))
    left = segments.join(taken, on="id", how="left").with_columns(
        (pl.col("rest") - pl.col("read").fill_null(0)).alias("duration")
    )
    return (
        left.group_by("part", pl.col("kind").cast(pl.String).alias("what"))
        .agg(
            _is_counted_step().sum().cast(pl.Int64).alias("count"),
            pl.col("duration").sum(),
        )
        .with_columns(*_null_columns("file", "line", "function"))
    )


def _null_columns(*names: str) -> list[pl.Expr]:
    return [pl.lit(None, _PART_SCHEMA[name]).alias(name) for name in names]


def _is_counted_step() -> pl.Expr:
    is_uncounted = pl.col("kind").cast(pl.String) == UNCOUNTED_STEPS_NAME
    return (pl.col("part") == "steps") & ~is_uncounted.fill_null(False)
