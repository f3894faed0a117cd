"""Lists the collectives that one rank took part in, with their sizes, times and steps."""

import json
import math
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.analysis.device.device_work import device_work
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.ranks.message_peers import with_peers_of_messages
from selftime.analysis.ranks.rank_and_process_groups import process_groups
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.analysis.steps.steady_steps import steps_with_counted_flags
from selftime.intervals import covered_time_before, subtract
from selftime.names.collective_kernels import collective_of_kernel
from selftime.names.collectives import bandwidth_bytes, collective_of
from selftime.trace import Trace

_COLLECTIVE_ARGUMENT_COLUMNS: Final = (
    "collective",
    "dtype",
    "in_elements",
    "out_elements",
    "group",
    "group_description",
    "group_ranks",
    "group_size",
    "sequence",
    "source",
    "destination",
    "record",
)
COLLECTIVE_COLUMNS: Final = {
    "id": pl.UInt32,
    "collective": pl.String,
    "group": pl.String,
    "group_description": pl.String,
    "group_ranks": pl.String,
    "group_size": pl.Int64,
    "sequence": pl.Int64,
    "source": pl.Int64,
    "destination": pl.Int64,
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
"""Columns of `collectives_of_trace`; times in ns."""


@cached_per_trace
def collectives_of_trace(trace: Trace) -> pl.DataFrame:
    """Returns one row per collective of known begin and end, in order of start; times in ns.

    The columns are `COLLECTIVE_COLUMNS`. On a device a collective is a kernel, on a host the
    annotation around the communication. `id` is its slice; collective its kind, such as allreduce;
    group and the following columns describe its process group; source the rank that a message comes
    from, destination the one that it goes to; dtype that of its elements; step the number of the
    profiler's step that issued it, place the row of any step that did among the
    assessed ones, counted whether that one is typical; bytes as NCCL's tests count them; issued,
    start and end in ns; exposed the time in it in which the device worked on nothing else, null on
    a host.
    """
    found = _collectives_with_only_process_group(
        trace, pl.concat([_device_collectives(trace), _host_collectives(trace)])
    )
    found = found.filter(pl.col("start").is_not_null()).sort("start", "id")
    return _collectives_with_issuing_steps(trace, found).select(*COLLECTIVE_COLUMNS)


def _collectives_with_only_process_group(
    trace: Trace, collective_rows: pl.DataFrame
) -> pl.DataFrame:
    """Fills unknown process groups of collectives if only one can be theirs.

    Ranks do not communicate in a group of one; groups of the same ranks count as one.
    """
    every = process_groups(trace)
    listed = every.filter((pl.col("size") != 1).fill_null(value=True))
    if not listed.height or (listed.height > 1 and listed["ranks"].null_count()):
        return collective_rows
    if listed["ranks"].n_unique() > 1:
        return collective_rows
    untold = pl.all_horizontal(pl.col("group", "group_ranks", "group_size").is_null())
    only = listed.row(0, named=True)
    told = {
        "group": only["group"],
        "group_description": only["description"],
        "group_ranks": only["ranks"],
        "group_size": only["size"],
    }
    return collective_rows.with_columns(
        pl.when(untold)
        .then(pl.lit(value, collective_rows.schema[name]))
        .otherwise(name)
        .alias(name)
        for name, value in told.items()
    )


def _device_collectives(trace: Trace) -> pl.DataFrame:
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
    exposed = covered_time_before(alone, end) - covered_time_before(alone, start)
    told = _collectives_with_recorded_arguments(
        trace, found.with_columns(exposed=pl.Series(exposed, dtype=pl.Int64))
    )
    return told.with_columns(is_host=pl.lit(value=False))


def _host_collectives(trace: Trace) -> pl.DataFrame:
    """Returns annotations of collectives that run on the host, with their recorded arguments."""
    host = slices_on(trace, "host", ended=True)
    found = filter_by_name(host, names.is_host_collective).select(
        "id", "name", "start", end=pl.col("start") + pl.col("duration"), issued=pl.col("start")
    )
    told = _collectives_with_recorded_arguments(
        trace, found.with_columns(exposed=pl.lit(None, pl.Int64))
    )
    told = with_peers_of_messages(trace, _collectives_with_input_sizes(trace, told))
    return told.with_columns(is_host=pl.lit(value=True))


def _collectives_with_input_sizes(trace: Trace, collective_rows: pl.DataFrame) -> pl.DataFrame:
    """Fills unknown bytes and dtypes of collectives from their annotations' recorded inputs."""
    collective_rows = slices_with_arguments(
        trace, "op_args", collective_rows, "input_shapes", "input_types"
    )
    texts = collective_rows.select("input_shapes", "input_types").cast(pl.String).iter_rows()
    told = [_parse_collective_inputs(shapes, types) for shapes, types in texts]
    sizes, dtypes = ([one[at] for one in told] for at in (0, 1))
    return collective_rows.drop("input_shapes", "input_types").with_columns(
        bytes=pl.col("bytes").fill_null(pl.Series(sizes, dtype=pl.Int64)),
        dtype=pl.col("dtype").fill_null(pl.Series(dtypes, dtype=pl.String)),
    )


def _parse_collective_inputs(
    shapes: str | None, types: str | None
) -> tuple[int | None, str | None]:
    """Returns the total bytes and common dtype of a collective's inputs; None where unknown."""
    if shapes is None or types is None:
        return None, None
    try:
        sizes = json.loads(shapes)
        kinds = {str(kind) for kind in json.loads(types) if kind}
    except (ValueError, RecursionError):
        return None, None
    each = names.element_bytes(next(iter(kinds))) if len(kinds) == 1 else None
    count = _tensor_element_count(sizes) if isinstance(sizes, list) and sizes else None
    return (None, None) if each is None or count is None else (each * count, kinds.pop())


_MAX_TENSOR_ELEMENTS: Final = 1 << 50
"""Largest plausible number of elements of a tensor."""
_MAX_TENSOR_DIMENSIONS: Final = 64
"""Largest plausible number of dimensions of a tensor."""


def _tensor_element_count(sizes: list[Any]) -> int | None:
    """Returns the number of elements of one or more tensors; None if the sizes are invalid."""
    if all(isinstance(size, int) for size in sizes):
        count = math.prod(sizes) if len(sizes) <= _MAX_TENSOR_DIMENSIONS else _MAX_TENSOR_ELEMENTS
        return count if 0 <= count < _MAX_TENSOR_ELEMENTS else None
    told = [_tensor_element_count(size) for size in sizes if isinstance(size, list) and size]
    return None if None in told or not told else sum(one for one in told if one is not None)


def _collectives_with_recorded_arguments(
    trace: Trace, collective_rows: pl.DataFrame
) -> pl.DataFrame:
    """Adds each collective's recorded arguments; its kind comes from its name if not recorded."""
    told = slices_with_arguments(
        trace, "collective_args", collective_rows, *_COLLECTIVE_ARGUMENT_COLUMNS
    )
    texts = [
        column for column in _COLLECTIVE_ARGUMENT_COLUMNS if told[column].dtype == pl.Categorical
    ]
    told = told.with_columns(pl.col(texts).cast(pl.String))
    by_name, by_record = (
        pl.col(column)
        .cast(pl.String)
        .replace_strict(
            {name: kind_of(name) for name in told[column].cast(pl.String).unique().drop_nulls()},
            return_dtype=pl.String,
        )
        for column, kind_of in (("name", collective_of_kernel), ("collective", collective_of))
    )
    told = told.with_columns(collective=by_record.fill_null(by_name).fill_null("other"))
    return told.with_columns(bytes=_bandwidth_sizes_in_bytes(told)).drop("name")


def _bandwidth_sizes_in_bytes(argument_row_numbers: pl.DataFrame) -> pl.Series:
    """Returns each collective's size in bytes as nccl-tests counts it; null if unknown."""
    rows = argument_row_numbers.select(
        "collective", "dtype", "in_elements", "out_elements"
    ).iter_rows()
    sizes = []
    for kind, dtype, put_in, got_out in rows:
        each = names.element_bytes(dtype) if dtype is not None else None
        count = bandwidth_bytes(kind, put_in, got_out)
        sizes.append(None if each is None or count is None else each * count)
    return pl.Series("bytes", sizes, dtype=pl.Int64)


def _collectives_with_issuing_steps(trace: Trace, collective_rows: pl.DataFrame) -> pl.DataFrame:
    """Adds the row and the profiler's number of the step that issued each collective."""
    steps = steps_with_counted_flags(trace)
    issued = collective_rows["issued"].to_numpy()
    at = np.searchsorted(steps["start"].to_numpy(), issued, side="right") - 1
    place = np.maximum(at, 0)
    inside = at >= 0
    if steps.height:
        inside &= issued < steps["end"].to_numpy()[place]
    known = pl.Series(inside, dtype=pl.Boolean)
    rows = pl.select(pl.when(known).then(pl.Series(place, dtype=pl.Int64))).to_series()
    if not steps.height:
        untold = {"step": pl.Int64, "place": pl.Int64, "counted": pl.Boolean}
        return collective_rows.with_columns(
            pl.lit(None, dtype).alias(name) for name, dtype in untold.items()
        )
    number = steps.select(pl.when(pl.col("source") == "profiler").then("number")).to_series()
    return collective_rows.with_columns(
        step=number.gather(rows.cast(pl.UInt32)),
        place=rows,
        counted=steps["counted"].gather(rows.cast(pl.UInt32)),
    )
