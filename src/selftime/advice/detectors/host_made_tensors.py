"""Finds tensors that the program makes from numbers on the host and then copies to the device.

A trace does not say which tensor an operator takes. The operators right before a copy tell: they
all run on the host in the same function, one of them makes a constant, and from there on the sizes
fit, so that each can take the result of the one before.
"""

import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from selftime import names
from selftime.advice.detectors.counted_operators import outermost_operators, parse_sizes
from selftime.advice.detectors.counted_steps import (
    begins_during_intervals,
    counted_step_count,
    times_of_slices_named,
)
from selftime.advice.detectors.source_lines import LineSlices, slices_by_line
from selftime.analysis.device.device_work import device_work
from selftime.analysis.per_trace_cache import cached_per_trace
from selftime.analysis.slice_arguments import slices_with_arguments
from selftime.analysis.slice_filters import filter_by_name
from selftime.analysis.source_sites import source_sites_of_slices
from selftime.intervals import union
from selftime.names.handwritten_layers import is_view
from selftime.names.tensor_operators import draws_random_numbers, makes_constant, moves_or_converts
from selftime.nesting import NO_SLICE
from selftime.trace import Trace

MAX_TENSOR_MAKING_OPERATORS: Final = 16
"""Largest number of operators before a copy that are searched for the one that made the tensor."""

SAMPLED_COPIES_PER_LINE: Final = 3
"""Number of a source line's copies that are examined, as a sample."""

MIN_COPYING_STEPS_SHARE: Final = 0.5
"""Smallest share of the measured steps in which a line must copy to be reported."""


@dataclass(frozen=True, slots=True)
class HostMadeTensors:
    """The tensors that one source line makes on the host and then copies to the device."""

    line_slices: LineSlices
    """The source line, with one slice per copy: from the first operator that makes the tensor to
    the end of the copying operator."""
    making_operator: str
    """Name of the operator, such as `aten::full`, that makes the constant."""
    operator_count: int
    """Number of operators that make one tensor, not counting its copy."""
    copy_ids: pl.Series
    """Slice ids of the copies to the device."""


@cached_per_trace
def lines_with_host_made_tensors(trace: Trace) -> tuple[HostMadeTensors, ...]:
    """Returns the lines that make tensors on the host and copy them to the device in most steps."""
    uploads = _explicit_copies_to_device(trace)
    if not uploads.height:
        return ()
    ops = _outermost_operators_in_order(trace)
    found = []
    for place in slices_by_line(
        trace, ops.filter(pl.col("id").is_in(uploads["operator"].implode()))
    ):
        if place.slices.height > MIN_COPYING_STEPS_SHARE * counted_step_count(trace):
            made = _host_made_tensors(trace, ops, place, uploads)
            found.extend([made] if made else [])
    return tuple(found)


def _explicit_copies_to_device(trace: Trace) -> pl.DataFrame:
    """Returns slice ids of copies to the device, and of the `to` or `copy_` that launched each."""
    work = device_work(trace).filter(
        (pl.col("kind") == "memcpy") & pl.col("launched").is_not_null()
    )
    work = filter_by_name(work, lambda name: names.memcpy_kind(name).direction == "HtoD")
    ops = outermost_operators(trace)
    if not ops.height:
        return pl.DataFrame(schema={"copy": pl.UInt32, "operator": pl.UInt32})
    asked = (
        work.select(copy="id")
        .with_columns(operator=_outermost_launching_operator_ids(trace, ops, work))
        .drop_nulls()
    )
    asked = asked.with_columns(name=trace.slices["name"].gather(asked["operator"]))
    return filter_by_name(asked, moves_or_converts).drop("name")


def _outermost_launching_operator_ids(
    trace: Trace, operators: pl.DataFrame, work: pl.DataFrame
) -> pl.Series:
    """Returns for each row of `work` the id of the outermost operator that launched it, or null."""
    track = (
        trace.slices["track"].gather(work["operator"]).cast(pl.Int64).fill_null(NO_SLICE).to_numpy()
    )
    ordered = operators.sort("track", "start")
    begin, end = ordered["start"].to_numpy(), (ordered["start"] + ordered["duration"]).to_numpy()
    when = work["launched"].to_numpy()
    last = max(int(when.max(initial=0)), int(begin.max(initial=0))) + 1
    keys = ordered["track"].cast(pl.Int64).to_numpy() * last + begin
    at = np.searchsorted(keys, track * last + when, side="right") - 1
    place = np.maximum(at, 0)
    open_ = (at >= 0) & (track != NO_SLICE)
    open_ &= (ordered["track"].to_numpy()[place] == track) & (when < end[place])
    return ordered["id"].gather(pl.Series(place)).set(pl.Series(~open_), None)


