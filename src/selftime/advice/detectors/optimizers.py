"""What an optimizer updates, and which of its faster forms take that.

PyTorch refuses the others with an error, in the constructor or in the first step. No fused form
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
from selftime.advice.detectors.counted_steps import covered
from selftime.advice.detectors.recorded_facts import torch_version
from selftime.analysis.parents import parents
from selftime.analysis.slice_arguments import with_arguments
from selftime.analysis.slice_filters import covered_time, filter_by_name, slices_on
from selftime.intervals import Intervals, subtract
from selftime.nesting import NONE, nearest
from selftime.trace import Trace

__all__ = ["FOREACH", "LOOPED", "Form", "Updates", "form_of", "runs_of", "updates_of"]

Form: TypeAlias = Literal["fused", "foreach"]

SINCE: Final = {"Adam": (2, 0), "AdamW": (2, 0), "SGD": (2, 3)}
"""The PyTorch that first had the fused form of an optimizer on a device."""

SINCE_ON_CPU: Final = dict.fromkeys(("Adam", "AdamW", "SGD", "Adagrad"), (2, 4))
"""The same on a CPU. On devices Adagrad has had one since 2026, and not on all kinds of them."""

FOREACH: Final = frozenset(
    {"ASGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam"}
    | {"RMSprop", "Rprop", "SGD"}
)
"""PyTorch's optimizers that take `foreach=True`."""

LOOPED: Final = frozenset({"LBFGS", "Muon", "SparseAdam"})
"""PyTorch's optimizers that have neither form: the argument is an error."""


@dataclass(frozen=True, slots=True)
class Updates:
    """What the recorded runs of an optimizer's step did."""

    runs: pl.DataFrame
    """The slices of the runs."""
    operators: pl.DataFrame
    """Operators within the runs, without those that another called by their own name."""
    sparse: pl.DataFrame
    """Of these the outermost that work on sparse gradients, themselves or in what they call."""
    is_complex: bool
    """Whether some parameters are complex."""
    is_recorded: bool
    """Whether autograd recorded operators of the step.

    It does if the step is to be differentiated through, or calls a closure with a forward pass.
    """
    on_device: bool
    version: tuple[int, int] | None
    """Major and minor version of PyTorch, if the recording knows it."""

    @property
    def time(self) -> Intervals:
        """When the step ran, but for what it did with sparse gradients."""
        return subtract(covered_time(self.runs), covered(self.sparse))


def updates_of(trace: Trace, runs: pl.DataFrame) -> Updates:
    """What an optimizer did in the runs of its step: `runs` are their slices."""
    within = _within(trace, runs["id"])
    types = within["input_types"].cast(pl.String)
    viewed = filter_by_name(within, "aten::view_as_real".__eq__).height > 0
    return Updates(
        runs=runs,
        operators=within,
        sparse=_outermost_sparse(trace, within),
        is_complex=viewed or bool(types.str.contains("complex", literal=True).any()),
        is_recorded=bool(within["sequence"].is_not_null().any()),
        on_device=trace.device_args.height > 0,
        version=torch_version(trace),
    )


def form_of(optimizer: str, updates: Updates) -> Form | None:
    """The fastest form of one of PyTorch's optimizers for what it updates; None if it has none.

    Sparse gradients are not looked at: their parameters need a group without that form.
    """
    since = (SINCE if updates.on_device else SINCE_ON_CPU).get(optimizer)
    is_there = since is not None and (updates.version is None or updates.version >= since)
    if is_there and not updates.is_complex:
        return "fused"
    return "foreach" if optimizer in FOREACH else None


def runs_of(trace: Trace, region: Mapping[str, Any]) -> pl.DataFrame:
    """The slices of a row of the view `regions`.

    Those of its name and line: a program may have two optimizers of one class.
    """
    runs = filter_by_name(slices_on(trace, "host", ended=True), str(region["name"]).__eq__)
    told = with_arguments(trace, "lines", runs.select("id"), "file", "line")
    mine = told.select(
        pl.col("file").cast(pl.String).eq_missing(pl.lit(region["file"], pl.String))
        & pl.col("line").eq_missing(pl.lit(region["line"], pl.Int32))
    )
    return runs.filter(mine.to_series())


def _within(trace: Trace, runs: pl.Series) -> pl.DataFrame:
    """Operators in some slices: id, name, track, start, end (ns), input_types and sequence."""
    slices = trace.slices
    is_operator = slices["category"].is_in(list(names.OPERATORS)) & slices["duration"].is_not_null()
    at = np.flatnonzero(is_operator.to_numpy())
    parent = parents(trace)
    at = at[parent[at] != NONE]
    at = at[nearest(parent, _flags(slices.height, runs), parent[at]) != NONE]
    codes = slices["name"].to_physical().to_numpy()
    at = at[codes[at] != codes[parent[at]]]
    table = slices[pl.Series(at, dtype=pl.UInt32)]
    table = table.select("id", "name", "track", "start", end=pl.col("start") + pl.col("duration"))
    return with_arguments(trace, "op_args", table, "input_types", "sequence")


def _outermost_sparse(trace: Trace, within: pl.DataFrame) -> pl.DataFrame:
    """Of operators in steps those that no other of them calls and that touch sparse tensors."""
    sparse = filter_by_name(within, names.is_sparse_operator)
    outermost = within.filter(~pl.Series(_is_called(trace, within), dtype=pl.Boolean))
    wanted = _flags(trace.slices.height, outermost["id"])
    roots = nearest(parents(trace), wanted, sparse["id"].to_numpy().astype(np.int64))
    return outermost.filter(pl.col("id").is_in(roots.tolist()))


def _is_called(trace: Trace, operators: pl.DataFrame) -> NDArray[np.bool_]:
    """Which operators have one of the others around them."""
    parent = parents(trace)
    above = parent[operators["id"].to_numpy()]
    around = nearest(parent, _flags(trace.slices.height, operators["id"]), above)
    return np.asarray(around != NONE)


def _flags(size: int, ids: pl.Series) -> NDArray[np.bool_]:
    flags = np.zeros(size, bool)
    flags[ids.to_numpy()] = True
    return flags
