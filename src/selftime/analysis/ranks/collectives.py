"""The collectives that one rank took part in: what each moved, when, and in which step."""

import json
import math
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.cached import cached_per_trace
from selftime.analysis.device.work import device_work
from selftime.analysis.ranks.membership import groups
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import assessed_steps
from selftime.intervals import before, subtract
from selftime.names.collectives import bandwidth_bytes, collective_of
from selftime.trace import Trace

_ARGS: Final = (
    "collective",
    "dtype",
    "in_elements",
    "out_elements",
    "group",
    "group_description",
    "group_ranks",
    "group_size",
    "sequence",
    "record",
)
COLUMNS: Final = {
    "id": pl.UInt32,
    "collective": pl.String,
    "group": pl.String,
    "group_description": pl.String,
    "group_ranks": pl.String,
    "group_size": pl.Int64,
    "sequence": pl.Int64,
    "step": pl.Int64,
    "place": pl.Int64,
    "counted": pl.Boolean,
    "dtype": pl.String,
    "bytes": pl.Int64,
    "issued": pl.Int64,
    "start": pl.Int64,
    "end": pl.Int64,
    "exposed": pl.Int64,
    "is_host": pl.Boolean,
}


@cached_per_trace
def collectives(trace: Trace) -> pl.DataFrame:
    """Every collective whose begin and end are known, in order of start; columns as in `COLUMNS`.

    On a device it is a kernel, on a host the annotation around the exchange. `id` is its slice;
    collective its kind, such as allreduce; group and the next what the trace tells of its process
    group; dtype that of its elements; step the number of the profiler's step that issued it, place
    the row of any step that did among the judged ones, counted whether that one is typical; bytes
    those that NCCL's tests would count; issued, start and end in ns; exposed the time in it in
    which the device worked on nothing else, null on a host.
    """
    found = _in_groups(trace, pl.concat([_on_device(trace), _on_host(trace)]))
    found = found.filter(pl.col("start").is_not_null()).sort("start", "id")
    return _in_steps(trace, found).select(*COLUMNS)


def _in_groups(trace: Trace, found: pl.DataFrame) -> pl.DataFrame:
    """With the process group of those that tell none, where the process is in one only."""
    listed = groups(trace)
    if listed.height != 1:
        return found
    untold = pl.all_horizontal(pl.col("group", "group_ranks", "group_size").is_null())
    only = listed.row(0, named=True)
    told = {
        "group": only["group"],
        "group_description": only["description"],
        "group_ranks": only["ranks"],
        "group_size": only["size"],
    }
    return found.with_columns(
        pl.when(untold).then(pl.lit(value, found.schema[name])).otherwise(name).alias(name)
        for name, value in told.items()
    )


def _on_device(trace: Trace) -> pl.DataFrame:
    work = device_work(trace)
    is_one = pl.col("kind") == "communication"
    found = work.filter(is_one).select(
        "id", "name", "start", "end", issued=pl.col("launched").fill_null(pl.col("start"))
    )
    alone = subtract(
        covered_time(found.select("start", duration=pl.col("end") - pl.col("start"))),
        covered_time(work.filter(~is_one)),
    )
    start, end = found["start"].to_numpy(), found["end"].to_numpy()
    exposed = before(alone, end) - before(alone, start)
    told = _told(trace, found.with_columns(exposed=pl.Series(exposed, dtype=pl.Int64)))
    return told.with_columns(is_host=pl.lit(value=False))


def _on_host(trace: Trace) -> pl.DataFrame:
    """Annotations of exchanges that the host makes; each with what the record around it tells."""
    host = slices_on(trace, "host", ended=True)
    found = filter_by_name(host, names.is_host_collective).select(
        "id", "name", "start", end=pl.col("start") + pl.col("duration"), issued=pl.col("start")
    )
    told = _told(trace, found.with_columns(exposed=pl.lit(None, pl.Int64)))
    return _by_inputs(trace, told).with_columns(is_host=pl.lit(value=True))


