"""Arranges the parts of a trace's time as a tree: modules or categories, operators, kernels.

Each amount of a node is the sum of its parts, so that what is told of a module is told of its
operators too, and what modules and the time outside of them have adds up to the whole.
"""

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from selftime.analysis.call_tree.parent_array_forests import (
    node_reading_order,
    nodes_by_level,
    subtree_totals_by_level,
)
from selftime.analysis.call_tree.training_passes import (
    BACKWARD_PASS,
    FORWARD_PASS,
    RECOMPUTE_PASS,
)
from selftime.analysis.models.modelled_operator_work import common_peak_rates_of_devices
from selftime.analysis.op_profile_work import (
    PART_AMOUNTS,
    device_time_parts,
    host_time_parts,
    modules_of_profile,
)
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

TrainingPass: TypeAlias = Literal["forward", "backward", "recompute"]
"""The name of a training pass."""
CODE_BY_TRAINING_PASS: Final[dict[TrainingPass, int]] = {
    "forward": FORWARD_PASS,
    "backward": BACKWARD_PASS,
    "recompute": RECOMPUTE_PASS,
}
NAME_OUTSIDE_MODULES: Final = "(outside modules)"
"""The name of the row of time outside all modules."""
NAME_OF_MERGED_ROWS: Final = "(other)"
"""The name of a row that merges operators or kernels of little time."""

NO_SHAPES: Final = "[]"
"""The text of input shapes that were not recorded."""

_AMOUNTS: Final = (*PART_AMOUNTS, *(f"{name}_time" for name in CODE_BY_TRAINING_PASS))
_NS_PER_SECOND: Final = 1e9
_PICOSECONDS_PER_NS: Final = 1_000


class _Level(NamedTuple):
    """A level of the tree below modules: the column of its names, and the kind of its rows."""

    name: str
    kind: str | pl.Expr


_CATEGORY_LEVEL: Final = _Level("category", "category")
_OPERATOR_LEVEL: Final = _Level("operator", pl.col("kind"))
_SHAPE_LEVEL: Final = _Level("input_shapes", "shape")
_KERNEL_LEVEL: Final = _Level("kernel", "kernel")


def op_profile_rows(
    trace: Trace,
    *,
    by_module: bool,
    on_device: bool,
    only: TrainingPass | None,
    min_share: float,
) -> pl.DataFrame:
    """Returns the tree as rows, each before those within it, the heaviest branch first.

    Args:
        trace: The trace.
        by_module: Whether modules are the outermost rows, and not categories of operators.
        on_device: Whether the device's time is divided, and not the host's.
        only: The training pass to keep; None keeps all.
        min_share: Operators, shapes and kernels of a smaller share of the whole are merged.
    """
    parts = device_time_parts(trace) if on_device else host_time_parts(trace)
    if only is not None:
        parts = parts.filter(pl.col("pass") == CODE_BY_TRAINING_PASS[only])
    parts = _with_pass_times(parts)
    whole = int(parts["time"].sum())
    if whole == 0:
        return pl.DataFrame()
    if by_module:
        heads, parts = _module_rows(trace, parts)
        levels: tuple[_Level, ...] = (_OPERATOR_LEVEL, _KERNEL_LEVEL)
    else:
        heads, parts = None, parts.with_columns(above=pl.lit(NO_SLICE, pl.Int64))
        has_shapes = (parts["input_shapes"] != NO_SHAPES).any()
        shapes = (_SHAPE_LEVEL,) if has_shapes else ()
        levels = (_CATEGORY_LEVEL, _OPERATOR_LEVEL, *shapes, _KERNEL_LEVEL)
    rows = _rows_of_levels(parts, levels, heads, min_share * whole)
    return _with_figures(trace, _in_reading_order(rows), whole, on_device=on_device)


def has_profile_of_modules(trace: Trace) -> bool:
    """Returns whether the trace has modules."""
    return bool(modules_of_profile(trace).instances)


def _with_pass_times(parts: pl.DataFrame) -> pl.DataFrame:
    return parts.with_columns(
        pl.when(pl.col("pass") == code).then("time").otherwise(0).alias(f"{name}_time")
        for name, code in CODE_BY_TRAINING_PASS.items()
    )


