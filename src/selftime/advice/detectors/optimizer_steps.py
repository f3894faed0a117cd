"""Finds which kinds of tensors an optimizer updates, and its fastest implementation for these.

PyTorch refuses any other with an error, in the constructor or in the first step. No fused form
takes a sparse gradient or a complex parameter. Of the optimizers that have a faster form only SGD
and Adagrad take sparse gradients at all, and with `foreach=True` they go back to the loop for all
parameters of that dtype. Only the loop can be differentiated through. Tried with PyTorch 2.13:
every optimizer with every form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from selftime import names
from selftime.advice.detectors.counted_steps import operator_intervals
from selftime.advice.detectors.recorded_facts import torch_version
from selftime.analysis.optimizer_closures import closure_times, is_within
from selftime.analysis.slice_ancestors import nearest_ancestor_of_every_slice
from selftime.analysis.slice_arguments import parent_of_every_slice, slices_with_arguments
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, length, subtract
from selftime.nesting import NO_SLICE, nearest_ancestor
from selftime.trace import Trace

__all__ = [
    "FOREACH_OPTIMIZERS",
    "LOOP_ONLY_OPTIMIZERS",
    "OptimizerForm",
    "OptimizerUpdates",
    "fastest_optimizer_form",
    "optimizer_step_slices",
    "optimizer_updates",
]

OptimizerForm: TypeAlias = Literal["fused", "foreach"]
"""Fast implementation of an optimizer's step, named by PyTorch's argument: `fused` or `foreach`."""

FUSED_SINCE_TORCH_VERSION: Final = {"Adam": (2, 0), "AdamW": (2, 0), "SGD": (2, 3)}
"""First PyTorch version, as (major, minor), in which each optimizer accepts `fused=True` on a
device."""

FUSED_ON_CPU_SINCE_TORCH_VERSION: Final = dict.fromkeys(("Adam", "AdamW", "SGD", "Adagrad"), (2, 4))
"""First PyTorch version, as (major, minor), in which each optimizer accepts `fused=True` on a CPU.
Adagrad accepts it on some kinds of devices only, since 2026."""

FOREACH_OPTIMIZERS: Final = frozenset(
    {"ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam"}
    | {"RMSprop", "Rprop", "SGD"}
)
"""PyTorch's optimizers that accept `foreach=True`."""

MIN_RECORDED_SHARE: Final = 0.05
"""Smallest share of an optimizer's operators that autograd records if it can be differentiated
through: then that is about each operator, and else what a framework does behind a closure."""

LOOP_ONLY_OPTIMIZERS: Final = frozenset({"LBFGS", "Muon", "SparseAdam"})
"""PyTorch's optimizers that reject both `fused=True` and `foreach=True` with an error."""


@dataclass(frozen=True, slots=True)
class OptimizerUpdates:
    """The recorded steps of an optimizer: their operators, and the kinds of updated tensors."""

    calls: int
    """The number of the optimizer's steps."""
    times: Intervals
    """Intervals of these steps, without the passes that a closure runs within them."""
    time_share: float
    """Time of these intervals as a share of the optimizer's steps: 1 without a closure."""
    operators: pl.DataFrame
    """Operators within these intervals, without those called by an operator of the same name."""
    sparse_operators: pl.DataFrame
    """Outermost operators that work on sparse gradients, directly or in an operator that they
    call."""
    is_complex: bool
    """Whether some updated parameters have a complex dtype."""
    is_recorded: bool
    """Whether autograd recorded the updates, as it does for a differentiable optimizer."""
    on_device: bool
    """Whether the parameters are on a device."""
    version: tuple[int, int] | None
    """PyTorch's version as (major, minor); None if it was not recorded."""

    @property
    def dense_update_times(self) -> Intervals:
        """Intervals of the optimizer's steps, without operators on sparse gradients."""
        return subtract(self.times, operator_intervals(self.sparse_operators))

    @property
    def time_share_between_operators(self) -> float:
        """Share of `dense_update_times` in which no operator runs: Python's, and that of calls."""
        times = self.dense_update_times
        between = subtract(times, operator_intervals(self.operators))
        return length(between) / max(length(times), 1)


