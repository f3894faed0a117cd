"""Memory by operator: what each allocated and kept, itself and with all it called."""

from typing import Any, Final, Literal

import numpy as np
import polars as pl

from selftime.analysis.call_tree.self_times import SelfTimes, outermost, self_times, subtree
from selftime.analysis.grouping import grouped
from selftime.analysis.memory.allocations import records
from selftime.analysis.memory.holders import stack_lines
from selftime.analysis.parents import parents
from selftime.analysis.sites import SITE, sites
from selftime.analysis.slice_arguments import arguments_of
from selftime.analysis.timeline.tracks import check_order
from selftime.arrays import Ints
from selftime.nesting import NONE, nearest
from selftime.schema import Column
from selftime.trace import Trace
from selftime.views.base import view

_OUTSIDE: Final = "outside operators"
_OF_DEVICE: Final = ("type", "device", "device_type")
_READ: Final = ("at", "time", "bytes", "failed", "earlier", "call_stack", "operator", *_OF_DEVICE)
"""Columns of records that are asked for."""


@view(
    Column(
        "name",
        pl.String,
        "name",
        "The operator or annotation, if by name; or `outside operators`.",
        True,
    ),
    Column("file", pl.String, "text", "The source file, if by line.", True),
    Column("line", pl.Int32, "id", "The source line, if by line.", True),
    Column("function", pl.String, "name", "The function the line is in, if by line.", True),
    Column("how", pl.String, "name", "How the line is known: stack or definition.", True),
    Column("module", pl.String, "name", "The innermost nn.Module, if by module.", True),
    Column("self_size_increase", pl.Int64, "bytes", "Allocated less released by itself."),
    Column("size_increase", pl.Int64, "bytes", "The same with all that it called."),
    Column("self_allocation_size", pl.Int64, "bytes", "Allocated by itself."),
    Column("allocation_size", pl.Int64, "bytes", "Allocated with all that it called."),
    Column("self_allocations", pl.Int64, "count", "How often it allocated itself."),
    Column("allocations", pl.Int64, "count", "How often with all that it called."),
    Column("calls", pl.Int64, "count", "How often it ran; null for what is no operator.", True),
    Column("device_type", pl.String, "name", "CPU, CUDA, HIP, XPU, MPS or another.", True),
    Column("device", pl.Int32, "id", "The device's number; -1 for the CPU.", True),
    needs=("memory",),
    sums=("self_size_increase", "self_allocation_size", "self_allocations"),
)
def memory_operators(
    trace: Trace,
    *,
    by: Literal["name", "line", "module"] = "name",
    device: str = "",
    start: int = 0,
    end: int = 0,
) -> pl.DataFrame:
    """What operators allocated and released on each device, most kept by themselves first.

    A record counts to the innermost operator or annotation around it on its own thread, and with
    that to all that called it; within itself an operator counts once. What lies in none of them is
    `outside operators`, so that a device's self size increases sum to the change of its curve.
    Rows are told apart by `name`, by the source `line` or by the `module` of the operators; a row
    without a line or module holds those of which it is not known. In an allocator's snapshot the
    lines are those of the records' own stacks. `device` keeps one type, `start` and `end` the
    records and calls that began between two instants, in ns.
    """
    happened = ~pl.col("failed") & ~pl.col("earlier") & (pl.col("bytes") != 0)
    table = _between(records(trace, device).select(_READ).filter(happened), start, end)
    if not table.height:
        return _declared(pl.DataFrame())
    stacked = table.filter(pl.col("call_stack").is_not_null() & pl.lit(by == "line"))
    if stacked.height:
        table = table.filter(~pl.col("at").is_in(stacked["at"].implode()))
    host = self_times(trace)
    named, group = _named(_keys(trace, host, by))
    starts = trace.slices["start"].gather(pl.Series(host.id, dtype=pl.UInt32)).to_numpy()
    ran = (starts >= start) & ((starts <= end) if end else True)
    calls = np.bincount(group[ran], minlength=named.height)
    named = named.with_columns(calls=pl.Series(calls, dtype=pl.Int64))
    owner = _owners(trace, host, table["operator"])
    parts = [
        _device_rows(host, part, named, group)
        for part in table.select(*_OF_DEVICE, "bytes", owner=owner).partition_by("type", "device")
    ]
    parts += [_stack_rows(part) for part in stacked.partition_by("type", "device")]
    return _declared(pl.concat(parts, how="diagonal_relaxed")).sort(
        "self_size_increase",
        "allocation_size",
        "name",
        "file",
        "line",
        "module",
        descending=[True, True, False, False, False, False],
        nulls_last=True,
        maintain_order=True,
    )