def _module_rows(trace: Trace, parts: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns a row for each module and one for the time outside, and the parts below them."""
    tree = modules_of_profile(trace)
    count = len(tree.instances)
    at = parts["module"].to_numpy()
    at = np.where(at == NO_SLICE, count, at)
    parent = np.append(tree.parent, NO_SLICE)
    steps = nodes_by_level(parent)
    amounts: dict[str, pl.Series] = {}
    for name in _AMOUNTS:
        own = np.zeros(count + 1, np.int64)
        np.add.at(own, at, parts[name].to_numpy())
        amounts[name] = pl.Series(subtree_totals_by_level(parent, steps, own))
        if name == "time":
            amounts["own_time"] = pl.Series(own)
    texts = [one.name for one in tree.instances]
    rows = pl.DataFrame(
        {
            "node": np.arange(count + 1),
            "above": parent,
            "name": [*texts, NAME_OUTSIDE_MODULES],
            "row_kind": ["module"] * count + ["outside"],
            **amounts,
        }
    )
    rows = rows.filter(pl.col("time") > 0)
    return rows, parts.with_columns(above=at)


def _rows_of_levels(
    parts: pl.DataFrame, levels: Sequence[_Level], heads: pl.DataFrame | None, least: float
) -> pl.DataFrame:
    """Returns the rows of all levels, with the columns node, above, name, row_kind and amounts."""
    tables = [] if heads is None else [heads]
    count = 0 if heads is None or not heads.height else int(heads["node"].max()) + 1  # type: ignore[arg-type]  # whole numbers
    for level in levels:
        kind = pl.lit(level.kind) if isinstance(level.kind, str) else level.kind
        named = parts.with_columns(
            name=pl.col(level.name).cast(pl.String), row_kind=kind.cast(pl.String)
        ).drop_nulls("name")
        named = _small_rows_merged(named, least)
        found = named.group_by("above", "name", "row_kind", maintain_order=True).agg(
            pl.col(_AMOUNTS).sum()
        )
        found = found.with_row_index("node", count).cast({"node": pl.Int64})
        found = found.with_columns(own_time=pl.col("time"))
        count += found.height
        tables.append(found)
        keys = ["above", "name", "row_kind"]
        below = named.join(found.select(*keys, "node"), on=keys, how="left")
        below = below.filter(pl.col("row_kind") != "other")
        parts = below.drop("above", "name", "row_kind").rename({"node": "above"})
    return pl.concat(tables, how="diagonal")


def _small_rows_merged(parts: pl.DataFrame, least: float) -> pl.DataFrame:
    """Returns the parts with one name for all rows below one parent that take too little time."""
    is_small = pl.col("time").sum().over("above", "name", "row_kind") < least
    return parts.with_columns(
        name=pl.when(is_small).then(pl.lit(NAME_OF_MERGED_ROWS)).otherwise("name"),
        row_kind=pl.when(is_small).then(pl.lit("other")).otherwise("row_kind"),
    )


def _in_reading_order(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows in depth-first order, with the columns id, parent and depth."""
    row_of = np.full(int(rows["node"].max()) + 2, NO_SLICE, np.int64)  # type: ignore[arg-type]  # whole numbers
    row_of[rows["node"].to_numpy()] = np.arange(rows.height)
    parent = row_of[rows["above"].to_numpy()]
    depth = np.zeros(rows.height, np.int64)
    for number, level in enumerate(nodes_by_level(parent)):
        depth[level] = number
    order = node_reading_order(parent, rows["time"].to_numpy())
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    above = pl.Series(np.where(parent == NO_SLICE, NO_SLICE, place[parent]))
    return rows.with_columns(
        id=place, parent=above.set(pl.Series(parent == NO_SLICE), None), depth=depth
    )[order]


def _with_figures(trace: Trace, rows: pl.DataFrame, whole: int, *, on_device: bool) -> pl.DataFrame:
    """Returns the rows with rates, shares of peaks, and what is beyond the roofline."""
    peaks = common_peak_rates_of_devices(trace) if on_device else None
    time, known = pl.col("time"), pl.col("known_time") > 0
    memory = pl.lit(None if peaks is None else peaks.bytes, pl.Float64)

    def rate(amount: str) -> pl.Expr:
        is_told = (time > 0) & (pl.col(amount) > 0)
        return pl.when(is_told).then(pl.col(amount) * _NS_PER_SECOND / time)

    return rows.with_columns(
        kind="row_kind",
        total_time="time",
        share=time / whole,
        flops_rate=rate("flops"),
        flops_share=pl.when((time > 0) & (pl.col("peak_ps") > 0)).then(
            pl.col("peak_ps") / (time * _PICOSECONDS_PER_NS)
        ),
        bytes_rate=rate("bytes"),
        bytes_share=rate("bytes") / memory,
        achieved_share=pl.when(known).then(pl.col("least_time") / pl.col("known_time")),
        wasted_time=pl.when(known).then(pl.col("known_time") - pl.col("least_time")),
    )