def optimizer_updates(trace: Trace, runs: pl.DataFrame) -> OptimizerUpdates:
    """Returns the operators within an optimizer's steps, and the kinds of tensors they update."""
    whole, closures = covered_time(runs), closure_times(trace)
    times = subtract(whole, closures)
    within = _operators_within_steps(trace, runs["id"])
    within = within.filter(~pl.Series(is_within(closures, within["start"].to_numpy())))
    types = within["input_types"].cast(pl.String)
    viewed = filter_by_name(within, "aten::view_as_real".__eq__).height > 0
    return OptimizerUpdates(
        calls=runs.height,
        times=times,
        time_share=length(times) / max(length(whole), 1),
        operators=within,
        sparse_operators=_outermost_sparse_operators(trace, within),
        is_complex=viewed or bool(types.str.contains("complex", literal=True).any()),
        is_recorded=within["sequence"].count() > MIN_RECORDED_SHARE * within.height,
        on_device=trace.device_args.height > 0,
        version=torch_version(trace),
    )


def fastest_optimizer_form(optimizer: str, updates: OptimizerUpdates) -> OptimizerForm | None:
    """Returns the fastest implementation that the optimizer has for its parameters; None if none.

    Sparse gradients are not looked at: their parameters need a group without that form.
    """
    since = (
        FUSED_SINCE_TORCH_VERSION if updates.on_device else FUSED_ON_CPU_SINCE_TORCH_VERSION
    ).get(optimizer)
    is_there = since is not None and (updates.version is None or updates.version >= since)
    if is_there and not updates.is_complex:
        return "fused"
    return "foreach" if optimizer in FOREACH_OPTIMIZERS else None


def optimizer_step_slices(trace: Trace, annotation: Mapping[str, Any]) -> pl.DataFrame:
    """Returns the slices of the optimizer whose step a row of the view `annotations` describes.

    Those of its name and line: a program may have two optimizers of one class.
    """
    runs = filter_by_name(slices_on(trace, "host", ended=True), str(annotation["name"]).__eq__)
    told = slices_with_arguments(trace, "lines", runs.select("id"), "file", "line")
    mine = told.select(
        pl.col("file").cast(pl.String).eq_missing(pl.lit(annotation["file"], pl.String))
        & pl.col("line").eq_missing(pl.lit(annotation["line"], pl.Int32))
    )
    return runs.filter(mine.to_series())


def _operators_within_steps(trace: Trace, run_ids: pl.Series) -> pl.DataFrame:
    """Returns the operators within optimizer steps, with their input types and sequence numbers."""
    slices = trace.slices
    is_operator = (
        slices["category"].is_in(list(names.OPERATOR_CATEGORIES)) & slices["duration"].is_not_null()
    )
    parent = parent_of_every_slice(trace)
    step = nearest_ancestor_of_every_slice(trace, _mask_of_slice_ids(slices.height, run_ids))
    is_inside = np.append(step != NO_SLICE, np.False_)[parent]  # a root has the parent -1
    at = np.flatnonzero(is_operator.to_numpy() & is_inside)
    codes = slices["name"].to_physical().to_numpy()
    at = at[codes[at] != codes[parent[at]]]
    table = slices[pl.Series(at, dtype=pl.UInt32)]
    table = table.select("id", "name", "track", "start", end=pl.col("start") + pl.col("duration"))
    return slices_with_arguments(trace, "op_args", table, "input_types", "sequence")


def _outermost_sparse_operators(trace: Trace, operators: pl.DataFrame) -> pl.DataFrame:
    """Returns the outermost operators that use sparse tensors, directly or in a nested operator."""
    sparse = filter_by_name(operators, names.is_sparse_operator)
    outermost = operators.filter(
        ~pl.Series(_are_within_another_operator(trace, operators), dtype=pl.Boolean)
    )
    wanted = _mask_of_slice_ids(trace.slices.height, outermost["id"])
    roots = nearest_ancestor(
        parent_of_every_slice(trace), wanted, sparse["id"].to_numpy().astype(np.int64)
    )
    return outermost.filter(pl.col("id").is_in(roots.tolist()))


def _are_within_another_operator(trace: Trace, operators: pl.DataFrame) -> NDArray[np.bool_]:
    """Returns for each operator whether it runs inside another one of `operators`."""
    parent = parent_of_every_slice(trace)
    above = parent[operators["id"].to_numpy()]
    around = nearest_ancestor(
        parent, _mask_of_slice_ids(trace.slices.height, operators["id"]), above
    )
    return np.asarray(around != NO_SLICE)


def _mask_of_slice_ids(slice_count: int, ids: pl.Series) -> NDArray[np.bool_]:
    """Returns one boolean per slice of the trace: true for the slices with an id in `ids`."""
    flags = np.zeros(slice_count, bool)
    flags[ids.to_numpy()] = True
    return flags