def _by_inputs(trace: Trace, found: pl.DataFrame) -> pl.DataFrame:
    """With bytes and dtype of the annotation's own inputs, where no record tells them."""
    found = with_arguments(trace, "op_args", found, "input_shapes", "input_types")
    texts = found.select("input_shapes", "input_types").cast(pl.String).iter_rows()
    told = [_inputs(shapes, types) for shapes, types in texts]
    sizes, dtypes = ([one[at] for one in told] for at in (0, 1))
    return found.drop("input_shapes", "input_types").with_columns(
        bytes=pl.col("bytes").fill_null(pl.Series(sizes, dtype=pl.Int64)),
        dtype=pl.col("dtype").fill_null(pl.Series(dtypes, dtype=pl.String)),
    )


def _inputs(shapes: str | None, types: str | None) -> tuple[int | None, str | None]:
    """Bytes of all tensors among the inputs, and their dtype if it is one; None if unknown."""
    if shapes is None or types is None:
        return None, None
    try:
        sizes = json.loads(shapes)
        kinds = {str(kind) for kind in json.loads(types) if kind}
    except (ValueError, RecursionError):
        return None, None
    each = names.element_bytes(next(iter(kinds))) if len(kinds) == 1 else None
    count = _elements(sizes) if isinstance(sizes, list) and sizes else None
    return (None, None) if each is None or count is None else (each * count, kinds.pop())


_MOST: Final = 1 << 50
"""Elements; what is told to be more cannot be."""
_MOST_DIMENSIONS: Final = 64


def _elements(sizes: list[Any]) -> int | None:
    """Elements of tensors, one or lists of them; None of what is no tensor's size."""
    if all(isinstance(size, int) for size in sizes):
        count = math.prod(sizes) if len(sizes) <= _MOST_DIMENSIONS else _MOST
        return count if 0 <= count < _MOST else None
    told = [_elements(size) for size in sizes if isinstance(size, list) and size]
    return None if None in told or not told else sum(one for one in told if one is not None)


def _told(trace: Trace, found: pl.DataFrame) -> pl.DataFrame:
    """What the trace's own record of each says; the kind by its name where none does."""
    told = with_arguments(trace, "collective_args", found, *_ARGS)
    texts = [column for column in _ARGS if told[column].dtype == pl.Categorical]
    told = told.with_columns(pl.col(texts).cast(pl.String))
    kinds = {
        name: collective_of(name)
        for column in ("name", "collective")
        for name in told[column].cast(pl.String).unique().drop_nulls().to_list()
    }
    by_name = pl.col("name").cast(pl.String).replace_strict(kinds, return_dtype=pl.String)
    by_record = pl.col("collective").replace_strict(kinds, return_dtype=pl.String)
    told = told.with_columns(collective=by_record.fill_null(by_name).fill_null("other"))
    return told.with_columns(bytes=_sizes(told)).drop("name")


def _sizes(told: pl.DataFrame) -> pl.Series:
    rows = told.select("collective", "dtype", "in_elements", "out_elements").iter_rows()
    sizes = []
    for kind, dtype, put_in, got_out in rows:
        each = names.element_bytes(dtype) if dtype is not None else None
        count = bandwidth_bytes(kind, put_in, got_out)
        sizes.append(None if each is None or count is None else each * count)
    return pl.Series("bytes", sizes, dtype=pl.Int64)


def _in_steps(trace: Trace, found: pl.DataFrame) -> pl.DataFrame:
    """With the step that issued each: only the profiler's numbers mean the same on every rank."""
    steps = assessed_steps(trace)
    issued = found["issued"].to_numpy()
    at = np.searchsorted(steps["start"].to_numpy(), issued, side="right") - 1
    place = np.maximum(at, 0)
    inside = at >= 0
    if steps.height:
        inside &= issued < steps["end"].to_numpy()[place]
    known = pl.Series(inside, dtype=pl.Boolean)
    rows = pl.select(pl.when(known).then(pl.Series(place, dtype=pl.Int64))).to_series()
    if not steps.height:
        untold = {"step": pl.Int64, "place": pl.Int64, "counted": pl.Boolean}
        return found.with_columns(pl.lit(None, dtype).alias(name) for name, dtype in untold.items())
    number = steps.select(pl.when(pl.col("source") == "profiler").then("number")).to_series()
    return found.with_columns(
        step=number.gather(rows.cast(pl.UInt32)),
        place=rows,
        counted=steps["counted"].gather(rows.cast(pl.UInt32)),
    )