def _between(table: pl.DataFrame, start: int, end: int) -> pl.DataFrame:
    """The records between two instants, both included; all if none is given."""
    if end:
        check_order(start, end)
    if start:
        table = table.filter(pl.col("time") >= start)
    return table.filter(pl.col("time") <= end) if end else table


def _keys(trace: Trace, host: SelfTimes, by: str) -> pl.DataFrame:
    """What rows are told apart by, of each entry of the tree."""
    ids = pl.Series("id", host.id, dtype=pl.UInt32)
    if by == "name":
        return pl.DataFrame({"name": host.name})
    if by == "line":
        return sites(trace, ids).select(SITE)
    module = arguments_of(trace, "op_args", ids, "module")
    return pl.DataFrame({"module": trace.slices["name"].gather(module["module"])})


def _named(keys: pl.DataFrame) -> tuple[pl.DataFrame, Ints]:
    """The distinct keys in their order, with their number as `group`; and that of each entry."""
    which, first = grouped(keys)
    distinct = keys[pl.Series(first)].cast({pl.Categorical: pl.String})
    rank = distinct.select(pl.struct(pl.all()).rank("dense").cast(pl.Int64) - 1).to_series()
    return distinct.with_columns(group=rank).sort("group"), rank.to_numpy()[which]


def _owners(trace: Trace, host: SelfTimes, operators: pl.Series) -> pl.Series:
    """The place in the tree of each record's operator, or of the nearest around it; else NONE."""
    place = np.full(trace.slices.height, NONE, np.int64)
    place[host.id] = np.arange(host.id.size)
    parent = parents(trace)
    asked = operators.cast(pl.Int64).fill_null(NONE).to_numpy()
    found = nearest(parent, place != NONE, asked)
    return pl.Series(np.where(found == NONE, NONE, place[found] if place.size else NONE))


def _device_rows(
    host: SelfTimes, part: pl.DataFrame, named: pl.DataFrame, group: Ints
) -> pl.DataFrame:
    """The rows of one device: groups with a record in them, and what lies outside."""
    counts = _counts(part)
    owner = part["owner"].to_numpy()
    outer = outermost(host.parent, group)
    columns: dict[str, Any] = {}
    for name, amount in counts.items():
        own = np.zeros(host.id.size, np.int64)
        np.add.at(own, owner[owner != NONE], amount[owner != NONE])
        columns[f"self_{name}"] = _summed(own, group, named.height)
        total = np.where(outer, subtree(host.parent, own), 0)
        columns[name] = _summed(total, group, named.height)
    rows = named.with_columns(**columns).filter(pl.col("records") > 0)
    lost = {name: int(amount[owner == NONE].sum()) for name, amount in counts.items()}
    if lost["records"]:
        both = {f"{own}{name}": [total] for name, total in lost.items() for own in ("self_", "")}
        rows = pl.concat([rows, pl.DataFrame({"name": [_OUTSIDE], **both})], how="diagonal_relaxed")
    return rows.with_columns(
        device_type=pl.lit(part["device_type"][0]), device=pl.lit(part["device"][0])
    )


def _stack_rows(part: pl.DataFrame) -> pl.DataFrame:
    """The rows of one device by the lines in the records' own stacks, with those around them."""
    told = part.select(
        "device_type", "device", pl.col("call_stack").cast(pl.String).alias("stack")
    ).with_columns(**_counts(part))
    sums = [pl.col(name).sum() for name in _counts(part)]
    each = told.group_by("device_type", "device", "stack", maintain_order=True).agg(sums)
    lines = each.join(stack_lines(each["stack"]), on="stack", how="left", maintain_order="left")
    itself = pl.col("innermost").fill_null(value=True)
    own = [pl.when(itself).then(name).otherwise(0).alias(f"self_{name}") for name in _counts(part)]
    keys = ["device_type", "device", *SITE]
    return lines.with_columns(own).group_by(keys, maintain_order=True).agg(pl.col(pl.Int64).sum())


def _counts(part: pl.DataFrame) -> dict[str, Ints]:
    """What each record adds to each amount."""
    size = part["bytes"].to_numpy()
    gains = size > 0
    return {
        "size_increase": size,
        "allocations": gains.astype(np.int64),
        "allocation_size": np.where(gains, size, 0),
        "records": np.ones(size.size, np.int64),
    }


def _summed(amounts: Ints, group: Ints, groups: int) -> Ints:
    found = np.zeros(groups, np.int64)
    np.add.at(found, group, amounts)
    return found


def _declared(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows with every column of the view, null where it does not apply."""
    return rows.select(
        (pl.col(column.name) if column.name in rows.columns else pl.lit(None))
        .cast(column.dtype)
        .alias(column.name)
        for column in memory_operators.columns
    ).filter(pl.lit(bool(rows.width)))