def _outermost_operators_in_order(trace: Trace) -> pl.DataFrame:
    """Returns outermost operators by thread and time, with a flag for those that make no tensor.

    `breaks` is true for those: they launched device work, or a loader or an optimizer ran them.
    """
    ops = outermost_operators(trace).sort("track", "start", "id")
    begin, end = ops["start"].to_numpy(), (ops["start"] + ops["duration"]).to_numpy()
    launched = np.sort(device_work(trace)["launched"].drop_nulls().to_numpy())
    ran = np.searchsorted(launched, end) > np.searchsorted(launched, begin)
    placed = slices_with_arguments(trace, "op_args", ops, "input_shapes")
    placed = placed.with_columns(pl.col("input_shapes").cast(pl.String))
    loads = begins_during_intervals(
        ops, times_of_slices_named(trace, names.is_data_loading, names.is_optimizer_annotation)
    )
    ends = pl.Series(ran, dtype=pl.Boolean) | loads
    return placed.with_columns(breaks=ends).with_row_index("row")


def _host_made_tensors(
    trace: Trace, operators: pl.DataFrame, copying_line: LineSlices, uploads: pl.DataFrame
) -> HostMadeTensors | None:
    """Returns the tensors that one source line makes on the host and copies; None without any."""
    chains = [
        _constant_operator_before_copy(trace, operators, row)
        for row in copying_line.slices["row"].head(SAMPLED_COPIES_PER_LINE).to_list()
    ]
    known = [chain for chain in chains if chain is not None]
    if 2 * len(known) <= len(chains):
        return None
    maker, length = known[0]
    first = (copying_line.slices["row"].cast(pl.Int64) - length).clip(0)
    end = (copying_line.slices["start"] + copying_line.slices["duration"]).to_numpy()
    begin = np.minimum(
        operators["start"].gather(first).to_numpy(), copying_line.slices["start"].to_numpy()
    )
    begun = copying_line.slices.select("id", "name", "track", start=begin, duration=end - begin)
    times = union(begin, end)
    host = operators.filter(begins_during_intervals(operators, times))["id"]
    own = uploads.filter(pl.col("operator").is_in(host.implode()))["copy"]
    return HostMadeTensors(LineSlices(copying_line.where, begun), maker, length, own)


def _constant_operator_before_copy(
    trace: Trace, operators: pl.DataFrame, copy_row: int
) -> tuple[str, int] | None:
    """Returns (operator that made the copied constant, number of operators from it to the copy).

    None if the tensor is not made of a constant.
    """
    run = operators.slice(
        max(copy_row - MAX_TENSOR_MAKING_OPERATORS, 0),
        min(copy_row, MAX_TENSOR_MAKING_OPERATORS) + 1,
    )
    placed = source_sites_of_slices(trace, run["id"]).select("file", "line", "function")
    told = pl.concat([run, placed], how="horizontal").reverse()
    copy = told.row(0, named=True)
    wanted = next(iter(parse_sizes(copy["input_shapes"])), None)
    passed = False
    for back, op in enumerate(told.slice(1).iter_rows(named=True), 1):
        same = all(op[key] == copy[key] for key in ("track", "file", "function"))
        name = str(op["name"])
        if not same or op["breaks"] or draws_random_numbers(name):
            return None
        if makes_constant(name):
            beside = op["line"] is not None and op["line"] == copy["line"]
            fits = passed or _is_constant_as_large_as_copy(
                trace, op["id"], wanted, if_unknown=beside
            )
            return (name, back) if fits else None
        if is_view(name):
            passed = passed or back > 1
            continue
        if not passed and not _may_output_be_as_large_as_copy(op["input_shapes"], wanted):
            return None
        passed = True
    return None


def _may_output_be_as_large_as_copy(
    input_shapes: str | None, copied_shape: tuple[int, ...] | None
) -> bool:
    """Returns whether inputs of `input_shapes` can give a result as large as the copied tensor."""
    if input_shapes is None or copied_shape is None:
        return False
    try:
        given = np.broadcast_shapes(*(shape for shape in parse_sizes(input_shapes) if shape))
    except ValueError:
        return False
    return bool(np.prod(given) == np.prod(copied_shape))


def _is_constant_as_large_as_copy(
    trace: Trace, operator: int, copied_shape: tuple[int, ...] | None, *, if_unknown: bool
) -> bool:
    """Returns whether a constant is as large as the copied tensor; `if_unknown` without sizes."""
    told = trace.op_args.filter(pl.col("id") == operator)["concrete_inputs"].cast(pl.String)
    made = _possible_element_counts(told[0] if told.len() else None)
    return if_unknown if copied_shape is None or not made else int(np.prod(copied_shape)) in made


def _possible_element_counts(concrete_inputs: str | None) -> set[int]:
    """Returns the possible element counts of a constant, by the arguments of its operator.

    >>> texts = '["[2, 3]", "6"]', '["4", "9", ""]'
    >>> tuple(sorted(_possible_element_counts(text)) for text in texts)
    ([6], [4, 5, 16])
    """
    try:
        told: list[Any] = json.loads(concrete_inputs or "[]")
        first, second = [*told, "", ""][:2]
        if first.startswith("["):
            return {int(np.prod(json.loads(first)))}
        begin = int(first)
    except (ValueError, TypeError, AttributeError):
        return set()
    end = {int(second) - begin} if second.isdigit() else set()
    return {begin, begin * begin} | end
